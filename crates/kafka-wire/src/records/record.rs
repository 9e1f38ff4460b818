//! Records in an uncompressed payload: walked in place, without any allocation.

use core::iter::FusedIterator;
use core::str;

use super::cursor::Cursor;
use super::error::{RecordError, RecordErrorKind};

/// One record, borrowed from the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'p> {
    /// The record's attribute bits, of which none is defined.
    pub attributes: i8,
    /// The timestamp, relative to the batch's base timestamp, in milliseconds.
    pub timestamp_delta: i64,
    /// The offset, relative to the batch's base offset.
    pub offset_delta: i32,
    /// The key.
    pub key: Option<&'p [u8]>,
    /// The value.
    pub value: Option<&'p [u8]>,
    /// The headers in their order; a key may occur more than once.
    pub headers: Headers<'p>,
}

/// A header of a record.
#[expect(clippy::exhaustive_structs, reason = "callers make headers, and the format fixes the fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header<'p> {
    /// The key, which is never null and need not be unique.
    pub key: &'p str,
    /// The value.
    pub value: Option<&'p [u8]>,
}

/// The headers of a record: a view whose bytes have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Headers<'p> {
    bytes: &'p [u8],
    // INVARIANT: `bytes` is exactly `count` headers, each of which `read_header` accepts.
    count: u32,
}

impl<'p> Headers<'p> {
    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        // Each takes two bytes of memory, so the count fits whatever the platform.
        self.count as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The headers, in their order.
    #[must_use]
    pub const fn iter(&self) -> HeadersIter<'p> {
        HeadersIter { cursor: Cursor::new(self.bytes), left: self.count }
    }
}

impl<'p> IntoIterator for Headers<'p> {
    type Item = Header<'p>;
    type IntoIter = HeadersIter<'p>;

    fn into_iter(self) -> HeadersIter<'p> {
        self.iter()
    }
}

impl<'p> IntoIterator for &Headers<'p> {
    type Item = Header<'p>;
    type IntoIter = HeadersIter<'p>;

    fn into_iter(self) -> HeadersIter<'p> {
        self.iter()
    }
}

/// The iterator over [`Headers`].
#[derive(Clone, Debug)]
pub struct HeadersIter<'p> {
    cursor: Cursor<'p>,
    left: u32,
}

impl<'p> Iterator for HeadersIter<'p> {
    type Item = Header<'p>;

    fn next(&mut self) -> Option<Header<'p>> {
        self.left = self.left.checked_sub(1)?;
        let header = read_header(&mut self.cursor);
        debug_assert!(header.is_ok(), "the view's bytes have been checked");
        header.ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for HeadersIter<'_> {}
impl FusedIterator for HeadersIter<'_> {}

/// Walks the records of an uncompressed payload.
///
/// The walk ends with an error if a record is malformed, if the payload has fewer records than
/// `record_count` says, or if bytes are left after the last one. Nothing is allocated.
#[must_use]
pub const fn iter_records(payload: &[u8], record_count: i32) -> Records<'_> {
    Records { len: payload.len(), cursor: Cursor::new(payload), count: record_count, next: 0, done: false }
}

/// The iterator behind [`iter_records`]; it ends after the first error.
#[derive(Clone, Debug)]
pub struct Records<'p> {
    cursor: Cursor<'p>,
    len: usize,
    count: i32,
    next: i32,
    done: bool,
}

impl Records<'_> {
    /// How many bytes of the payload have been walked.
    #[must_use]
    pub const fn bytes_walked(&self) -> usize {
        self.len - self.cursor.remaining()
    }

    #[cold]
    fn fail(&mut self, kind: RecordErrorKind, position: usize) -> RecordError {
        self.done = true;
        RecordError::new(kind, self.next, position)
    }

    /// Whether the count can be true, judged before the first record is read.
    fn count_fault(&self) -> Option<RecordErrorKind> {
        match usize::try_from(self.count) {
            Err(_) => Some(RecordErrorKind::NegativeCount),
            Ok(count) if count > self.len / RECORD_LEN_MIN => Some(RecordErrorKind::CountExceedsPayload),
            Ok(_) => None,
        }
    }
}

