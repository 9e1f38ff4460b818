//! The cases: what is done to each side, and which of them make sense for which.

use serde::{Deserialize, Serialize};

use super::side::Side;

/// One thing that is done to a fresh server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Case {
    W1,
    W1Raw,
    W1Java,
    W2,
    W2Raw,
    W2Java,
    W3,
    W4,
    W5x1,
    W5x10,
    W5x1000,
    W5x16000,
    W5Rawx1,
    W5Rawx1000,
    W5Rawx16000,
    W6None,
    W6Leader,
    W7,
    W7Ack,
    W7Half,
    W8,
    FetchRaw,
    Fetch,
    W9,
    W12,
    W13,
}

/// What does the loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    /// The client library that most others are made of.
    Librdkafka,
    /// Batches encoded ahead of the clock: takes the client's cost out.
    Raw,
    /// Kafka's own tools.
    Java,
}

impl Case {
    /// In the order in which they run: what others take their rate from comes first.
    pub(super) const ALL: [Self; 26] = [
        Self::W1,
        Self::W1Raw,
        Self::W2,
        Self::W2Raw,
        Self::W7,
        Self::W7Ack,
        Self::W7Half,
        Self::W8,
        Self::FetchRaw,
        Self::Fetch,
        Self::W3,
        Self::W4,
        Self::W5x1,
        Self::W5x10,
        Self::W5x1000,
        Self::W5x16000,
        Self::W5Rawx1,
        Self::W5Rawx1000,
        Self::W5Rawx16000,
        Self::W6None,
        Self::W6Leader,
        Self::W1Java,
        Self::W2Java,
        Self::W9,
        Self::W12,
        Self::W13,
    ];

    /// A first look.
    pub(super) const QUICK: [Self; 3] = [Self::W1, Self::W2, Self::W7];

    /// The same where there is no librdkafka.
    pub(super) const QUICK_RAW: [Self; 3] = [Self::W1Raw, Self::W2Raw, Self::W7Ack];

