//! Newtypes for the numbers and identities that topics are made of.

use std::fmt;

use uuid::Uuid;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($raw:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($raw);

        impl $name {
            /// Wraps a raw value.
            #[must_use]
            pub const fn new(value: $raw) -> Self {
                Self(value)
            }

            /// The raw value.
            #[must_use]
            pub const fn value(self) -> $raw {
                self.0
            }
        }

        impl From<$raw> for $name {
            fn from(value: $raw) -> Self {
                Self(value)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// The place of a partition in its topic, from 0.
    PartitionIndex(i32)
}
number! {
    /// The place of a record in its partition, from 0.
    Offset(i64)
}
number! {
    /// The owner epoch under which a batch was appended: one more at each opening of the log.
    LeaderEpoch(i32)
}
number! {
    /// The identity of an idempotent producer.
    ProducerId(i64)
}
number! {
    /// Milliseconds since the Unix epoch. Negative values mean "none" in Kafka's formats.
    Timestamp(i64)
}
number! {
    /// The identity of a topic; a topic made again under an old name has another one.
    TopicId(Uuid)
}
number! {
    /// The identity of a view: one Kafka cluster, one bucket.
    ViewId(Uuid)
}

impl Offset {
    /// The offset `count` records further; stops at the end of the number space.
    #[must_use]
    pub const fn plus(self, count: i64) -> Self {
        Self(self.0.saturating_add(count))
    }
}