impl<'p> Iterator for Records<'p> {
    type Item = Result<Record<'p>, RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if self.next == 0
            && let Some(kind) = self.count_fault()
        {
            return Some(Err(self.fail(kind, 0)));
        }
        let position = self.bytes_walked();
        if self.next == self.count {
            self.done = true;
            let is_whole = self.cursor.is_empty();
            return (!is_whole).then(|| Err(self.fail(RecordErrorKind::TrailingBytes, position)));
        }
        match read_record(&mut self.cursor) {
            Ok(record) => {
                self.next += 1;
                Some(Ok(record))
            }
            Err(kind) => Some(Err(self.fail(kind, position))),
        }
    }
}

impl FusedIterator for Records<'_> {}

/// ```text
/// Record => length:VARINT attributes:INT8 timestampDelta:VARLONG offsetDelta:VARINT
///           key:NULLABLE value:NULLABLE headerCount:VARINT header*headerCount
/// NULLABLE => length:VARINT byte*length, length -1 for null
/// ```
#[inline]
fn read_record<'p>(payload: &mut Cursor<'p>) -> Result<Record<'p>, RecordErrorKind> {
    let length = read_length(payload)?.ok_or(RecordErrorKind::NegativeLength)?;
    let mut body = Cursor::new(take(payload, length)?);
    let attributes = body.u8()?.cast_signed();
    let timestamp_delta = body.varlong()?;
    let offset_delta = body.varint()?;
    let key = read_nullable(&mut body)?;
    let value = read_nullable(&mut body)?;
    let headers = read_headers(&mut body)?;
    if !body.is_empty() {
        return Err(RecordErrorKind::UnusedRecordBytes);
    }
    Ok(Record { attributes, timestamp_delta, offset_delta, key, value, headers })
}

#[inline]
fn read_headers<'p>(body: &mut Cursor<'p>) -> Result<Headers<'p>, RecordErrorKind> {
    match read_length(body)?.ok_or(RecordErrorKind::NegativeLength)? {
        0 => Ok(Headers::default()),
        count => read_some_headers(body, count),
    }
}

/// Apart, so that a record without headers, as most are, is read in one piece.
#[inline(never)]
fn read_some_headers<'p>(body: &mut Cursor<'p>, count: u32) -> Result<Headers<'p>, RecordErrorKind> {
    let bytes = body.rest();
    // Whatever the count says, each header takes bytes, and nothing is reserved.
    for _ in 0..count {
        read_header(body)?;
    }
    let used = bytes.len() - body.remaining();
    let (bytes, _) = bytes.split_at_checked(used).ok_or(RecordErrorKind::Truncated)?;
    Ok(Headers { bytes, count })
}

/// ```text
/// header => keyLength:VARINT byte*keyLength value:NULLABLE
/// ```
fn read_header<'p>(body: &mut Cursor<'p>) -> Result<Header<'p>, RecordErrorKind> {
    let length = read_length(body)?.ok_or(RecordErrorKind::NegativeLength)?;
    let key = str::from_utf8(take(body, length)?).map_err(|_| RecordErrorKind::HeaderKeyNotUtf8)?;
    Ok(Header { key, value: read_nullable(body)? })
}

#[expect(clippy::inline_always, reason = "a call would take longer than what it does, twice a record")]
#[inline(always)]
fn read_nullable<'p>(body: &mut Cursor<'p>) -> Result<Option<&'p [u8]>, RecordErrorKind> {
    Ok(match read_length(body)? {
        Some(length) => Some(take(body, length)?),
        None => None,
    })
}

