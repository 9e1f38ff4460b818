//! Rows on their way into arrays.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, TimestampMillisecondType, Utf8Type};
use arrow_array::{
    Array, ArrayRef, GenericByteArray, Int32Array, Int64Array, ListArray, StructArray,
    TimestampMillisecondArray,
};
use arrow_buffer::{Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use kolumn_kafka_wire::records::Headers;

use super::Column;
use super::columns::{header_field, header_fields};

/// One row, borrowed from its batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'p> {
    pub(super) offset: i64,
    /// Negative for none.
    pub(super) timestamp: i64,
    pub(super) key: Option<&'p [u8]>,
    pub(super) value: Option<&'p [u8]>,
    pub(super) headers: Headers<'p>,
}

/// Columns as they grow; only those that are wanted.
#[derive(Debug, Default)]
pub(super) struct Rows {
    count: usize,
    /// Bytes of keys, values and headers.
    len: usize,
    offsets: Option<Vec<i64>>,
    timestamps: Option<Times>,
    keys: Option<Blobs>,
    values: Option<Blobs>,
    headers: Option<HeaderLists>,
}

/// Finished columns of the same length; those that were not wanted are missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    pub(super) rows: usize,
    /// The offset of the first row. Without `offsets`, the others follow it one by one.
    pub(super) first: i64,
    pub(super) offsets: Option<ArrayRef>,
    pub(super) timestamps: Option<ArrayRef>,
    pub(super) keys: Option<ArrayRef>,
    pub(super) values: Option<ArrayRef>,
    pub(super) headers: Option<ArrayRef>,
}

impl Rows {
    pub(super) fn new(columns: &[Column]) -> Self {
        let has = |column| columns.contains(&column);
        Self {
            count: 0,
            len: 0,
            offsets: has(Column::Offset).then(Vec::new),
            timestamps: has(Column::Timestamp).then(Times::default),
            keys: has(Column::Key).then(Blobs::default),
            values: has(Column::Value).then(Blobs::default),
            headers: has(Column::Headers).then(HeaderLists::default),
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Makes room for rows whose records take this many bytes.
    pub(super) fn reserve(&mut self, rows: usize, len: usize) {
        if let Some(offsets) = &mut self.offsets {
            offsets.reserve(rows);
        }
        if let Some(times) = &mut self.timestamps {
            times.values.reserve(rows);
        }
        if let Some(keys) = &mut self.keys {
            keys.offsets.reserve(rows);
        }
        if let Some(values) = &mut self.values {
            values.offsets.reserve(rows);
            values.bytes.reserve(len);
        }
        if let Some(headers) = &mut self.headers {
            headers.offsets.reserve(rows);
        }
    }

    #[inline]
    pub(super) fn push(&mut self, row: &Row<'_>) {
        self.count += 1;
        if let Some(offsets) = &mut self.offsets {
            offsets.push(row.offset);
        }
        if let Some(times) = &mut self.timestamps {
            times.push(row.timestamp);
        }
        if let Some(keys) = &mut self.keys {
            self.len += keys.push(row.key);
        }
        if let Some(values) = &mut self.values {
            self.len += values.push(row.value);
        }
        if let Some(headers) = &mut self.headers {
            self.len += headers.push(row.headers);
        }
    }

    /// What has grown, as arrays; begins anew.
    pub(super) fn finish(&mut self) -> Result<Chunk, ArrowError> {
        let rows = std::mem::take(&mut self.count);
        self.len = 0;
        let offsets = self.offsets.as_mut().map(|offsets| {
            let values = ScalarBuffer::from(compact(std::mem::take(offsets)));
            Arc::new(Int64Array::new(values, None)) as ArrayRef
        });
        let timestamps = self.timestamps.as_mut().map(|times| std::mem::take(times).finish());
        let keys = self.keys.as_mut().map(|keys| std::mem::take(keys).finish::<BinaryType>());
        let values = self.values.as_mut().map(|values| std::mem::take(values).finish::<BinaryType>());
        let headers = self.headers.as_mut().map(|headers| std::mem::take(headers).finish());
        Ok(Chunk {
            rows,
            first: 0,
            offsets,
            timestamps,
            keys: keys.transpose()?,
            values: values.transpose()?,
            headers: headers.transpose()?,
        })
    }
}

impl Chunk {
    /// The array of a column. The partition, which is the same in all rows, is not kept.
    pub(super) fn array(&self, column: Column, partition: i32) -> Option<ArrayRef> {
        match column {
            Column::Partition => Some(Arc::new(Int32Array::from_value(partition, self.rows))),
            Column::Offset => {
                Some(self.offsets.clone().unwrap_or_else(|| offsets((self.first..).take(self.rows))))
            }
            Column::Timestamp => self.timestamps.clone(),
            Column::Key => self.keys.clone(),
            Column::Value => self.values.clone(),
            Column::Headers => self.headers.clone(),
        }
    }

    /// Whether it has these columns.
    pub(super) fn has_all(&self, columns: &[Column]) -> bool {
        columns.iter().all(|column| match column {
            Column::Partition | Column::Offset => true,
            Column::Timestamp => self.timestamps.is_some(),
            Column::Key => self.keys.is_some(),
            Column::Value => self.values.is_some(),
            Column::Headers => self.headers.is_some(),
        })
    }

    /// Its columns, and those of the same rows that it does not have.
    pub(super) fn or(self, other: &Self) -> Self {
        Self {
            timestamps: self.timestamps.or_else(|| other.timestamps.clone()),
            keys: self.keys.or_else(|| other.keys.clone()),
            values: self.values.or_else(|| other.values.clone()),
            headers: self.headers.or_else(|| other.headers.clone()),
            ..self
        }
    }

    /// A part of it.
    pub(super) fn slice(&self, at: usize, rows: usize) -> Self {
        let part = |array: &Option<ArrayRef>| array.as_ref().map(|array| array.slice(at, rows));
        Self {
            rows,
            first: self.first.saturating_add(i64::try_from(at).unwrap_or(i64::MAX)),
            offsets: part(&self.offsets),
            timestamps: part(&self.timestamps),
            keys: part(&self.keys),
            values: part(&self.values),
            headers: part(&self.headers),
        }
    }

    /// A row without its headers; columns that are missing are null.
    pub(super) fn row(&self, at: usize) -> Row<'_> {
        let times =
            self.timestamps.as_ref().and_then(|array| array.as_primitive_opt::<TimestampMillisecondType>());
        let blob = |array| {
            Option::<&ArrayRef>::and_then(array, |array| {
                array.as_binary_opt::<i32>().filter(|blobs| blobs.is_valid(at)).map(|blobs| blobs.value(at))
            })
        };
        Row {
            offset: self.first.saturating_add(i64::try_from(at).unwrap_or(i64::MAX)),
            timestamp: times.filter(|times| times.is_valid(at)).map_or(-1, |times| times.value(at)),
            key: blob(self.keys.as_ref()),
            value: blob(self.values.as_ref()),
            headers: Headers::default(),
        }
    }
}

/// Offsets as an array.
pub(super) fn offsets(offsets: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(offsets.collect::<Int64Array>())
}

#[derive(Debug, Default)]
struct Times {
    values: Vec<i64>,
    nulls: Nulls,
}

impl Times {
    #[inline]
    fn push(&mut self, timestamp: i64) {
        self.nulls.push(timestamp >= 0);
        self.values.push(timestamp);
    }

