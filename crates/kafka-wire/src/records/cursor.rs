//! A cursor over the bytes of records: fixed integers and variable-length ones.

/// What is left to read, and nothing else: a copy of a cursor is a bookmark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'p> {
    rest: &'p [u8],
}

/// Why a read failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The bytes ended.
    Truncated,
    /// A variable-length integer has more bits than its type.
    VarintTooLong,
}

impl<'p> Cursor<'p> {
    pub(super) const fn new(bytes: &'p [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) const fn rest(&self) -> &'p [u8] {
        self.rest
    }

    pub(super) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'p [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        let (byte, rest) = self.rest.split_first().ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(*byte)
    }

    /// ```text
    /// VARINT => zig-zag of 32 bits, 7 bits a byte, least significant group first, 1 to 5 bytes
    /// ```
    #[inline]
    pub(super) fn varint(&mut self) -> Result<i32, Fault> {
        let raw = self.raw_varint()?;
        Ok((raw >> 1).cast_signed() ^ (raw & 1).cast_signed().wrapping_neg())
    }

    /// The bits of a VARINT: twice a number that is not negative, one less than twice the absolute of one that is.
    #[inline]
    pub(super) fn raw_varint(&mut self) -> Result<u32, Fault> {
        if let Some(raw) = self.one_or_two_groups() {
            return Ok(u32::from(raw));
        }
        let raw = self.many_groups(28, 0x0f)?;
        u32::try_from(raw).map_err(|_| Fault::VarintTooLong)
    }

    /// ```text
    /// VARLONG => zig-zag of 64 bits, 7 bits a byte, least significant group first, 1 to 10 bytes
    /// ```
    #[inline]
    pub(super) fn varlong(&mut self) -> Result<i64, Fault> {
        let raw = match self.one_or_two_groups() {
            Some(raw) => u64::from(raw),
            None => self.many_groups(63, 0x01)?,
        };
        Ok((raw >> 1).cast_signed() ^ (raw & 1).cast_signed().wrapping_neg())
    }

    /// Most integers of a record have one or two bytes, which every type has room for.
    #[inline]
    fn one_or_two_groups(&mut self) -> Option<u16> {
        let (raw, rest) = match *self.rest {
            [one @ 0..0x80, ref rest @ ..] => (u16::from(one), rest),
            [one, two @ 0..0x80, ref rest @ ..] => (u16::from(one & 0x7f) | u16::from(two) << 7, rest),
            _ => return None,
        };
        self.rest = rest;
        Some(raw)
    }

    /// Groups of 7 bits. The byte at `last_shift` ends the integer and holds no more than `last_max`.
    #[cold]
    fn many_groups(&mut self, last_shift: u32, last_max: u8) -> Result<u64, Fault> {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            if shift == last_shift && byte > last_max {
                return Err(Fault::VarintTooLong);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }
}

/// Appends a VARINT.
pub(super) fn put_varint(out: &mut alloc::vec::Vec<u8>, value: i32) {
    put_varlong(out, i64::from(value));
}

/// Appends a VARLONG; for a value of 32 bits this is its VARINT as well.
pub(super) fn put_varlong(out: &mut alloc::vec::Vec<u8>, value: i64) {
    let mut rest = zigzag(value);
    loop {
        let [group, ..] = (rest & 0x7f).to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            return out.push(group);
        }
        out.push(group | 0x80);
    }
}

/// The number of bytes that [`put_varlong`] appends.
pub(super) const fn varlong_len(value: i64) -> usize {
    let mut rest = zigzag(value) >> 7;
    let mut len = 1;
    while rest != 0 {
        rest >>= 7;
        len += 1;
    }
    len
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[track_caller]
    fn check_varlong(value: i64, bytes: &[u8]) {
        let mut out = Vec::new();
        put_varlong(&mut out, value);
        assert_eq!(out, bytes);
        assert_eq!(varlong_len(value), bytes.len());
        let mut cursor = Cursor::new(bytes);
        assert_eq!(cursor.varlong(), Ok(value));
        assert!(cursor.is_empty());
    }

    #[test]
    fn variable_length_integers_are_zig_zag_with_the_least_group_first() {
        check_varlong(0, &[0x00]);
        check_varlong(-1, &[0x01]);
        check_varlong(1, &[0x02]);
        check_varlong(63, &[0x7e]);
        check_varlong(-64, &[0x7f]);
        check_varlong(64, &[0x80, 0x01]);
        check_varlong(i64::from(i32::MAX), &[0xfe, 0xff, 0xff, 0xff, 0x0f]);
        check_varlong(i64::MAX, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        check_varlong(i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }

    #[test]
    fn integers_with_more_bits_than_their_type_are_refused() {
        assert_eq!(Cursor::new(&[0xfe, 0xff, 0xff, 0xff, 0x0f]).varint(), Ok(i32::MAX));
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x0f]).varint(), Ok(i32::MIN));
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x10]).varint(), Err(Fault::VarintTooLong));
        assert_eq!(Cursor::new(&[0x80; 6]).varint(), Err(Fault::VarintTooLong));
        assert_eq!(Cursor::new(&[0x80; 11]).varlong(), Err(Fault::VarintTooLong));
        assert_eq!(Cursor::new(&[0x80; 9]).varlong(), Err(Fault::Truncated));
        let ten = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(Cursor::new(&ten).varlong(), Err(Fault::VarintTooLong));
    }
}
