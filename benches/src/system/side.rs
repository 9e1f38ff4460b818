//! The sides: who is measured, and what an acknowledgement of each means.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Side {
    /// The broker with its defaults: synced before it acknowledges.
    Sync,
    /// Apache Kafka that flushes after each message.
    KafkaFlush,
    /// The smallest broker that writes past the page cache and syncs.
    Floor,
    /// The broker with `durability = "os"`.
    Os,
    /// Apache Kafka with its defaults.
    Kafka,
    /// Tansu with its storage in memory.
    Tansu,
    /// The smallest broker without its syncs.
    FloorOs,
    /// The broker that stores nothing.
    Null,
}

/// What is safe once a side has acknowledged it; sides of different classes are not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// The disk has said that it is there.
    Durable,
    /// It is in the memory of the machine.
    PageCache,
    /// Nothing: a limit for the others.
    Limit,
}

impl Side {
    pub(super) const ALL: [Self; 8] = [
        Self::Sync,
        Self::KafkaFlush,
        Self::Floor,
        Self::Os,
        Self::Kafka,
        Self::Tansu,
        Self::FloorOs,
        Self::Null,
    ];

    /// What a first look is content with.
    pub(super) const QUICK: [Self; 7] =
        [Self::Sync, Self::KafkaFlush, Self::Floor, Self::Os, Self::Kafka, Self::Tansu, Self::Null];

    /// As the command line and the results have it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::KafkaFlush => "kafka-flush",
            Self::Floor => "floor",
            Self::Os => "os",
            Self::Kafka => "kafka",
            Self::Tansu => "tansu",
            Self::FloorOs => "floor-os",
            Self::Null => "null",
        }
    }

    /// As tables and the plot have it.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Sync => "Kolumn sync",
            Self::KafkaFlush => "Kafka, flush each message",
            Self::Floor => "floor",
            Self::Os => "Kolumn os",
            Self::Kafka => "Kafka",
            Self::Tansu => "Tansu",
            Self::FloorOs => "floor without sync",
            Self::Null => "null",
        }
    }

    pub(super) const fn class(self) -> Class {
        match self {
            Self::Sync | Self::KafkaFlush | Self::Floor => Class::Durable,
            Self::Os | Self::Kafka | Self::Tansu | Self::FloorOs => Class::PageCache,
            Self::Null => Class::Limit,
        }
    }

    /// Whether it is the product.
    pub(super) const fn is_ours(self) -> bool {
        matches!(self, Self::Sync | Self::Os)
    }

    pub(super) const fn is_kafka(self) -> bool {
        matches!(self, Self::Kafka | Self::KafkaFlush)
    }

    /// Whether it is one of the benchmark's own programs.
    pub(super) const fn is_limit(self) -> bool {
        matches!(self, Self::Null | Self::Floor | Self::FloorOs)
    }

    pub(super) const fn is_floor(self) -> bool {
        matches!(self, Self::Floor | Self::FloorOs)
    }
}
