//! Unsigned variable-length numbers: seven bits a byte, the least significant first.

use crate::error::{DecodeError, Reason};
use crate::reader::Reader;
use crate::writer::Writer;

const MORE: u8 = 0x80;

/// `UNSIGNED_VARINT => (1xxxxxxx)*4 0xxxxxxx`, at most five bytes, of which the fifth has four bits.
pub(crate) fn read_u32(reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let mut value = 0;
    for shift in [0, 7, 14, 21, 28] {
        let [byte] = reader.i8()?.to_be_bytes();
        let bits = u32::from(byte & !MORE);
        if shift == 28 && bits > 0x0f {
            break;
        }
        value |= bits << shift;
        if byte & MORE == 0 {
            return Ok(value);
        }
    }
    Err(reader.error(Reason::Varint))
}

pub(crate) fn write_u32(writer: &mut Writer, value: u32) {
    // Nearly all are lengths and counts of little.
    if let Ok(byte @ 0..MORE) = u8::try_from(value) {
        return writer.bytes(&[byte]);
    }
    let mut encoded = [0; 5];
    let mut len = 0;
    let mut rest = value;
    for slot in &mut encoded {
        let [.., bits] = (rest & 0x7f).to_be_bytes();
        rest >>= 7;
        len += 1;
        if rest == 0 {
            *slot = bits;
            break;
        }
        *slot = bits | MORE;
    }
    writer.bytes(encoded.get(..len).unwrap_or(&encoded));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::Encoded;

    #[test]
    fn every_length_of_number_round_trips() {
        for bit in 0..32 {
            for value in [1_u32 << bit, (1 << bit) - 1, u32::MAX >> bit] {
                let bytes = Encoded::build_contiguous(|writer| {
                    write_u32(writer, value);
                    Ok(())
                })
                .unwrap();
                let mut reader = Reader::new(&bytes);
                assert_eq!(read_u32(&mut reader).unwrap(), value);
                assert_eq!(reader.remaining(), 0);
            }
        }
    }

    #[test]
    fn a_sixth_byte_and_a_thirty_third_bit_are_refused() {
        assert!(read_u32(&mut Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0])).is_err());
        assert!(read_u32(&mut Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x1f])).is_err());
        assert_eq!(read_u32(&mut Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f])).unwrap(), u32::MAX);
        assert!(read_u32(&mut Reader::new(&[0x80])).is_err());
    }
}
