//! CRC-32C, the checksum of batches: by the processor's instructions, or by a table without `std`.

/// The checksum of two pieces, the first of which may be empty, as if they were one.
#[cfg(feature = "std")]
pub(super) fn crc32c(first: &[u8], second: &[u8]) -> u32 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    digest.update(first);
    digest.update(second);
    // The library answers in 64 bits whatever the width.
    let [_, _, _, _, a, b, c, d] = digest.finalize().to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(not(feature = "std"))]
pub(super) use self::table::crc32c;

#[cfg(any(test, not(feature = "std")))]
mod table {
    /// A byte at a time, as the definition says.
    pub(in crate::records) fn crc32c(first: &[u8], second: &[u8]) -> u32 {
        !first.iter().chain(second).fold(u32::MAX, |crc, byte| {
            let [low, ..] = crc.to_le_bytes();
            (crc >> 8) ^ TABLE.get(usize::from(low ^ byte)).copied().unwrap_or_default()
        })
    }

    /// The remainders of all bytes.
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0_u32;
        let mut slots: &mut [u32] = &mut table;
        while let [slot, rest @ ..] = slots {
            let mut crc = byte;
            let mut bit = 0;
            while bit < 8 {
                crc = (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
                bit += 1;
            }
            *slot = crc;
            byte += 1;
            slots = rest;
        }
        table
    };

    /// Castagnoli's polynomial, bits reversed.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc_32c_comes_out_both_ways() {
        assert_eq!(crc32c(b"", b"123456789"), 0xe306_9283);
        assert_eq!(table::crc32c(b"1234", b"56789"), 0xe306_9283);
    }

    #[test]
    fn instructions_and_table_agree_at_every_length_and_cut() {
        let bytes: alloc::vec::Vec<u8> =
            (0..=255).cycle().map(|byte: u8| byte.wrapping_mul(31)).take(700).collect();
        for len in 0..bytes.len() {
            let (first, second) = bytes[..len].split_at(len / 3);
            assert_eq!(crc32c(first, second), table::crc32c(first, second), "at length {len}");
        }
    }
}