    /// As the command line has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::W1 => "W1",
            Self::W1Raw => "W1-raw",
            Self::W1Java => "W1-java",
            Self::W2 => "W2",
            Self::W2Raw => "W2-raw",
            Self::W2Java => "W2-java",
            Self::W3 => "W3",
            Self::W4 => "W4",
            Self::W5x1 => "W5-1",
            Self::W5x10 => "W5-10",
            Self::W5x1000 => "W5-1000",
            Self::W5x16000 => "W5-16000",
            Self::W5Rawx1 => "W5-raw-1",
            Self::W5Rawx1000 => "W5-raw-1000",
            Self::W5Rawx16000 => "W5-raw-16000",
            Self::W6None => "W6-none",
            Self::W6Leader => "W6-leader",
            Self::W7 => "W7",
            Self::W7Ack => "W7-ack",
            Self::W7Half => "W7-half",
            Self::W8 => "W8",
            Self::FetchRaw => "fetch-raw",
            Self::Fetch => "fetch",
            Self::W9 => "W9",
            Self::W12 => "W12",
            Self::W13 => "W13",
        }
    }

    /// As the tables have it.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::W1 => "W1: 1 KiB, batches of 1 MB",
            Self::W1Raw => "W1 raw",
            Self::W1Java => "W1 by Kafka's tools",
            Self::W2 => "W2: 1 KiB, batches of 16 KiB",
            Self::W2Raw => "W2 raw",
            Self::W2Java => "W2 by Kafka's tools",
            Self::W3 => "W3: 100 B",
            Self::W4 => "W4: 64 KB",
            Self::W5x1 => "W5: 16 producers, 1 partition",
            Self::W5x10 => "W5: 16 producers, 10 partitions",
            Self::W5x1000 => "W5: 16 producers, 1,000 partitions",
            Self::W5x16000 => "W5: 16 producers, 16,000 partitions",
            Self::W5Rawx1 => "W5 raw: batches of 16 KiB to 1 partition",
            Self::W5Rawx1000 => "W5 raw: to 1,000 partitions in turn",
            Self::W5Rawx16000 => "W5 raw: to 16,000 partitions in turn",
            Self::W6None => "W6: W1 with acks=0",
            Self::W6Leader => "W6: W1 with acks=1",
            Self::W7 => "W7: end to end at 1,000/s",
            Self::W7Ack => "W7 raw: acknowledgement at 1,000/s",
            Self::W7Half => "W7, W8: end to end at half of W1's rate",
            Self::W8 => "W8: the same to 3 consumers",
            Self::FetchRaw => "fetch raw, 24 MB in memory",
            Self::Fetch => "fetch of 2 GB",
            Self::W9 => "W9",
            Self::W12 => "W12: W7 beside 10,000 idle connections",
            Self::W13 => "W13",
        }
    }

    pub(super) const fn client(self) -> Client {
        match self {
            Self::W5Rawx1
            | Self::W5Rawx1000
            | Self::W5Rawx16000
            | Self::W7Ack
            | Self::W1Raw
            | Self::W2Raw
            | Self::FetchRaw
            | Self::W13 => Client::Raw,
            Self::W1Java | Self::W2Java => Client::Java,
            _ => Client::Librdkafka,
        }
    }

    pub(super) const fn partitions(self) -> i32 {
        match self {
            Self::W5x10 => 10,
            Self::W5x1000 | Self::W5Rawx1000 => 1_000,
            Self::W5x16000 | Self::W5Rawx16000 => 16_000,
            _ => 1,
        }
    }

    /// `retention.bytes` of the topic, on all sides.
    pub(super) const fn retention(self) -> u64 {
        match self {
            Self::W9 | Self::W13 => 16 * GIB,
            // Nothing is deleted, because with few partitions it would be and with many it would not.
            Self::W5Rawx1 | Self::W5Rawx1000 | Self::W5Rawx16000 => LOG_LEN_MAX,
            _ => 4 * GIB,
        }
    }

    /// Bytes that the log of one side may grow to.
    pub(super) fn log_len_max(self) -> u64 {
        let partitions = u64::try_from(self.partitions()).unwrap_or(1);
        (self.retention().saturating_mul(partitions) * 2).clamp(8 * GIB, LOG_LEN_MAX)
    }

    /// Bytes that must be free on the disk before it starts; `gb_per_s` is what no side exceeds.
    pub(super) fn room(self, side: Side, seconds: f64) -> u64 {
        match side {
            Side::Null | Side::Tansu => 0,
            _ if matches!(self, Self::W7 | Self::W7Ack | Self::W12) => GIB,
            _ if matches!(self, Self::Fetch | Self::FetchRaw) => 4 * GIB,
            _ if matches!(self, Self::W9 | Self::W13) => 24 * GIB,
            _ if side.is_ours() => self.log_len_max(),
            _ => whole(seconds * BYTES_PER_S_MAX).min(LOG_LEN_MAX),
        }
    }

    /// The case whose rate, on the same side in the same round, it needs.
    pub(super) const fn rate_from(self) -> Option<Self> {
        match self {
            Self::W7Half | Self::W8 | Self::W1Java => Some(Self::W1),
            Self::W2Java => Some(Self::W2),
            _ => None,
        }
    }

    /// The cases that a word of `--only` names: one, or all of its family.
    pub(super) fn named(word: &str) -> Vec<Self> {
        let is_named = |case: &Self| {
            let (start, rest) = case.name().split_at_checked(word.len()).unwrap_or_default();
            start.eq_ignore_ascii_case(word) && (rest.is_empty() || rest.starts_with('-'))
        };
        Self::ALL.into_iter().filter(is_named).collect()
    }

    /// Why a case is not done to a side.
    pub(super) const fn makes_no_sense(self, side: Side) -> Option<&'static str> {
        match (self, side) {
            (Self::W5x16000 | Self::W5Rawx16000, Side::Null) => Some("it has no more than 10,000 partitions"),
            (
                Self::W5Rawx1 | Self::W5Rawx1000 | Self::W5Rawx16000,
                Side::Kafka | Side::KafkaFlush | Side::Tansu,
            ) => Some("what the product pays for partitions is asked there; W5 has its rivals"),
            (Self::W5x16000, Side::Kafka | Side::KafkaFlush) => {
                Some("it creates no more than 10,000 partitions at a time")
            }
            (Self::W7 | Self::W7Half | Self::W8 | Self::W12, Side::Null) => {
                Some("it stores nothing, so no record gets to the end")
            }
            (Self::W9 | Self::W13, Side::Null) => Some("it has no log"),
            (Self::W9, Side::Tansu) => {
                Some("10 GB do not fit in its memory, and it reads 21,000 records a second")
            }
            (Self::Fetch, Side::Tansu) => Some("it reads 21,000 records a second: minutes for 2 GB"),
            (Self::W9, Side::KafkaFlush) => Some("it reads as Kafka does"),
            (Self::W13, Side::KafkaFlush) => Some("it starts as Kafka does"),
            (Self::W9 | Self::W13, Side::Floor | Side::FloorOs) => {
                Some("it does not keep its log over a start")
            }
            _ => None,
        }
    }
}

fn whole(value: f64) -> u64 {
    u64::try_from(std::time::Duration::try_from_secs_f64(value.max(0.0) / 1e9).unwrap_or_default().as_nanos())
        .unwrap_or(u64::MAX)
}

const GIB: u64 = 1 << 30;

/// What a run may take of the disk, with some of 40 GB left for what the calibration writes.
const LOG_LEN_MAX: u64 = 34 * GIB;

/// No side that writes is faster here.
const BYTES_PER_S_MAX: f64 = 2.5e9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_names_a_case_or_its_family() {
        assert_eq!(Case::named("w1"), [Case::W1, Case::W1Raw, Case::W1Java]);
        assert_eq!(Case::named("W1-raw"), [Case::W1Raw]);
        assert_eq!(Case::named("fetch").len(), 2);
        assert_eq!(Case::named("w5").len(), 7);
        assert_eq!(Case::named("w5-raw"), [Case::W5Rawx1, Case::W5Rawx1000, Case::W5Rawx16000]);
        assert_eq!(Case::named("W5-1"), [Case::W5x1]);
        for none in ["W", "", "-", "W1-", "W1-rawer", "W5-10000"] {
            assert!(Case::named(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn no_case_asks_for_more_than_40_gb() {
        for (case, side) in Case::ALL.into_iter().flat_map(|case| Side::ALL.map(|side| (case, side))) {
            assert!(case.room(side, 30.0) < 40_000_000_000, "{case:?} {side:?}");
        }
        assert_eq!(Case::W1.room(Side::Kafka, 2.0), 5_000_000_000);
        assert_eq!(Case::W1.room(Side::Null, 30.0), 0);
    }

    #[test]
    fn every_case_is_listed_once_and_has_a_name_of_its_own() {
        let mut names: Vec<_> = Case::ALL.iter().map(|case| case.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Case::ALL.len());
    }
}
