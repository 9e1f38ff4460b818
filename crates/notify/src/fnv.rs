//! FNV-1a, the hash of Kafka partitions and of our own short digests.

/// Of 32 bits.
pub(crate) fn fnv1a_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Of 64 bits.
pub(crate) fn fnv1a_64(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_published_vectors() {
        for (text, short, long) in [
            ("", 0x811c_9dc5, 0xcbf2_9ce4_8422_2325),
            ("a", 0xe40c_292c, 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0xbf9c_f968, 0x8594_4171_f739_67e8),
        ] {
            assert_eq!((fnv1a_32(text.as_bytes()), fnv1a_64(text.bytes())), (short, long), "{text}");
        }
    }
}
