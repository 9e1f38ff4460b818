//! The columns of a topic's table.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

/// A column of a topic's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Column {
    /// `partition int32`.
    Partition,
    /// `offset int64`.
    Offset,
    /// `timestamp timestamp[ms]`; null where the record has none, which Kafka writes as -1.
    Timestamp,
    /// `key binary`, may be null.
    Key,
    /// `value binary`, may be null.
    Value,
    /// `headers list<struct<key utf8, value binary>>`: in their order, with duplicate keys; values may be null.
    Headers,
}

impl Column {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 6] =
        [Self::Partition, Self::Offset, Self::Timestamp, Self::Key, Self::Value, Self::Headers];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::Offset => "offset",
            Self::Timestamp => "timestamp",
            Self::Key => "key",
            Self::Value => "value",
            Self::Headers => "headers",
        }
    }

    /// Its field in Arrow.
    #[must_use]
    pub fn field(self) -> Field {
        match self {
            Self::Partition => Field::new(self.name(), DataType::Int32, false),
            Self::Offset => Field::new(self.name(), DataType::Int64, false),
            Self::Timestamp => {
                Field::new(self.name(), DataType::Timestamp(TimeUnit::Millisecond, None), true)
            }
            Self::Key | Self::Value => Field::new(self.name(), DataType::Binary, true),
            Self::Headers => Field::new(self.name(), DataType::List(Arc::new(header_field())), false),
        }
    }
}

/// The schema of every topic's table.
#[must_use]
pub fn table_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let fields: Fields = Column::ALL.into_iter().map(Column::field).collect();
        Arc::new(Schema::new(fields))
    });
    Arc::clone(&SCHEMA)
}

/// An item of the list of headers.
pub(super) fn header_field() -> Field {
    Field::new("item", DataType::Struct(header_fields()), false)
}

pub(super) fn header_fields() -> Fields {
    [Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Binary, true)]
        .into_iter()
        .collect()
}
