//! Keys of objects in records, and of records in Kafka.

use std::num::NonZeroU32;

use super::json::push_hex;
use crate::fnv::fnv1a_32;

/// The key of a record in Kafka, and what databases keep an object under: the bucket, a slash, and the object's key as
/// the client wrote it.
///
/// All events of an object have the same, so they stay in order and a compacted topic keeps the last one.
#[must_use]
pub fn record_key(bucket: &str, key: &str) -> String {
    [bucket, key].join("/")
}

/// The partition that `MinIO`'s Kafka client chooses for a key: FNV-1a over its 32 bits, the sign dropped.
///
/// It is librdkafka's partitioner `fnv1a`, and not the default of Java's client.
///
/// ```
/// # use std::num::NonZeroU32;
/// use kolumn_notify::event::{fnv1a_partition, record_key};
///
/// let twelve = NonZeroU32::new(12).ok_or("zero")?;
/// assert_eq!(fnv1a_partition(record_key("bucket", "object").as_bytes(), twelve), 11);
/// # Ok::<_, &str>(())
/// ```
#[must_use]
pub fn fnv1a_partition(key: &[u8], partitions: NonZeroU32) -> u32 {
    fnv1a_32(key).cast_signed().unsigned_abs() % partitions
}

/// Appends a key as a record has it: Go's `url.QueryEscape`, in AWS's styles with the slashes left as they are.
pub(super) fn push_encoded(out: &mut Vec<u8>, key: &str, slash: Slash) {
    let mut rest = key.as_bytes();
    while let Some(at) = rest.iter().position(|byte| !is_plain(*byte, slash)) {
        let Some((plain, tail)) = rest.split_at_checked(at) else { break };
        out.extend_from_slice(plain);
        let Some((byte, after)) = tail.split_first() else { break };
        rest = after;
        if *byte == b' ' {
            out.push(b'+');
        } else {
            out.push(b'%');
            push_hex(out, u64::from(*byte), 2, b'A');
        }
    }
    out.extend_from_slice(rest);
}

/// The key that was encoded; `None` if a percent sign is not followed by two hexadecimal digits, or the bytes are not
/// UTF-8.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let (digits, after) = rest.split_first_chunk::<2>()?;
                let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
                out.push(u8::try_from(high? << 4 | low?).ok()?);
                rest = after;
            }
            _ => out.push(*byte),
        }
    }
    String::from_utf8(out).ok()
}

/// What becomes of a slash in an encoded key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slash {
    /// It is written as `%2F`.
    Encoded,
    /// It stands for itself.
    Kept,
}

fn is_plain(byte: u8, slash: Slash) -> bool {
    match byte {
        b'/' => slash == Slash::Kept,
        b'-' | b'_' | b'.' | b'~' => true,
        _ => byte.is_ascii_alphanumeric(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(key: &str, slash: Slash) -> String {
        let mut out = Vec::new();
        push_encoded(&mut out, key, slash);
        String::from_utf8(out).unwrap()
    }

    #[track_caller]
    fn check(key: &str, minio: &str, aws: &str) {
        assert_eq!(encoded(key, Slash::Encoded), minio);
        assert_eq!(encoded(key, Slash::Kept), aws);
        assert_eq!(decode(minio).as_deref(), Some(key));
        assert_eq!(decode(aws).as_deref(), Some(key));
    }

    #[test]
    fn keys_are_encoded_as_query_parameters() {
        check("image.jpg", "image.jpg", "image.jpg");
        check("a/b c+d%e", "a%2Fb+c%2Bd%25e", "a/b+c%2Bd%25e");
        check(
            "Az09-_.~!*'()&=?#",
            "Az09-_.~%21%2A%27%28%29%26%3D%3F%23",
            "Az09-_.~%21%2A%27%28%29%26%3D%3F%23",
        );
        check("é漢🦀\n", "%C3%A9%E6%BC%A2%F0%9F%A6%80%0A", "%C3%A9%E6%BC%A2%F0%9F%A6%80%0A");
        let long = "é".repeat(512);
        check(&long, &"%C3%A9".repeat(512), &"%C3%A9".repeat(512));
    }

    #[test]
    fn texts_that_no_key_encodes_to_are_refused() {
        for wrong in ["%", "a%2", "%zz", "%+1", "%FF", "%C3"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        assert_eq!(decode("%2f").as_deref(), Some("/"));
    }

    #[track_caller]
    fn check_partition(key: &str, hash: u32, partitions: [u32; 3]) {
        assert_eq!(fnv1a_32(key.as_bytes()), hash);
        let of = |count| fnv1a_partition(key.as_bytes(), NonZeroU32::new(count).unwrap());
        assert_eq!([of(3), of(8), of(12)], partitions, "{key}");
    }

    #[test]
    fn partitions_are_those_of_minio_and_librdkafka() {
        check_partition("bucket/object", 0x10b3_4e5f, [2, 7, 11]);
        check_partition("images/myphoto.jpg", 0x1f9b_c84f, [0, 7, 3]);
        check_partition("test-bucket/image.jpg", 0xd8d9_16a5, [2, 3, 11]);
        check_partition("a/b c", 0x575d_c0f0, [0, 0, 0]);
    }

    #[test]
    fn record_keys_have_the_key_as_it_is() {
        assert_eq!(record_key("photos", "a b/ü+%.jpg"), "photos/a b/ü+%.jpg");
    }

    proptest! {
        #[test]
        fn any_key_comes_back_from_its_encoding(key in any::<String>()) {
            for slash in [Slash::Encoded, Slash::Kept] {
                let text = encoded(&key, slash);
                prop_assert_eq!(decode(&text), Some(key.clone()));
                prop_assert!(text.bytes().all(|byte| is_plain(byte, slash) || matches!(byte, b'+' | b'%')));
            }
        }
    }
}
