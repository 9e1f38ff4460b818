//! XXH32 with seed 0, the checksum of LZ4 frames.

/// Four lanes take 4 bytes each of every 16; what is left is mixed in afterwards.
pub(super) fn xxh32(bytes: &[u8]) -> u32 {
    let (stripes, rest) = bytes.as_chunks::<16>();
    let mut hash = if stripes.is_empty() {
        PRIME_5
    } else {
        let mut lanes = [PRIME_1.wrapping_add(PRIME_2), PRIME_2, 0, 0_u32.wrapping_sub(PRIME_1)];
        for stripe in stripes {
            let (words, _) = stripe.as_chunks::<4>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                let mixed = lane.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(PRIME_2));
                *lane = mixed.rotate_left(13).wrapping_mul(PRIME_1);
            }
        }
        let [a, b, c, d] = lanes;
        a.rotate_left(1)
            .wrapping_add(b.rotate_left(7))
            .wrapping_add(c.rotate_left(12))
            .wrapping_add(d.rotate_left(18))
    };
    // The length counts modulo 2^32.
    let [l0, l1, l2, l3, ..] = (bytes.len() as u64).to_le_bytes();
    hash = hash.wrapping_add(u32::from_le_bytes([l0, l1, l2, l3]));
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        let mixed = hash.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(PRIME_3));
        hash = mixed.rotate_left(17).wrapping_mul(PRIME_4);
    }
    for byte in rest {
        let mixed = hash.wrapping_add(u32::from(*byte).wrapping_mul(PRIME_5));
        hash = mixed.rotate_left(11).wrapping_mul(PRIME_1);
    }
    hash ^= hash >> 15;
    hash = hash.wrapping_mul(PRIME_2);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(PRIME_3);
    hash ^ (hash >> 16)
}

const PRIME_1: u32 = 0x9e37_79b1;
const PRIME_2: u32 = 0x85eb_ca77;
const PRIME_3: u32 = 0xc2b2_ae3d;
const PRIME_4: u32 = 0x27d4_eb2f;
const PRIME_5: u32 = 0x1656_67b1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes_come_out() {
        assert_eq!(xxh32(b""), 0x02cc_5d05);
        assert_eq!(xxh32(b"a"), 0x550d_7456);
        assert_eq!(xxh32(b"abc"), 0x32d1_53ff);
        assert_eq!(xxh32(b"Nobody inspects the spammish repetition"), 0xe229_3b2f);
    }
}
