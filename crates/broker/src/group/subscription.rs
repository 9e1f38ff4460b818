//! The one thing that is read in the metadata of consumers: the topics that they subscribe to.
//!
//! ```text
//! | version int16 | count int32 | count * (length int16, name) | what later versions add |
//! ```

use std::collections::BTreeSet;

use bytes::Buf;

/// `None` if these bytes are no subscription. Takes memory only for names that are there.
pub(super) fn topics(mut metadata: &[u8]) -> Option<BTreeSet<String>> {
    let _version = metadata.try_get_i16().ok().filter(|version| *version >= 0)?;
    let count = u32::try_from(metadata.try_get_i32().ok()?).ok()?;
    let mut topics = BTreeSet::new();
    for _ in 0..count {
        let len = usize::try_from(metadata.try_get_i16().ok()?).ok()?;
        let (name, rest) = metadata.split_at_checked(len)?;
        topics.insert(str::from_utf8(name).ok()?.to_owned());
        metadata = rest;
    }
    Some(topics)
}
