//! What may go: plans without effects, from the state and the settings.

use std::collections::BTreeMap;

use kolumn_journal::FileInfo;

use crate::config::TopicConfig;
use crate::ids::Timestamp;
use crate::observer::PressureLevel;
use crate::state::partition::Partition;

/// The partition's new first offset, if its settings move it: whole entries of the index, oldest first, as long as they
/// are too old or the partition is too large without them.
///
/// There is no segment that would be spared for being active: a partition may become empty, its offsets go on.
pub(crate) fn log_start(partition: &Partition, config: &TopicConfig, now: Timestamp) -> Option<i64> {
    let born_before = config.retention_ms().map(|age| now.value().saturating_sub(age));
    let mut excess = config.retention_bytes().map_or(0, |max| partition.len.saturating_sub(max));
    let mut start = None;
    for span in &partition.spans {
        let is_old = born_before.is_some_and(|limit| span.aged_from < limit);
        if !is_old && excess < span.len {
            break;
        }
        excess = excess.saturating_sub(span.len);
        start = Some(span.last.saturating_add(1));
    }
    start
}

/// The file whose live batches should be carried to the head, if any: of those of which enough is dead, the one of which
/// the least is live. The tighter the space, the less has to be dead.
pub(crate) fn file_to_carry(
    files: &[FileInfo],
    live: &BTreeMap<u64, u64>,
    level: PressureLevel,
) -> Option<FileInfo> {
    let (share, of) = match level {
        PressureLevel::Normal => (1, 16),
        PressureLevel::Half => (1, 2),
        PressureLevel::Throttled | PressureLevel::Full => (3, 4),
    };
    let live_of = |file: &FileInfo| live.get(&file.base.value()).copied().unwrap_or(0);
    let written = |file: &FileInfo| file.end_written.value().saturating_sub(file.base.value());
    files
        .iter()
        .filter(|file| !file.active && live_of(file) > 0)
        .filter(|file| live_of(file).saturating_mul(of) <= written(file).saturating_mul(share))
        .min_by_key(|file| (live_of(file), file.base))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::index::Span;

    fn partition(ages: &[i64]) -> Partition {
        let mut partition = Partition::default();
        for (age, base) in ages.iter().zip(0_i64..) {
            partition.spans.push_back(Span {
                base: base * 10,
                last: base * 10 + 9,
                group: 0,
                position: 0,
                end: 100,
                len: 100,
                batches: 1,
                own_max: *age,
                running_max: *age,
                aged_from: *age,
            });
            partition.len += 100;
            partition.next += 10;
        }
        partition
    }

    #[track_caller]
    fn check(ages: &[i64], pairs: &[(&str, &str)], expect: Option<i64>) {
        let config = TopicConfig::parse(pairs.iter().copied()).expect("legal");
        assert_eq!(log_start(&partition(ages), &config, Timestamp::new(10_000)), expect);
    }

    #[test]
    fn old_batches_go_up_to_the_first_that_is_young() {
        let age = [("retention.ms", "1000")];
        check(&[1, 2, 9_500, 3], &age, Some(20));
        check(&[9_500, 1], &age, None);
        check(&[1, 2], &age, Some(20));
        check(&[], &age, None);
        check(&[1, 2], &[("retention.ms", "-1")], None);
        check(&[1, 2], &[], None);
    }

    #[test]
    fn a_partition_keeps_at_least_its_retention_bytes() {
        let size = |bytes| [("retention.ms", "-1"), ("retention.bytes", bytes)];
        check(&[1, 2, 3], &size("300"), None);
        check(&[1, 2, 3], &size("299"), None);
        check(&[1, 2, 3], &size("200"), Some(10));
        check(&[1, 2, 3], &size("150"), Some(10));
        check(&[1, 2, 3], &size("0"), Some(30));
    }
}
