//! What waits in a queue, and its bytes in the journal.

use std::sync::Arc;

use bytes::Bytes;

use crate::event::{EventName, Timestamp};

/// An event on its way to a target, as it will be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// `bucket/key`, the key as it is: messages with the same key reach the target in the order in which they were put.
    pub key: Bytes,
    /// What is sent.
    pub value: Bytes,
    /// The event that it tells of.
    pub event: EventName,
    /// Where the target is to put it, if not where it is configured to.
    pub topic: Option<Arc<str>>,
    /// When the event happened; the age of a queue is that of its oldest message.
    pub time: Timestamp,
}

impl Message {
    /// A message for the place that the target is configured for.
    #[must_use]
    pub fn new(event: EventName, key: impl Into<Bytes>, value: impl Into<Bytes>, time: Timestamp) -> Self {
        Self { key: key.into(), value: value.into(), event, topic: None, time }
    }

    /// The same message, for another topic than the target's own.
    #[must_use]
    pub fn with_topic(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// How long its entry in a journal is, in bytes. Limits count these.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let topic_len = self.topic.as_ref().map_or(0, |topic| topic.len());
        HEAD_LEN + self.event.as_str().len() + topic_len + self.key.len() + self.value.len()
    }

    /// All of the entry that stands before the value.
    ///
    /// ```text
    /// | kind u8 | time u64 | event length u8 | topic length u16 | key length u32 | event | topic | key | value
    /// ```
    ///
    /// Little-endian; the topic's length is 65,535 if there is none. `None` if a length is too long for its field.
    pub(super) fn encode_before_value(&self) -> Option<Vec<u8>> {
        let event = self.event.as_str();
        let topic_len = match &self.topic {
            None => NO_TOPIC,
            Some(topic) => u16::try_from(topic.len()).ok().filter(|len| *len != NO_TOPIC)?,
        };
        let mut out = Vec::with_capacity(self.encoded_len() - self.value.len());
        out.push(MESSAGE);
        out.extend_from_slice(&self.time.unix_nanos().to_le_bytes());
        out.push(u8::try_from(event.len()).ok()?);
        out.extend_from_slice(&topic_len.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.key.len()).ok()?.to_le_bytes());
        out.extend_from_slice(event.as_bytes());
        out.extend_from_slice(self.topic.as_deref().unwrap_or_default().as_bytes());
        out.extend_from_slice(&self.key);
        Some(out)
    }

    /// Reads an entry; key and value are slices of it. The error says what was wrong and where.
    pub(super) fn decode(entry: &Bytes) -> Result<Self, Malformed> {
        let mut rest = Cut::new(entry);
        let kind = rest.u8("kind")?;
        if kind != MESSAGE {
            return Err(Malformed(format!("an entry of kind {kind} is not known")));
        }
        let time = Timestamp::from_unix_nanos(rest.u64("time")?);
        let event_len = rest.u8("length of the event's name")?;
        let topic_len = rest.u16("length of the topic")?;
        let key_len = rest.u32("length of the key")?;
        let event = rest.text(usize::from(event_len), "event's name")?;
        let event = event.parse().map_err(|error| Malformed(format!("the event's name: {error}")))?;
        let topic = match topic_len {
            NO_TOPIC => None,
            len => Some(Arc::from(rest.text(usize::from(len), "topic")?)),
        };
        let key = rest.bytes(usize::try_from(key_len).unwrap_or(usize::MAX), "key")?;
        Ok(Self { key, value: rest.rest(), event, topic, time })
    }
}

/// A message that a target is being given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// Its place in the queue: 0 for the first that was ever put, one more for each after it.
    pub number: u64,
    /// What is sent.
    pub message: Message,
    /// How often it was taken before and came back, since the queue was opened.
    pub attempts: u32,
}

impl Delivery {
    /// A message as a queue gives it the first time: for tests of targets.
    #[must_use]
    pub const fn new(number: u64, message: Message) -> Self {
        Self { number, message, attempts: 0 }
    }
}

