//! An intent, and its bytes in the journal.

use bytes::Bytes;

use crate::event::{EventName, Timestamp};
use crate::queue::message::{Cut, Malformed};

/// An operation that is about to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Intent {
    /// The event that it will be.
    pub event: EventName,
    /// The bucket.
    pub bucket: String,
    /// The object's key as it is.
    pub key: String,
    /// When the operation began.
    pub time: Timestamp,
    /// What the server needs to tell later whether the operation has happened, and to make the event: what the object was
    /// before, request id, requester. Nobody else looks at it.
    pub detail: Bytes,
}

impl Intent {
    /// An intent without further detail.
    #[must_use]
    pub fn new(event: EventName, bucket: impl Into<String>, key: impl Into<String>, time: Timestamp) -> Self {
        Self { event, bucket: bucket.into(), key: key.into(), time, detail: Bytes::new() }
    }

    /// The same intent with what the server needs to know.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Bytes>) -> Self {
        self.detail = detail.into();
        self
    }

    pub(super) fn encoded_len(&self) -> usize {
        HEAD_LEN + self.event.as_str().len() + self.bucket.len() + self.key.len() + self.detail.len()
    }

    /// ```text
    /// | kind u8 | number u64 | time u64 | event length u8 | bucket length u16 | key length u32 | event | bucket | key | detail
    /// ```
    ///
    /// `None` if a length is too long for its field.
    pub(super) fn encode(&self, number: u64) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(self.encoded_len());
        out.push(BEGUN);
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&self.time.unix_nanos().to_le_bytes());
        let event = self.event.as_str();
        out.push(u8::try_from(event.len()).ok()?);
        out.extend_from_slice(&u16::try_from(self.bucket.len()).ok()?.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.key.len()).ok()?.to_le_bytes());
        for part in [event, &self.bucket, &self.key] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(&self.detail);
        Some(out)
    }

    /// The intent and its number.
    pub(super) fn decode(entry: &Bytes) -> Result<(u64, Self), Malformed> {
        let mut cut = Cut::new(entry);
        let kind = cut.u8("kind")?;
        if kind != BEGUN {
            return Err(Malformed(format!("an entry of kind {kind} is no intent")));
        }
        let number = cut.u64("number")?;
        let time = Timestamp::from_unix_nanos(cut.u64("time")?);
        let event_len = cut.u8("length of the event's name")?;
        let bucket_len = cut.u16("length of the bucket")?;
        let key_len = cut.u32("length of the key")?;
        let event = cut.text(usize::from(event_len), "event's name")?;
        let event = event.parse().map_err(|error| Malformed(format!("the event's name: {error}")))?;
        let bucket = cut.text(usize::from(bucket_len), "bucket")?;
        let key = cut.text(usize::try_from(key_len).unwrap_or(usize::MAX), "key")?;
        Ok((number, Self { event, bucket, key, time, detail: cut.rest() }))
    }
}

/// What an entry of the journal says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Begun(u64),
    Resolved(Vec<u64>),
    /// Of a newer version, or damaged in a way that no checksum sees.
    Unknown,
}

impl Entry {
    pub(super) fn of(entry: &Bytes) -> Self {
        Self::read(entry).unwrap_or(Self::Unknown)
    }

    fn read(entry: &Bytes) -> Result<Self, Malformed> {
        let mut cut = Cut::new(entry);
        match cut.u8("kind")? {
            BEGUN => Ok(Self::Begun(cut.u64("number")?)),
            RESOLVED => {
                let count = cut.count(8, "count of intents")?;
                (0..count).map(|_| cut.u64("number")).collect::<Result<_, _>>().map(Self::Resolved)
            }
            _ => Ok(Self::Unknown),
        }
    }

    /// ```text
    /// | kind u8 | count u32 | count times number u64
    /// ```
    pub(super) fn resolved(numbers: &[u64]) -> Vec<u8> {
        let mut out = vec![RESOLVED];
        out.extend_from_slice(&u32::try_from(numbers.len()).unwrap_or(u32::MAX).to_le_bytes());
        for number in numbers.iter().take(u32::MAX as usize) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out
    }
}

const BEGUN: u8 = 1;
const RESOLVED: u8 = 2;
/// What of an intent's entry does not depend on its content.
const HEAD_LEN: usize = 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            bucket in ".{0,63}", key in ".{0,300}", detail in prop::collection::vec(any::<u8>(), 0..300),
            event in 0..EventName::ALL.len(), time in any::<u64>(), number in any::<u64>(),
        ) {
            let time = Timestamp::from_unix_nanos(time);
            let intent = Intent::new(EventName::ALL[event], bucket, key, time).with_detail(detail);
            let entry = Bytes::from(intent.encode(number).unwrap());
            prop_assert_eq!(entry.len(), intent.encoded_len());
            prop_assert_eq!(Entry::of(&entry), Entry::Begun(number));
            prop_assert_eq!(Intent::decode(&entry), Ok((number, intent)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = Bytes::from(bytes);
            if let Ok((number, intent)) = Intent::decode(&bytes) {
                prop_assert_eq!(intent.encode(number).unwrap(), bytes.clone());
            }
            if let Entry::Resolved(numbers) = Entry::of(&bytes) {
                prop_assert!(bytes.starts_with(&Entry::resolved(&numbers)));
            }
        }
    }
}
