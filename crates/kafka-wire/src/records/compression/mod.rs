//! The codecs of payloads: inflation within a limit, and compression.
//!
//! No length that the data declares is believed before as much data as that takes has been seen: each
//! codec bounds its output by its input, and the buffer grows with what really comes out.

#[cfg(feature = "gzip")]
mod gzip;
#[cfg(feature = "lz4")]
mod lz4;
mod output;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "lz4")]
mod xxh32;
#[cfg(feature = "zstd")]
mod zstd;

use alloc::vec::Vec;
use core::fmt;

use self::output::{Fault, Output};
use super::attributes::Compression;
use super::error::{BuildError, BuildErrorKind, InflateError, InflateErrorKind};

/// Inflates payloads, one after the other, into a buffer that it keeps.
///
/// The buffer is as large as the largest payload so far; [`shrink_to`](Self::shrink_to) gives memory back
/// after an unusual one.
#[derive(Default)]
pub struct Inflater {
    output: Output,
    #[cfg(feature = "zstd")]
    zstd: zstd::Context,
}

impl Inflater {
    /// An inflater that has allocated nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Inflates a payload; one that is not compressed is returned as it is, whatever the limit.
    ///
    /// # Errors
    /// If the codec is not built, if the data is damaged, or if it inflates to more than `limit` bytes.
    pub fn inflate<'s>(
        &'s mut self,
        codec: Compression,
        payload: &'s [u8],
        limit: usize,
    ) -> Result<&'s [u8], InflateError> {
        self.output.start(limit);
        let done: Result<(), Fault> = match codec {
            Compression::None => return Ok(payload),
            #[cfg(feature = "gzip")]
            Compression::Gzip => gzip::inflate(payload, &mut self.output),
            #[cfg(feature = "snappy")]
            Compression::Snappy => snappy::inflate(payload, &mut self.output),
            #[cfg(feature = "lz4")]
            Compression::Lz4 => lz4::inflate(payload, &mut self.output),
            #[cfg(feature = "zstd")]
            Compression::Zstd => self.zstd.inflate(payload, &mut self.output),
            #[cfg(not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")))]
            _ => Err(Fault::NotBuilt),
        };
        done.map_err(|fault| match fault {
            Fault::Corrupt(reason) => InflateError::new(InflateErrorKind::Corrupt(codec), reason),
            Fault::TooLarge => InflateError::new(InflateErrorKind::TooLarge(codec), ""),
            #[cfg(not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")))]
            Fault::NotBuilt => InflateError::new(InflateErrorKind::CodecNotBuilt(codec), ""),
        })?;
        Ok(self.output.filled())
    }

    /// How many bytes the buffer holds on to.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.output.capacity()
    }

    /// Gives memory back, except for `len` bytes.
    pub fn shrink_to(&mut self, len: usize) {
        self.output.shrink_to(len);
    }
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

/// Compresses records and appends the result to `out`.
pub(super) fn compress(codec: Compression, records: &[u8], out: &mut Vec<u8>) -> Result<(), BuildError> {
    let done: Option<()> = match codec {
        Compression::None => {
            out.extend_from_slice(records);
            Some(())
        }
        #[cfg(feature = "gzip")]
        Compression::Gzip => gzip::compress(records, out),
        #[cfg(feature = "snappy")]
        Compression::Snappy => snappy::compress(records, out),
        #[cfg(feature = "lz4")]
        Compression::Lz4 => lz4::compress(records, out),
        #[cfg(feature = "zstd")]
        Compression::Zstd => zstd::compress(records, out),
        #[cfg(not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")))]
        _ => return Err(BuildError::new(BuildErrorKind::CodecNotBuilt(codec))),
    };
    done.ok_or(BuildError::new(BuildErrorKind::CodecFailed(codec)))
}