    fn finish(self) -> ArrayRef {
        let nulls = self.nulls.finish();
        Arc::new(TimestampMillisecondArray::new(ScalarBuffer::from(compact(self.values)), nulls))
    }
}

/// Byte strings one after the other, and where each ends.
#[derive(Debug, Default)]
struct Blobs {
    bytes: Vec<u8>,
    /// The ends; the leading zero is put in with the first.
    offsets: Vec<i32>,
    nulls: Nulls,
}

impl Blobs {
    #[inline]
    fn push(&mut self, bytes: Option<&[u8]>) -> usize {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.nulls.push(bytes.is_some());
        let bytes = bytes.unwrap_or_default();
        self.bytes.extend_from_slice(bytes);
        self.offsets.push(end_of(self.bytes.len()));
        bytes.len()
    }

    fn finish<T: ByteArrayType<Offset = i32>>(self) -> Result<ArrayRef, ArrowError> {
        let nulls = self.nulls.finish();
        let array =
            GenericByteArray::<T>::try_new(ends(self.offsets), Buffer::from(compact(self.bytes)), nulls)?;
        Ok(Arc::new(array))
    }
}

#[derive(Debug, Default)]
struct HeaderLists {
    offsets: Vec<i32>,
    keys: Blobs,
    values: Blobs,
    count: usize,
}

impl HeaderLists {
    #[inline]
    fn push(&mut self, headers: Headers<'_>) -> usize {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        let mut len = 0;
        for header in headers {
            len += self.keys.push(Some(header.key.as_bytes())) + self.values.push(header.value) + HEADER_COST;
            self.count += 1;
        }
        self.offsets.push(end_of(self.count));
        len
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        let columns = vec![self.keys.finish::<Utf8Type>()?, self.values.finish::<BinaryType>()?];
        let structs = StructArray::try_new_with_length(header_fields(), columns, None, self.count)?;
        let lists =
            ListArray::try_new(Arc::new(header_field()), ends(self.offsets), Arc::new(structs), None)?;
        Ok(Arc::new(lists))
    }
}

/// Which rows are null; costs nothing while none is.
#[derive(Debug)]
struct Nulls(NullBufferBuilder);

impl Default for Nulls {
    fn default() -> Self {
        Self(NullBufferBuilder::new(0))
    }
}

impl Nulls {
    #[inline]
    fn push(&mut self, is_valid: bool) {
        self.0.append(is_valid);
    }

    fn finish(mut self) -> Option<NullBuffer> {
        self.0.finish()
    }
}

/// What is not a number of 32 bits does not come here: chunks are cut long before, and one record is shorter.
fn end_of(len: usize) -> i32 {
    debug_assert!(i32::try_from(len).is_ok(), "a chunk ends before its offsets do");
    i32::try_from(len).unwrap_or(i32::MAX)
}

fn ends(mut offsets: Vec<i32>) -> OffsetBuffer<i32> {
    if offsets.is_empty() {
        offsets.push(0);
    }
    OffsetBuffer::new(ScalarBuffer::from(compact(offsets)))
}

/// Without the room that is left over.
fn compact<T>(mut values: Vec<T>) -> Vec<T> {
    if values.capacity() - values.len() > values.len() / 8 {
        values.shrink_to_fit();
    }
    values
}

/// What a header takes besides its bytes.
const HEADER_COST: usize = 8;
