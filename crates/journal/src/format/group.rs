//! Groups and the entries in them.

use bytes::{Buf, BufMut};
use uuid::Uuid;

use super::crc::joined;
use super::crc32c;
use super::file_header::get_uuid;
use crate::position::{BLOCK_U64, round_up};

/// Length of a group's header.
pub(crate) const GROUP_HEADER_LEN: usize = 72;
/// Length of what stands before each entry: its length.
pub(crate) const ENTRY_FRAME_LEN: usize = 4;

/// What a group says of itself.
///
/// ```text
/// | 0 magic "KLMG" | 4 crc u32 | 8 position u64 | 16 previous u64 | 24 synced u64 | 32 first sequence u64 |
/// | 40 log id | 56 owner epoch u32 | 60 entry count u32 | 64 payload len u32 | 68 zero u32 | 72 payload | zeros to a multiple of 4096 |
/// payload = entry count * ( len u32 | bytes )
/// ```
///
/// INVARIANT: the checksum covers everything from `position` to the payload's end. As the position is in it and no
/// position is ever used twice, what a recycled file still holds of its former life is never valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) position: u64,
    /// Where the group before this one ends: the same as `position`, except in the first group of a file.
    pub(crate) previous: u64,
    /// Everything before this position was on the disk, by a sync that had returned, when this group was written.
    pub(crate) synced: u64,
    pub(crate) first_sequence: u64,
    pub(crate) log_id: Uuid,
    pub(crate) owner_epoch: u32,
    pub(crate) entry_count: u32,
    pub(crate) payload_len: u32,
}

const MAGIC: [u8; 4] = *b"KLMG";
const COVERED_START: usize = 8;

impl GroupHeader {
    /// Length of the group with its padding.
    pub(crate) fn group_len(&self) -> u64 {
        round_up(GROUP_HEADER_LEN as u64 + u64::from(self.payload_len))
    }

    /// Where the next group starts, unless the next file's.
    pub(crate) fn end(&self) -> u64 {
        self.position.saturating_add(self.group_len())
    }

    /// The sequence of the first entry after this group.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.first_sequence.saturating_add(u64::from(self.entry_count))
    }

    /// The part of the header that the checksum covers.
    fn covered(&self) -> [u8; GROUP_HEADER_LEN - COVERED_START] {
        let mut covered = [0; GROUP_HEADER_LEN - COVERED_START];
        let mut fields = &mut covered[..];
        fields.put_u64_le(self.position);
        fields.put_u64_le(self.previous);
        fields.put_u64_le(self.synced);
        fields.put_u64_le(self.first_sequence);
        fields.put_slice(self.log_id.as_bytes());
        fields.put_u32_le(self.owner_epoch);
        fields.put_u32_le(self.entry_count);
        fields.put_u32_le(self.payload_len);
        fields.put_u32_le(0);
        covered
    }

    /// Begins to encode the header: the payload is given to the result, in pieces.
    pub(crate) fn begin_encoding(&self) -> HeaderEncoder {
        let covered = self.covered();
        let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
        digest.update(&covered);
        HeaderEncoder { covered, digest }
    }

    /// The header at the start of these bytes, its checksum not yet checked. `None` if no group can start so.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = bytes.get(..GROUP_HEADER_LEN)?;
        if !fields.starts_with(&MAGIC) {
            return None;
        }
        fields.advance(COVERED_START);
        let header = Self {
            position: fields.get_u64_le(),
            previous: fields.get_u64_le(),
            synced: fields.get_u64_le(),
            first_sequence: fields.get_u64_le(),
            log_id: get_uuid(&mut fields),
            owner_epoch: fields.get_u32_le(),
            entry_count: fields.get_u32_le(),
            payload_len: fields.get_u32_le(),
        };
        let sane = fields.get_u32_le() == 0
            && header.position.is_multiple_of(BLOCK_U64)
            && header.previous <= header.position
            && header.synced <= header.position
            && u64::from(header.entry_count) * ENTRY_FRAME_LEN as u64 <= u64::from(header.payload_len);
        sane.then_some(header)
    }

    /// Whether these bytes, which start with this header, are what was written: checksum and framing.
    pub(crate) fn verify(&self, group: &[u8]) -> bool {
        let Ok(payload_len) = usize::try_from(self.payload_len) else { return false };
        let Some(covered) = group.get(COVERED_START..GROUP_HEADER_LEN + payload_len) else { return false };
        let Some(mut crc) = group.get(4..COVERED_START) else { return false };
        if crc.get_u32_le() != crc32c(&[covered]) {
            return false;
        }
        let mut walk = EntryWalk::new(group, self);
        let count = walk.by_ref().count();
        u32::try_from(count) == Ok(self.entry_count) && walk.is_done()
    }
}

