//! How the rows that a scan reads are laid out: which ranges of which partitions, in which order, in which streams.
//!
//! ```text
//! topic      partition 0             partition 1      partition 2
//! pieces     [0..500] [500..990]     [0..40]          [3..700]
//! streams    s0       s1             s2               s3             few partitions: a stream never mixes two
//!            s0: p0 whole, p1 whole, …   s1: …                       many partitions: neighbours share a stream
//! ```

use std::ops::Range;

use kolumn_topic_store::{PartitionIndex, PartitionSnapshot, TableSnapshot};

use super::constraint::Constraint;

/// Offsets of one partition, read one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) partition: PartitionIndex,
    pub(crate) offsets: Range<i64>,
}

impl Piece {
    /// How many offsets it has. Each is a row.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.offsets.end.saturating_sub(self.offsets.start)).unwrap_or(0)
    }
}

/// The pieces of each stream, ascending by partition and offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) streams: Vec<Vec<Piece>>,
    /// Whether each stream reads one partition only.
    pub(crate) is_pure: bool,
}

/// How a layout is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// About so many streams of about the same number of bytes.
    Parallel(usize),
    /// A stream for each partition.
    ByPartition,
}

/// What the constraint leaves of the partitions, ascending.
pub(crate) fn wanted(table: &TableSnapshot, constraint: &Constraint) -> Vec<Piece> {
    let partitions = table.partitions().iter();
    let partitions =
        partitions.filter(|partition| constraint.partitions.contains(i64::from(partition.index().value())));
    let mut pieces = Vec::new();
    for partition in partitions {
        let all = partition.offsets();
        for (low, high) in constraint.offsets.iter() {
            let offsets = low.max(all.start)..high.saturating_add(1).min(all.end);
            if offsets.start < offsets.end {
                pieces.push(Piece { partition: partition.index(), offsets });
            }
        }
    }
    pieces
}

/// Lays out pieces, which ascend by partition and offset.
pub(crate) fn lay_out(table: &TableSnapshot, pieces: &[Piece], shape: Shape) -> Layout {
    let by_partition: Vec<Vec<Piece>> =
        pieces.chunk_by(|one, next| one.partition == next.partition).map(<[Piece]>::to_vec).collect();
    let streams = match shape {
        Shape::ByPartition => by_partition,
        Shape::Parallel(parallelism)
            if by_partition.len() > parallelism.saturating_mul(PARTITIONS_PER_THREAD) =>
        {
            gather(table, by_partition, parallelism)
        }
        Shape::Parallel(parallelism) => spread(table, by_partition, parallelism),
    };
    let streams = if streams.is_empty() { vec![Vec::new()] } else { streams };
    let is_pure = streams.iter().all(|stream| {
        let mut partitions = stream.iter().map(|piece| piece.partition);
        let first = partitions.next();
        partitions.all(|partition| Some(partition) == first)
    });
    Layout { streams, is_pure }
}

/// Few partitions: large ones are cut, so that there is about a stream for each thread's share of the bytes.
fn spread(table: &TableSnapshot, by_partition: Vec<Vec<Piece>>, parallelism: usize) -> Vec<Vec<Piece>> {
    let bytes: u64 = by_partition.iter().flatten().map(|piece| piece_bytes(table, piece)).sum();
    let share = (bytes / parallelism.max(1) as u64).max(STREAM_LEN_MIN);
    let mut streams = Vec::new();
    for pieces in by_partition {
        let [piece] = pieces.as_slice() else {
            streams.push(pieces);
            continue;
        };
        // Rounded to the nearest: 1.4 shares are one stream, 1.6 are two.
        let parts = usize::try_from((piece_bytes(table, piece) + share / 2) / share).unwrap_or(parallelism);
        let ranges = match partition_of(table, piece) {
            Some(partition) if parts > 1 => partition.split(piece.offsets.clone(), parts.min(parallelism)),
            _ => vec![piece.offsets.clone()],
        };
        streams.extend(ranges.into_iter().map(|offsets| vec![Piece { partition: piece.partition, offsets }]));
    }
    streams
}

/// Many partitions: neighbours share a stream.
fn gather(table: &TableSnapshot, by_partition: Vec<Vec<Piece>>, parallelism: usize) -> Vec<Vec<Piece>> {
    let len = |pieces: &[Piece]| pieces.iter().map(|piece| piece_bytes(table, piece)).sum::<u64>();
    let bytes: u64 = by_partition.iter().map(|pieces| len(pieces)).sum();
    let share = (bytes / parallelism.max(1) as u64).max(STREAM_LEN_MIN);
    let mut streams: Vec<Vec<Piece>> = Vec::new();
    let mut filled = share;
    for pieces in by_partition {
        if filled >= share {
            streams.push(Vec::new());
            filled = 0;
        }
        filled += len(&pieces);
        if let Some(stream) = streams.last_mut() {
            stream.extend(pieces);
        }
    }
    streams
}

/// About how many bytes of the journal a piece takes.
pub(crate) fn piece_bytes(table: &TableSnapshot, piece: &Piece) -> u64 {
    let Some(partition) = partition_of(table, piece) else { return 0 };
    let all = partition.offsets();
    let rows = u64::try_from(all.end.saturating_sub(all.start)).unwrap_or(0).max(1);
    let wanted = u64::try_from(piece.offsets.end.saturating_sub(piece.offsets.start)).unwrap_or(0);
    let bytes = u128::from(partition.bytes()) * u128::from(wanted) / u128::from(rows);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Partitions lie in their order, and none is left out.
fn partition_of<'t>(table: &'t TableSnapshot, piece: &Piece) -> Option<&'t PartitionSnapshot> {
    table.partitions().get(usize::try_from(piece.partition.value()).ok()?)
}

/// Up to so many partitions for each thread have streams of their own, which keep the order of offsets.
const PARTITIONS_PER_THREAD: usize = 8;
/// A stream of less is not worth a task.
const STREAM_LEN_MIN: u64 = 256 << 10;
