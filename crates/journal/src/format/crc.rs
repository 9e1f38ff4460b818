//! CRC-32C of bytes that follow each other, from the checksums of both.
//!
//! A checksum is the remainder of a polynomial over single bits, reflected: the highest bit of the number belongs to the
//! power of zero. Each byte that follows multiplies it by x⁸, so that joining two checksums is one multiplication modulo
//! the polynomial; the power is put together from its squares.

/// The polynomial of CRC-32C without its highest term.
const POLYNOMIAL: u32 = 0x82f6_3b78;
const ONE: u32 = 1 << 31;
/// What a byte multiplies by.
const X8: u32 = ONE >> 8;

/// The checksum of `second_len` bytes that have the second checksum, behind bytes that have the first.
pub(super) fn joined(first: u32, second: u32, second_len: usize) -> u32 {
    let (mut power, mut square, mut rest) = (ONE, X8, second_len);
    while rest > 0 {
        if rest & 1 == 1 {
            power = product(power, square);
        }
        square = product(square, square);
        rest >>= 1;
    }
    product(first, power) ^ second
}

fn product(a: u32, b: u32) -> u32 {
    let (mut sum, mut term, mut factor) = (0, b, a);
    // From the lowest power of the one factor on, the other is multiplied by x at each step.
    while factor != 0 {
        if factor & ONE != 0 {
            sum ^= term;
        }
        factor <<= 1;
        term = if term & 1 == 0 { term >> 1 } else { (term >> 1) ^ POLYNOMIAL };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::crc32c;

    #[test]
    fn a_joined_checksum_is_that_of_all_bytes() {
        let bytes: Vec<u8> = (0..70_000_u32).map(|nth| u8::try_from(nth * 7 % 251).unwrap()).collect();
        for (first_len, second_len) in
            [(0, 0), (0, 5), (64, 0), (1, 1), (64, 4096), (64, 69_000), (33_333, 31)]
        {
            let (first, rest) = bytes.split_at(first_len);
            let second = &rest[..second_len];
            let joined = joined(crc32c(&[first]), crc32c(&[second]), second_len);
            assert_eq!(joined, crc32c(&[first, second]), "{first_len} and {second_len} bytes");
        }
    }
}