/// Why bytes are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) String);

/// Takes the parts of an entry off its front.
#[derive(Debug)]
pub(crate) struct Cut {
    rest: Bytes,
    at: usize,
}

impl Cut {
    pub(crate) fn new(entry: &Bytes) -> Self {
        Self { rest: entry.clone(), at: 0 }
    }

    /// The next bytes; `what` is for the error.
    pub(crate) fn bytes(&mut self, len: usize, what: &str) -> Result<Bytes, Malformed> {
        if len > self.rest.len() {
            let (at, left) = (self.at, self.rest.len());
            return Err(Malformed(format!("the {what} at byte {at} takes {len} bytes, and {left} are left")));
        }
        self.at += len;
        Ok(self.rest.split_to(len))
    }

    pub(crate) fn text(&mut self, len: usize, what: &str) -> Result<String, Malformed> {
        let at = self.at;
        let bytes = self.bytes(len, what)?;
        let text = str::from_utf8(&bytes);
        text.map(str::to_owned).map_err(|error| Malformed(format!("the {what} at byte {at}: {error}")))
    }

    pub(crate) fn u8(&mut self, what: &str) -> Result<u8, Malformed> {
        self.array(what).map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self, what: &str) -> Result<u16, Malformed> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, Malformed> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &str) -> Result<u64, Malformed> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A count of things that take so many bytes each, which must be there.
    pub(crate) fn count(&mut self, each: usize, what: &str) -> Result<usize, Malformed> {
        let count = self.u32(what)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > self.rest.len() / each.max(1) {
            let left = self.rest.len();
            return Err(Malformed(format!("the {what} is {count}, which {left} bytes cannot hold")));
        }
        Ok(count)
    }

    /// All that is left.
    pub(crate) fn rest(self) -> Bytes {
        self.rest
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes(N, what)?);
        Ok(array)
    }
}

/// Kind of the entries that hold a message.
pub(super) const MESSAGE: u8 = 1;
/// What of a message's entry does not depend on its content.
const HEAD_LEN: usize = 16;
const NO_TOPIC: u16 = u16::MAX;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry_of(message: &Message) -> Bytes {
        let mut entry = message.encode_before_value().unwrap();
        entry.extend_from_slice(&message.value);
        entry.into()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            key in prop::collection::vec(any::<u8>(), 0..1200),
            value in prop::collection::vec(any::<u8>(), 0..3000),
            event in 0..EventName::ALL.len(),
            topic in prop::option::of(".{0,40}"),
            time in any::<u64>(),
        ) {
            let time = Timestamp::from_unix_nanos(time);
            let mut message = Message::new(EventName::ALL[event], key, value, time);
            message.topic = topic.map(Arc::from);
            let entry = entry_of(&message);
            prop_assert_eq!(entry.len(), message.encoded_len());
            prop_assert_eq!(Message::decode(&entry), Ok(message));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = Message::decode(&Bytes::from(bytes.clone())) {
                prop_assert_eq!(entry_of(&message), bytes);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let message = Message::new(EventName::ObjectCreatedPut, "b/k", "v", Timestamp::default());
        let entry = entry_of(&message);
        let cut = Message::decode(&entry.slice(..20)).unwrap_err();
        assert_eq!(cut.to_string(), "the event's name at byte 16 takes 20 bytes, and 4 are left");
        let mut other = entry.to_vec();
        other[0] = 9;
        assert_eq!(
            Message::decode(&other.into()).unwrap_err().to_string(),
            "an entry of kind 9 is not known"
        );
    }

    #[test]
    fn lengths_that_no_field_holds_are_refused() {
        let message = Message::new(EventName::ObjectCreatedPut, "b/k", "v", Timestamp::default());
        let topic = |len| "t".repeat(len);
        assert!(message.clone().with_topic(topic(65_534)).encode_before_value().is_some());
        assert!(message.with_topic(topic(65_535)).encode_before_value().is_none());
    }
}
