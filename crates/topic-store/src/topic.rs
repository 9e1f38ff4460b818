//! Views, topics and the rules for their names.

use std::sync::Arc;

use uuid::Uuid;

use crate::config::TopicConfig;
use crate::ids::{Timestamp, TopicId, ViewId};

/// A bucket with Kafka enabled: what a client sees as one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct View {
    /// Its identity in the store.
    pub id: ViewId,
    /// The bucket's name.
    pub bucket: Arc<str>,
    /// The cluster id that clients are told: a uuid as 22 characters of URL-safe base64.
    pub cluster_id: Arc<str>,
    /// When it was created.
    pub created: Timestamp,
}

/// A topic at one moment: its partitions may become more and its settings others, the rest stays. What grows in it is kept
/// elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Topic {
    /// Its identity.
    pub id: TopicId,
    /// The view that it belongs to.
    pub view: ViewId,
    /// Its name, unique in the view.
    pub name: Arc<str>,
    /// How many partitions it has; at least one.
    pub partitions: i32,
    /// Its settings.
    pub config: TopicConfig,
    /// When it was created.
    pub created: Timestamp,
}

/// What [`Store::create_topic`](crate::Store::create_topic) is asked for.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers build it field by field")]
pub struct NewTopic {
    /// The name; see [`name_fault`] for the rules.
    pub name: String,
    /// The number of partitions, 1 to the limit of the settings.
    pub partitions: i32,
    /// Its settings.
    pub config: TopicConfig,
}

/// Says what is wrong with a topic name, if anything.
///
/// ```text
/// name = 1*249( ALPHA / DIGIT / "." / "_" / "-" )   ; but neither "." nor ".."
/// ```
///
/// ```
/// assert_eq!(kolumn_topic_store::name_fault("orders.eu-1"), None);
/// assert!(kolumn_topic_store::name_fault("orders/eu").is_some());
/// ```
#[must_use]
pub fn name_fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("a topic name cannot be empty");
    }
    if name == "." || name == ".." {
        return Some("a topic name cannot be `.` or `..`");
    }
    if name.len() > NAME_LEN_MAX {
        return Some("a topic name has at most 249 characters");
    }
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !name.bytes().all(legal) {
        return Some("a topic name consists of ASCII letters, digits, `.`, `_` and `-`");
    }
    None
}

/// The form in which two names are compared: `.` and `_` collide, because metrics use both for one character.
pub(crate) fn collision_key(name: &str) -> String {
    name.replace('.', "_")
}

/// A uuid as 22 characters of URL-safe base64 without padding, as Kafka writes cluster ids.
pub(crate) fn base64_of(id: Uuid) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(22);
    for triple in id.as_bytes().chunks(3) {
        let mut bits = 0_u32;
        for index in 0..3 {
            bits = bits << 8 | u32::from(triple.get(index).copied().unwrap_or(0));
        }
        for digit in 0..=triple.len() {
            let shift = 18_usize.saturating_sub(digit.saturating_mul(6));
            let value = usize::try_from(bits >> shift & 63).unwrap_or(0);
            text.push(char::from(ALPHABET.get(value).copied().unwrap_or(b'A')));
        }
    }
    text
}

const NAME_LEN_MAX: usize = 249;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, legal: bool) {
        assert_eq!(name_fault(name).is_none(), legal, "{name}");
    }

    #[test]
    fn topic_names_follow_kafkas_rules() {
        check("a", true);
        check("A.b_c-9", true);
        check(&"x".repeat(249), true);
        check(&"x".repeat(250), false);
        check("", false);
        check(".", false);
        check("..", false);
        check("...", true);
        check("a b", false);
        check("ä", false);
    }

    #[test]
    fn a_cluster_id_has_22_characters_of_url_safe_base64() {
        assert_eq!(base64_of(Uuid::nil()), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(base64_of(Uuid::max()), "_____________________w");
        assert_eq!(
            base64_of(Uuid::from_u128(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f)),
            "AAECAwQFBgcICQoLDA0ODw"
        );
    }
}
