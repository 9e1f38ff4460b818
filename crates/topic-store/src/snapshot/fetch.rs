//! Reading batches of a scan from the files of the journal, where blocking is allowed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use kolumn_journal::{FilePin, Position};
use kolumn_kafka_wire::records::Batch;

use super::decode::{damaged, misplaced};
use super::partition::PartitionSnapshot;
use super::plan::len_of;
use super::scan::ScanCounters;
use super::search::search_file;
use crate::error::ReadError;
use crate::ids::{PartitionIndex, TopicId};
use crate::state::index::Span;

/// A read of the disk that a scan needs. It may have nothing to read: a scan that walked through much without finding a row
/// asks for such a one, so that others get their turn.
#[derive(Debug)]
#[must_use = "a scan waits for what is read"]
pub struct DiskRead {
    pub(super) ticket: u64,
    pub(super) what: What,
    pub(super) counters: Arc<ScanCounters>,
}

/// What a [`DiskRead`] has read.
#[derive(Debug)]
pub struct Fetched {
    pub(super) ticket: u64,
    /// Single batches in order, with their bytes as far as these were read.
    pub(super) batches: Vec<(Span, Option<Bytes>)>,
}

#[derive(Debug)]
pub(super) enum What {
    Nothing,
    /// Batches whose places are known.
    Batches(Vec<Extent>),
    /// Spans of several batches in one file, which are looked for.
    Joined {
        topic: TopicId,
        partition: PartitionIndex,
        spans: Vec<Span>,
        pin: FilePin,
    },
}

/// Batches that lie so near each other that one read of all is less than one of each.
#[derive(Debug)]
pub(super) struct Extent {
    pin: FilePin,
    position: u64,
    end: u64,
    spans: Vec<Span>,
}

impl DiskRead {
    /// Reads; blocks.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn run(self) -> Result<Fetched, ReadError> {
        let Self { ticket, what, counters } = self;
        let (batches, len) = match what {
            What::Nothing => (Vec::new(), 0),
            What::Batches(extents) => {
                let mut batches = Vec::new();
                for extent in &extents {
                    extent.read(&mut batches)?;
                }
                (batches, extents.iter().map(|extent| extent.end.saturating_sub(extent.position)).sum())
            }
            What::Joined { topic, partition, spans, pin } => {
                let ends = spans.first().zip(spans.last());
                let len = ends.map_or(0, |(first, last)| last.end.saturating_sub(first.position));
                (search_file(topic, partition, &spans, &pin)?, len)
            }
        };
        counters.bytes_read.fetch_add(len, Ordering::Relaxed);
        Ok(Fetched { ticket, batches })
    }
}

impl Extent {
    /// Groups batches into extents.
    pub(super) fn of(partition: &PartitionSnapshot, spans: &[Span]) -> Result<Vec<Self>, ReadError> {
        let mut extents: Vec<Self> = Vec::new();
        for span in spans {
            if let Some(last) = extents.last_mut()
                && last.pin.holds(Position::new(span.position))
                && span.position >= last.end
                && span.position - last.end <= GAP_LEN_MAX
                && span.end.saturating_sub(last.position) <= EXTENT_LEN_MAX
            {
                last.end = span.end;
                last.spans.push(span.clone());
                continue;
            }
            let pin = partition.pin(span.position).ok_or_else(|| misplaced(span.base))?.clone();
            extents.push(Self { pin, position: span.position, end: span.end, spans: vec![span.clone()] });
        }
        Ok(extents)
    }

    fn read(&self, batches: &mut Vec<(Span, Option<Bytes>)>) -> Result<(), ReadError> {
        let len = usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let bytes = self.pin.read(Position::new(self.position), len).map_err(damaged)?;
        for span in &self.spans {
            let from = usize::try_from(span.position.saturating_sub(self.position)).unwrap_or(usize::MAX);
            let to = from.saturating_add(len_of(span));
            if to > bytes.len() {
                return Err(misplaced(span.base));
            }
            let bytes = bytes.slice(from..to);
            // What a file gives back is not verified by the journal when single entries are read.
            let (batch, _) = Batch::parse(&bytes).map_err(damaged)?;
            if batch.crc() != batch.computed_crc() {
                return Err(damaged(format!("the batch at offset {} is damaged", span.base)));
            }
            batches.push((span.clone(), Some(bytes)));
        }
        Ok(())
    }
}

/// What is read in vain between two batches, at most.
const GAP_LEN_MAX: u64 = 64 << 10;
const EXTENT_LEN_MAX: u64 = 4 << 20;
