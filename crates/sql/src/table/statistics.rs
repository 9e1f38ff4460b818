//! What is known of the rows of a scan without reading them.

use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use kolumn_topic_store::{Column, MaxTimestamp, PartitionSnapshot, RowFilter, TableSnapshot};

use super::layout::{Piece, piece_bytes};

/// Statistics of pieces: exact where positions alone decide which rows are read.
pub(crate) fn statistics(
    table: &TableSnapshot,
    pieces: &[Piece],
    columns: &[Column],
    filter: &RowFilter,
) -> Statistics {
    let rows: usize = pieces.iter().map(Piece::len).sum();
    let bytes: u64 = pieces.iter().map(|piece| piece_bytes(table, piece)).sum();
    let columns = columns.iter().map(|column| of_column(*column, table, pieces)).collect();
    let all = Statistics {
        num_rows: Precision::Exact(rows),
        total_byte_size: Precision::Inexact(usize::try_from(bytes).unwrap_or(usize::MAX)),
        column_statistics: columns,
    };
    if filter.is_open() || rows == 0 { all } else { all.to_inexact() }
}

fn of_column(column: Column, table: &TableSnapshot, pieces: &[Piece]) -> ColumnStatistics {
    let unknown = ColumnStatistics::new_unknown();
    match column {
        Column::Partition => {
            let partitions = || pieces.iter().map(|piece| piece.partition.value());
            let exact = |value| Precision::Exact(ScalarValue::Int32(value));
            let distinct = pieces.chunk_by(|one, next| one.partition == next.partition).count();
            unknown
                .with_null_count(Precision::Exact(0))
                .with_min_value(exact(partitions().min()))
                .with_max_value(exact(partitions().max()))
                .with_distinct_count(Precision::Exact(distinct))
        }
        Column::Offset => {
            let exact = |value| Precision::Exact(ScalarValue::Int64(value));
            unknown
                .with_null_count(Precision::Exact(0))
                .with_min_value(exact(pieces.iter().map(|piece| piece.offsets.start).min()))
                .with_max_value(exact(pieces.iter().map(|piece| piece.offsets.end.saturating_sub(1)).max()))
        }
        Column::Timestamp => unknown.with_max_value(max_timestamp(table, pieces)),
        Column::Headers => unknown.with_null_count(Precision::Exact(0)),
        _ => unknown,
    }
}

/// The greatest timestamp of pieces: exact, if one that is attained by a partition read whole is above all bounds.
fn max_timestamp(table: &TableSnapshot, pieces: &[Piece]) -> Precision<ScalarValue> {
    let (mut attained, mut bound) = (None, None);
    for piece in pieces {
        let partition = table.partitions().iter().find(|partition| partition.index() == piece.partition);
        match partition.map(|partition| (partition, partition.max_timestamp())) {
            Some((partition, MaxTimestamp::Exact(greatest))) => {
                let greatest = greatest.map(kolumn_topic_store::Timestamp::value);
                if is_whole(partition, piece) {
                    attained = attained.max(greatest);
                } else {
                    bound = bound.max(greatest);
                }
            }
            Some((_, MaxTimestamp::AtMost(greatest))) => bound = bound.max(Some(greatest.value())),
            None => return Precision::Absent,
        }
    }
    let value = ScalarValue::TimestampMillisecond(attained.max(bound), None);
    if attained >= bound { Precision::Exact(value) } else { Precision::Inexact(value) }
}

fn is_whole(partition: &PartitionSnapshot, piece: &Piece) -> bool {
    let all = partition.offsets();
    piece.offsets.start <= all.start && all.end <= piece.offsets.end
}
