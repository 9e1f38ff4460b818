//! What the files hold, byte by byte: `FORMAT.md` as code, without input or output.

pub(crate) mod checkpoint;
mod crc;
pub(crate) mod file_header;
pub(crate) mod group;
pub(crate) mod names;

pub(crate) use group::{ENTRY_FRAME_LEN, GROUP_HEADER_LEN, GroupHeader, HeaderEncoder, PayloadSum};

/// The version of every file that this build writes, and the newest that it reads.
pub(crate) const VERSION: u32 = 1;

/// CRC-32C over several slices.
pub(crate) fn crc32c(parts: &[&[u8]]) -> u32 {
    if let [only] = parts {
        return crc_fast::crc32_iscsi(only);
    }
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    for part in parts {
        digest.update(part);
    }
    u32::try_from(digest.finalize()).unwrap_or(u32::MAX)
}

/// Why a file header or a checkpoint was not understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// Not a file of this kind, or its checksum is wrong.
    Damaged(&'static str),
    /// Written by a newer version, whose number is given.
    Newer(u32),
}
