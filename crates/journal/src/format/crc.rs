//! CRC-32C of bytes that follow each other, from the checksums of both.
//!
//! A checksum is the remainder of a polynomial over one bit, reflected: the highest bit of the number is the factor of
//! 1. Bytes that follow multiply it by x⁸ each, so that joining two checksums is one multiplication modulo the
//! polynomial; the power is put together from its squares.

/// The polynomial of CRC-32C without its highest term.
const POLYNOMIAL: u32 = 0x82f6_3b78;
const ONE: u32 = 1 << 31;
const X: u32 = 1 << 30;

/// The checksum of `second_len` bytes that have the second checksum, behind bytes that have the first.
pub(super) fn joined(first: u32, second: u32, second_len: usize) -> u32 {
    let mut power = ONE;
    let mut rest = second_len;
    for square in SQUARES_OF_BYTES {
        if rest == 0 {
            break;
        }
        if rest & 1 == 1 {
            power = product(power, square);
        }
        rest >>= 1;
    }
    product(first, power) ^ second
}

/// x to the power of 8, 16, 32, …: what 1, 2, 4, … bytes multiply by.
const SQUARES_OF_BYTES: [u32; 64] = {
    let mut squares = [0; 64];
    let mut power = product(product(X, X), product(X, X));
    power = product(power, power);
    let mut at = 0;
    while at < squares.len() {
        squares[at] = power;
        power = product(power, power);
        at += 1;
    }
    squares
};

const fn product(a: u32, b: u32) -> u32 {
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
