//! A dead letter, and its bytes in the journal.

use bytes::Bytes;

use super::super::message::{Cut, Delivery, Malformed, Message};

/// A message that its target refused for good.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Letter {
    /// Its number among the dead letters.
    pub number: u64,
    /// Why the target did not take it; longer ones are cut.
    pub reason: String,
    /// How often it had been tried before.
    pub attempts: u32,
    /// The message.
    pub message: Message,
}

impl Letter {
    pub(super) fn decode(entry: &Bytes) -> Result<Self, Malformed> {
        let mut cut = Cut::new(entry);
        match cut.u8("kind")? {
            Kind::LETTER | Kind::CARRIED => {}
            other => return Err(Malformed(format!("an entry of kind {other} is no letter"))),
        }
        let number = cut.u64("number")?;
        let attempts = cut.u32("count of attempts")?;
        let reason_len = cut.u16("length of the reason")?;
        let reason = cut.text(usize::from(reason_len), "reason")?;
        Ok(Self { number, reason, attempts, message: Message::decode(&cut.rest())? })
    }
}

/// The kinds of entries.
#[derive(Debug)]
pub(super) struct Kind;

impl Kind {
    /// A letter that is new.
    pub(super) const LETTER: u8 = 1;
    /// A letter is no more.
    pub(super) const REMOVED: u8 = 2;
    /// A letter that was written before. It changes its place, if it is still there.
    pub(super) const CARRIED: u8 = 3;
}

/// What an entry of the journal says.
///
/// ```text
/// | kind u8 | number u64 | attempts u32 | reason length u16 | reason | message's entry      a letter, new or carried
/// | kind u8 | number u64                                                                   removed
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Letter(u64),
    Removed(u64),
    Carried(u64),
    /// Of a newer version, or damaged in a way that no checksum sees.
    Unknown,
}

impl Entry {
    pub(super) fn of(entry: &Bytes) -> Self {
        let mut cut = Cut::new(entry);
        let (Ok(kind), Ok(number)) = (cut.u8("kind"), cut.u64("number")) else { return Self::Unknown };
        match kind {
            Kind::LETTER => Self::Letter(number),
            Kind::REMOVED => Self::Removed(number),
            Kind::CARRIED => Self::Carried(number),
            _ => Self::Unknown,
        }
    }

    pub(super) fn removed(number: u64) -> Vec<u8> {
        let mut out = vec![Kind::REMOVED];
        out.extend_from_slice(&number.to_le_bytes());
        out
    }

    /// `None` if a length of the message is too long for its field.
    pub(super) fn letter(number: u64, delivery: &Delivery, reason: &str) -> Option<Vec<u8>> {
        let reason = reason.get(..reason.floor_char_boundary(REASON_LEN_MAX)).unwrap_or_default();
        let mut out = vec![Kind::LETTER];
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&delivery.attempts.to_le_bytes());
        out.extend_from_slice(&u16::try_from(reason.len()).ok()?.to_le_bytes());
        out.extend_from_slice(reason.as_bytes());
        out.extend_from_slice(&delivery.message.encode_before_value()?);
        out.extend_from_slice(&delivery.message.value);
        Some(out)
    }
}

const REASON_LEN_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventName, Timestamp};

    #[test]
    fn what_is_written_is_read_back_with_a_reason_that_fits() {
        let message =
            Message::new(EventName::ObjectRemovedDelete, "b/k", "{}", Timestamp::from_unix_nanos(5));
        let delivery = Delivery { number: 3, message: message.clone(), attempts: 2 };
        let entry = Bytes::from(Entry::letter(8, &delivery, &"ü".repeat(600)).unwrap());
        let expected = Letter { number: 8, reason: "ü".repeat(500), attempts: 2, message };
        assert_eq!(Letter::decode(&entry), Ok(expected));
        assert_eq!(Entry::of(&entry), Entry::Letter(8));
        let mut carried = entry.to_vec();
        carried[0] = Kind::CARRIED;
        assert_eq!(Entry::of(&carried.into()), Entry::Carried(8));
        let removed = Bytes::from(Entry::removed(8));
        assert_eq!(Entry::of(&removed), Entry::Removed(8));
        assert_eq!(Letter::decode(&removed).unwrap_err().to_string(), "an entry of kind 2 is no letter");
        assert_eq!(Entry::of(&removed.slice(..5)), Entry::Unknown);
    }
}
