//! Checkpoint files: one payload that stands for everything before a position.

use bytes::{Buf, BufMut};
use uuid::Uuid;

use super::file_header::get_uuid;
use super::{Malformed, VERSION, crc32c};

/// Length of a checkpoint's header.
pub(crate) const CHECKPOINT_HEADER_LEN: usize = 96;

/// What a checkpoint file says of itself.
///
/// ```text
/// | 0 magic "KLMNCKPT" | 8 version u32 | 12 crc u32 | 16 generation u64 | 24 log id | 40 tenant | 56 position u64 | 64 synced u64 |
/// | 72 next sequence u64 | 80 owner epoch u32 | 84 zero u32 | 88 payload len u64 | 96 payload | zeros to a multiple of 4096 |
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointHeader {
    /// Number of the checkpoint, counted from 1.
    pub(crate) generation: u64,
    pub(crate) log_id: Uuid,
    pub(crate) tenant: Uuid,
    /// The payload stands for the log up to here.
    pub(crate) position: u64,
    /// Everything before this position was on the disk when the checkpoint was written.
    pub(crate) synced: u64,
    /// The sequence of the first entry at or after `position`.
    pub(crate) next_sequence: u64,
    pub(crate) owner_epoch: u32,
    pub(crate) payload_len: u64,
}

const MAGIC: [u8; 8] = *b"KLMNCKPT";
const CRC_START: usize = 12;
const CRC_END: usize = 16;

impl CheckpointHeader {
    pub(crate) fn encode(&self, payload: &[u8]) -> [u8; CHECKPOINT_HEADER_LEN] {
        let mut header = [0; CHECKPOINT_HEADER_LEN];
        let mut fields = &mut header[..];
        fields.put_slice(&MAGIC);
        fields.put_u32_le(VERSION);
        fields.put_u32_le(0);
        fields.put_u64_le(self.generation);
        fields.put_slice(self.log_id.as_bytes());
        fields.put_slice(self.tenant.as_bytes());
        fields.put_u64_le(self.position);
        fields.put_u64_le(self.synced);
        fields.put_u64_le(self.next_sequence);
        fields.put_u32_le(self.owner_epoch);
        fields.put_u32_le(0);
        fields.put_u64_le(self.payload_len);
        let crc = checksum(&header, payload);
        for (at, byte) in header.iter_mut().skip(CRC_START).zip(crc.to_le_bytes()) {
            *at = byte;
        }
        header
    }

    /// The header of these bytes, a whole checkpoint file, and the place of its payload.
    pub(crate) fn decode(file: &[u8]) -> Result<(Self, std::ops::Range<usize>), Malformed> {
        let Some(header) = file.get(..CHECKPOINT_HEADER_LEN) else {
            return Err(Malformed::Damaged("the checkpoint's header is cut"));
        };
        let mut fields = header;
        let mut magic = [0; 8];
        fields.copy_to_slice(&mut magic);
        if magic != MAGIC {
            return Err(Malformed::Damaged("the checkpoint has no magic"));
        }
        let version = fields.get_u32_le();
        let crc = fields.get_u32_le();
        let decoded = Self {
            generation: fields.get_u64_le(),
            log_id: get_uuid(&mut fields),
            tenant: get_uuid(&mut fields),
            position: fields.get_u64_le(),
            synced: fields.get_u64_le(),
            next_sequence: fields.get_u64_le(),
            owner_epoch: fields.get_u32_le(),
            payload_len: {
                fields.advance(4);
                fields.get_u64_le()
            },
        };
        let end =
            usize::try_from(decoded.payload_len).ok().and_then(|len| len.checked_add(CHECKPOINT_HEADER_LEN));
        let Some(range) = end.map(|end| CHECKPOINT_HEADER_LEN..end) else {
            return Err(Malformed::Damaged("the checkpoint's length is impossible"));
        };
        let Some(payload) = file.get(range.clone()) else {
            return Err(Malformed::Damaged("the checkpoint is cut"));
        };
        if crc != checksum(header, payload) {
            return Err(Malformed::Damaged("the checkpoint's checksum is wrong"));
        }
        if version > VERSION {
            return Err(Malformed::Newer(version));
        }
        Ok((decoded, range))
    }
}

/// The checksum covers everything but itself.
fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let before = header.get(..CRC_START).unwrap_or_default();
    crc32c(&[before, header.get(CRC_END..).unwrap_or_default(), payload])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (CheckpointHeader, Vec<u8>) {
        let header = CheckpointHeader {
            generation: 4,
            log_id: Uuid::from_u128(1),
            tenant: Uuid::from_u128(2),
            position: 12288,
            synced: 12288,
            next_sequence: 40,
            owner_epoch: 6,
            payload_len: 5,
        };
        let mut bytes = header.encode(b"state").to_vec();
        bytes.extend(b"state");
        (header, bytes)
    }

    #[test]
    fn a_checkpoint_decodes_to_what_was_encoded() {
        let (header, mut bytes) = file();
        bytes.extend([0; 50]);
        assert_eq!(CheckpointHeader::decode(&bytes), Ok((header, 96..101)));
    }

    #[test]
    fn every_flipped_or_missing_byte_is_noticed() {
        let (_, bytes) = file();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(matches!(CheckpointHeader::decode(&flipped), Err(Malformed::Damaged(_))), "byte {at}");
            assert!(CheckpointHeader::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
