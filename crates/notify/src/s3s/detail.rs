//! What the intent of an operation says besides bucket, key and time.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::caller::Caller;
use crate::event::Timestamp;

/// The detail of an intent: whose request it is, and by what its outcome is recognised. What the object is like is not
/// in it, since it is looked at.
///
/// JSON, so that a later version can add members; one that is missing has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Detail {
    version: u32,
    pub(super) caller: Caller,
    /// The object was not modified by the operation before this time, in nanoseconds since 1970.
    pub(super) not_before: u64,
    /// The size of the object that the operation makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<u64>,
    /// The version that the operation is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version_id: Option<String>,
    /// The digest of the tags that the object will have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tags: Option<String>,
}

impl Detail {
    pub(super) fn new(caller: Caller, not_before: Timestamp) -> Self {
        let not_before = not_before.unix_nanos();
        Self { version: VERSION, caller, not_before, ..Self::default() }
    }

    pub(super) fn encode(&self) -> Bytes {
        // Only maps with keys that are no text, and writers, can fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// What can be understood of it; of bytes that are not a detail, nothing: the event then only lacks it.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }
}

const VERSION: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_what_is_not_known_is_passed_over() {
        let caller = Caller { access_key: "k \"ey\"".into(), agent: "a".repeat(9), ..Caller::default() };
        let mut detail = Detail::new(caller, Timestamp::from_unix_nanos(u64::MAX));
        assert_eq!(Detail::decode(&detail.encode()), detail);
        detail.size = Some(0);
        detail.version_id = Some("v".into());
        detail.tags = Some("t".into());
        assert_eq!(Detail::decode(&detail.encode()), detail);
        let newer = br#"{"version":2,"size":7,"caller":{"access_key":"x","request_id":"1","host_id":"2","host":"","agent":""},"more":[]}"#;
        let read = Detail::decode(newer);
        assert_eq!((read.size, read.caller.access_key.as_str()), (Some(7), "x"));
        for odd in [&b""[..], b"{", b"[]", b"\xff"] {
            assert_eq!(Detail::decode(odd), Detail::default());
        }
    }
}