/// A header whose payload is not known wholly yet.
#[derive(Debug)]
pub(crate) struct HeaderEncoder {
    covered: [u8; GROUP_HEADER_LEN - COVERED_START],
    digest: crc_fast::Digest,
}

impl HeaderEncoder {
    /// Takes the next piece of the payload in.
    pub(crate) fn payload(&mut self, piece: &[u8]) {
        self.digest.update(piece);
    }

    /// The header's bytes.
    pub(crate) fn finish(self) -> [u8; GROUP_HEADER_LEN] {
        let crc = value(&self.digest);
        self.with_checksum(crc)
    }

    /// The header's bytes before a payload that was summed up by itself.
    pub(crate) fn finish_before(self, payload: &PayloadSum) -> [u8; GROUP_HEADER_LEN] {
        let crc = joined(value(&self.digest), value(&payload.digest), payload.len);
        self.with_checksum(crc)
    }

    fn with_checksum(self, crc: u32) -> [u8; GROUP_HEADER_LEN] {
        let mut header = [0; GROUP_HEADER_LEN];
        let mut rest = &mut header[..];
        rest.put_slice(&MAGIC);
        rest.put_u32_le(crc);
        rest.put_slice(&self.covered);
        header
    }
}

fn value(digest: &crc_fast::Digest) -> u32 {
    u32::try_from(digest.finalize()).unwrap_or(u32::MAX)
}

/// The checksum of a payload whose header is not known yet.
#[derive(Debug)]
pub(crate) struct PayloadSum {
    digest: crc_fast::Digest,
    len: usize,
}

impl PayloadSum {
    pub(crate) fn new() -> Self {
        Self { digest: crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi), len: 0 }
    }

    /// Takes the next piece of the payload in.
    pub(crate) fn payload(&mut self, piece: &[u8]) {
        self.digest.update(piece);
        self.len += piece.len();
    }
}

/// The places of the entries in a group: start and length of their bytes, from the group's start.
#[derive(Debug)]
pub(crate) struct EntryWalk<'a> {
    group: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> EntryWalk<'a> {
    pub(crate) fn new(group: &'a [u8], header: &GroupHeader) -> Self {
        let end = GROUP_HEADER_LEN.saturating_add(usize::try_from(header.payload_len).unwrap_or(usize::MAX));
        Self { group, at: GROUP_HEADER_LEN, end: end.min(group.len()) }
    }

    /// Whether the payload was walked to its end.
    fn is_done(&self) -> bool {
        self.at == self.end
    }
}

impl Iterator for EntryWalk<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        let start = self.at.checked_add(ENTRY_FRAME_LEN)?;
        let mut frame = self.group.get(self.at..start).filter(|_| start <= self.end)?;
        let len = usize::try_from(frame.get_u32_le()).ok()?;
        let end = start.checked_add(len).filter(|end| *end <= self.end)?;
        self.at = end;
        Some((start, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> (GroupHeader, Vec<u8>) {
        let payload = [3, 0, 0, 0, b'a', b'b', b'c', 0, 0, 0, 0];
        let header = GroupHeader {
            position: 8192,
            previous: 4096,
            synced: 4096,
            first_sequence: 17,
            log_id: Uuid::from_u128(5),
            owner_epoch: 2,
            entry_count: 2,
            payload_len: 11,
        };
        let mut encoder = header.begin_encoding();
        encoder.payload(&payload[..4]);
        encoder.payload(&payload[4..]);
        let mut bytes = encoder.finish().to_vec();
        bytes.extend(payload);
        (header, bytes)
    }

    #[test]
    fn a_group_decodes_to_what_was_encoded() {
        let (header, bytes) = group();
        assert_eq!(GroupHeader::decode(&bytes).as_ref(), Some(&header));
        assert!(header.verify(&bytes));
        assert_eq!(EntryWalk::new(&bytes, &header).collect::<Vec<_>>(), [(76, 3), (83, 0)]);
    }

    #[test]
    fn a_payload_summed_up_before_its_header_gives_the_same_bytes() {
        let (header, bytes) = group();
        let mut sum = PayloadSum::new();
        sum.payload(&bytes[GROUP_HEADER_LEN..GROUP_HEADER_LEN + 4]);
        sum.payload(&bytes[GROUP_HEADER_LEN + 4..]);
        assert_eq!(header.begin_encoding().finish_before(&sum), bytes[..GROUP_HEADER_LEN]);
    }

    #[test]
    fn every_flipped_or_missing_byte_is_noticed() {
        let (_, bytes) = group();
        let valid = |bytes: &[u8]| GroupHeader::decode(bytes).is_some_and(|header| header.verify(bytes));
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(!valid(&flipped), "byte {at}");
            assert!(!valid(&bytes[..at]), "cut at {at}");
        }
    }
}