/// A length, where -1 means null.
#[inline]
fn read_length(cursor: &mut Cursor<'_>) -> Result<Option<u32>, RecordErrorKind> {
    match cursor.raw_varint()? {
        NULL => Ok(None),
        raw if raw % 2 == 0 => Ok(Some(raw / 2)),
        _ => Err(RecordErrorKind::NegativeLength),
    }
}

#[inline]
fn take<'p>(cursor: &mut Cursor<'p>, length: u32) -> Result<&'p [u8], RecordErrorKind> {
    let length = usize::try_from(length).map_err(|_| RecordErrorKind::Truncated)?;
    Ok(cursor.take(length)?)
}

/// The bits of the VARINT -1.
const NULL: u32 = 1;
/// The smallest record: seven fields of one byte.
const RECORD_LEN_MIN: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(payload: &[u8], count: i32, expect: (RecordErrorKind, i32, usize)) {
        let error = iter_records(payload, count).find_map(Result::err).expect("an error");
        assert_eq!((error.kind(), error.index(), error.position()), expect);
        assert_eq!(iter_records(payload, count).filter(Result::is_err).count(), 1, "one error ends the walk");
    }

    /// Null key, null value, no headers, all deltas 0.
    const SMALLEST: [u8; 7] = [12, 0, 0, 0, 1, 1, 0];

    #[test]
    fn the_smallest_record_takes_seven_bytes() {
        let mut records = iter_records(&SMALLEST, 1);
        let record = records.next().expect("a record").expect("which is valid");
        assert_eq!((record.key, record.value, record.headers.len()), (None, None, 0));
        assert_eq!(records.next(), None);
        assert_eq!(records.bytes_walked(), SMALLEST.len());
    }

    #[test]
    fn a_count_that_the_payload_cannot_hold_is_refused_before_anything_is_read() {
        check(&SMALLEST, -1, (RecordErrorKind::NegativeCount, 0, 0));
        check(&SMALLEST, i32::MIN, (RecordErrorKind::NegativeCount, 0, 0));
        check(&SMALLEST, 2, (RecordErrorKind::CountExceedsPayload, 0, 0));
        check(&SMALLEST, i32::MAX, (RecordErrorKind::CountExceedsPayload, 0, 0));
        check(&[], 1, (RecordErrorKind::CountExceedsPayload, 0, 0));
    }

    #[test]
    fn bytes_after_the_last_record_are_refused() {
        check(&[SMALLEST, SMALLEST].concat(), 1, (RecordErrorKind::TrailingBytes, 1, 7));
        check(&SMALLEST, 0, (RecordErrorKind::TrailingBytes, 0, 0));
        assert_eq!(iter_records(&[], 0).next(), None);
    }

    #[test]
    fn a_length_that_does_not_fit_the_fields_is_refused() {
        check(&[14, 0, 0, 0, 1, 1, 0, 0], 1, (RecordErrorKind::UnusedRecordBytes, 0, 0));
        check(&[10, 0, 0, 0, 1, 1, 0], 1, (RecordErrorKind::Truncated, 0, 0));
        check(&[16, 0, 0, 0, 1, 1, 0], 1, (RecordErrorKind::Truncated, 0, 0));
        check(&[1, 0, 0, 0, 1, 1, 0], 1, (RecordErrorKind::NegativeLength, 0, 0));
        check(&[12, 0, 0, 0, 3, 1, 0], 1, (RecordErrorKind::NegativeLength, 0, 0));
        check(&[12, 0, 0, 0, 1, 1, 1], 1, (RecordErrorKind::NegativeLength, 0, 0));
        check(&[12, 0, 0, 0, 1, 1, 2], 1, (RecordErrorKind::Truncated, 0, 0));
    }

    #[test]
    fn a_header_key_is_utf8_and_not_null() {
        check(&[16, 0, 0, 0, 1, 1, 2, 1, 1], 1, (RecordErrorKind::NegativeLength, 0, 0));
        check(&[18, 0, 0, 0, 1, 1, 2, 2, 0xff, 1], 1, (RecordErrorKind::HeaderKeyNotUtf8, 0, 0));
    }
}
