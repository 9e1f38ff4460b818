//! The first block of a journal file.

use bytes::{Buf, BufMut};
use uuid::Uuid;

use super::{Malformed, VERSION, crc32c};
use crate::position::BLOCK;

/// What a journal file says of itself.
///
/// ```text
/// | 0 magic "KLMNJRNL" | 8 version u32 | 12 crc u32 | 16 generation u64 | 24 log id | 40 tenant | 56 base u64 | 64 len u64 | 72 zeros … 4096 |
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// How many times the file has been taken into use: 1 for a fresh one.
    pub(crate) generation: u64,
    pub(crate) log_id: Uuid,
    pub(crate) tenant: Uuid,
    pub(crate) base: u64,
    /// Length of the whole file.
    pub(crate) len: u64,
}

const MAGIC: [u8; 8] = *b"KLMNJRNL";
const CRC_START: usize = 12;
const CRC_END: usize = 16;

impl FileHeader {
    /// Writes the header at the start of a block of zeros.
    pub(crate) fn encode(&self, block: &mut [u8]) {
        let mut fields = Vec::with_capacity(BLOCK);
        fields.put_slice(&MAGIC);
        fields.put_u32_le(VERSION);
        fields.put_u32_le(0);
        fields.put_u64_le(self.generation);
        fields.put_slice(self.log_id.as_bytes());
        fields.put_slice(self.tenant.as_bytes());
        fields.put_u64_le(self.base);
        fields.put_u64_le(self.len);
        fields.resize(BLOCK, 0);
        let crc = checksum(&fields);
        for (at, byte) in fields.iter_mut().skip(CRC_START).zip(crc.to_le_bytes()) {
            *at = byte;
        }
        for (to, from) in block.iter_mut().zip(fields) {
            *to = from;
        }
    }

    pub(crate) fn decode(block: &[u8]) -> Result<Self, Malformed> {
        let Some((mut fields, _)) =
            block.split_first_chunk::<BLOCK>().map(|(first, rest)| (&first[..], rest))
        else {
            return Err(Malformed::Damaged("the file header is cut"));
        };
        let whole = fields;
        let mut magic = [0; 8];
        fields.copy_to_slice(&mut magic);
        if magic != MAGIC {
            return Err(Malformed::Damaged("the file header has no magic"));
        }
        let version = fields.get_u32_le();
        if fields.get_u32_le() != checksum(whole) {
            return Err(Malformed::Damaged("the checksum of the file header is wrong"));
        }
        if version > VERSION {
            return Err(Malformed::Newer(version));
        }
        Ok(Self {
            generation: fields.get_u64_le(),
            log_id: get_uuid(&mut fields),
            tenant: get_uuid(&mut fields),
            base: fields.get_u64_le(),
            len: fields.get_u64_le(),
        })
    }
}

/// Reads sixteen bytes; the caller has checked that they are there.
pub(super) fn get_uuid(fields: &mut &[u8]) -> Uuid {
    let mut bytes = [0; 16];
    fields.copy_to_slice(&mut bytes);
    Uuid::from_bytes(bytes)
}

/// The checksum covers everything but itself.
fn checksum(block: &[u8]) -> u32 {
    crc32c(&[block.get(..CRC_START).unwrap_or_default(), block.get(CRC_END..).unwrap_or_default()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FileHeader {
        FileHeader {
            generation: 3,
            log_id: Uuid::from_u128(7),
            tenant: Uuid::from_u128(9),
            base: 1 << 20,
            len: 1 << 16,
        }
    }

    #[test]
    fn a_header_decodes_to_what_was_encoded() {
        let mut block = [0; BLOCK];
        header().encode(&mut block);
        assert_eq!(FileHeader::decode(&block), Ok(header()));
    }

    #[test]
    fn every_flipped_byte_of_a_header_is_noticed() {
        let mut block = [0; BLOCK];
        header().encode(&mut block);
        for at in 0..BLOCK {
            block[at] ^= 0x40;
            assert!(matches!(FileHeader::decode(&block), Err(Malformed::Damaged(_))), "byte {at}");
            block[at] ^= 0x40;
        }
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let mut block = [0; BLOCK];
        header().encode(&mut block);
        block[8] = 2;
        let crc = checksum(&block);
        block[CRC_START..CRC_END].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(FileHeader::decode(&block), Err(Malformed::Newer(2)));
    }
}
