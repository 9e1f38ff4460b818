//! Zstandard frames.
//!
//! A whole payload is inflated by one call, straight into the output, which so needs no window. The call
//! wants all of its room beforehand; how much that can be is read from the headers of the blocks, not
//! from the content size that a frame declares, and the room grows only as the data fills it.
//!
//! ```text
//! frame => magic:4 descriptor:1 [window:1] [dictionaryId] [contentSize] block+ [checksum:4]
//! block => header:3 (bit 0 last, bits 1-2 type, then the size) data
//! skippable => 0x184D2A50 to 0x184D2A5F:4 size:4 data*size
//! ```

use alloc::vec::Vec;

use zstd::zstd_safe::{self, CCtx, DCtx, get_error_name};

use super::output::{Fault, Output};

/// A decompression context, made when it is first needed.
#[derive(Default)]
pub(super) struct Context(Option<DCtx<'static>>);

impl Context {
    pub(super) fn inflate(&mut self, input: &[u8], output: &mut Output) -> Result<(), Fault> {
        let size = Size::of_content(input)?;
        if size.at_least > output.allowance() as u64 {
            return Err(Fault::TooLarge);
        }
        let at_most = usize::try_from(size.at_most).unwrap_or(usize::MAX);
        let ceiling = at_most.min(output.allowance());
        let mut room =
            input.len().saturating_mul(RATIO_USUAL).clamp(ROOM_MIN, ROOM_MIN.max(ceiling)).min(ceiling);
        let context = match &mut self.0 {
            Some(context) => context,
            none => none.insert(DCtx::try_create().ok_or(Fault::Corrupt("no memory for a context"))?),
        };
        loop {
            output.reserve(room)?;
            match context.decompress(output.room(room), input) {
                Ok(written) => {
                    output.advance(written);
                    return Ok(());
                }
                Err(code) if get_error_name(code) != ROOM_TOO_SMALL => {
                    return Err(Fault::Corrupt(get_error_name(code)));
                }
                Err(_) if room < ceiling => room = room.saturating_mul(4).min(ceiling),
                Err(_) if ceiling < at_most => return Err(Fault::TooLarge),
                Err(code) => return Err(Fault::Corrupt(get_error_name(code))),
            }
        }
    }
}

pub(super) fn compress(records: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.resize(start + zstd_safe::compress_bound(records.len()), 0);
    let room = out.get_mut(start..)?;
    let written = CCtx::try_create()?.compress(room, records, LEVEL).ok()?;
    out.truncate(start + written);
    Some(())
}

/// What the block headers say about the length of the content.
#[derive(Default)]
struct Size {
    at_least: u64,
    at_most: u64,
}

impl Size {
    fn of_content(mut input: &[u8]) -> Result<Self, Fault> {
        let mut size = Self::default();
        loop {
            let magic = read_le::<4>(&mut input)?;
            if magic == MAGIC {
                size.add_frame(&mut input)?;
            } else if magic & !0xf == MAGIC_SKIPPABLE {
                let len = u64::from(read_le::<4>(&mut input)?);
                skip(&mut input, len)?;
            } else {
                return Err(Fault::Corrupt("the frame's magic number is missing"));
            }
            if input.is_empty() {
                return Ok(size);
            }
        }
    }

    fn add_frame(&mut self, input: &mut &[u8]) -> Result<(), Fault> {
        let descriptor = read_le::<1>(input)?;
        let is_single_segment = descriptor & 0b10_0000 != 0;
        let window_len = u64::from(!is_single_segment);
        let dictionary_id_len = [0, 1, 2, 4].get((descriptor & 0b11) as usize).copied().unwrap_or(0);
        let content_size_len = match descriptor >> 6 {
            0 => u64::from(is_single_segment),
            power => 1 << power,
        };
        skip(input, window_len + dictionary_id_len + content_size_len)?;
        loop {
            let header = u64::from(read_le::<3>(input)?);
            let size = header >> 3;
            if size > BLOCK_LEN_MAX {
                return Err(Fault::Corrupt("a block is larger than the format allows"));
            }
            let (data_len, at_least, at_most) = match (header >> 1) & 0b11 {
                0 => (size, size, size),
                1 => (1, size, size),
                2 => (size, 0, BLOCK_LEN_MAX),
                _ => return Err(Fault::Corrupt("the type of a block is unknown")),
            };
            skip(input, data_len)?;
            self.at_least = self.at_least.saturating_add(at_least);
            self.at_most = self.at_most.saturating_add(at_most);
            if header & 1 == 1 {
                break;
            }
        }
        skip(input, if descriptor & 0b100 == 0 { 0 } else { 4 })
    }
}

fn read_le<const N: usize>(input: &mut &[u8]) -> Result<u32, Fault> {
    const { assert!(N <= 4, "the integer fits 32 bits") };
    let (bytes, rest) = input.split_first_chunk::<N>().ok_or(CUT)?;
    *input = rest;
    Ok(bytes.iter().rev().fold(0, |value, byte| (value << 8) | u32::from(*byte)))
}

fn skip(input: &mut &[u8], len: u64) -> Result<(), Fault> {
    let len = usize::try_from(len).map_err(|_| CUT)?;
    *input = input.get(len..).ok_or(CUT)?;
    Ok(())
}

const CUT: Fault = Fault::Corrupt("the frame is cut");
const MAGIC: u32 = 0xfd2f_b528;
const MAGIC_SKIPPABLE: u32 = 0x184d_2a50;
const BLOCK_LEN_MAX: u64 = 128 << 10;
/// The library's default, and that of the clients.
const LEVEL: i32 = 3;
/// Records rarely compress better, so that the first attempt mostly is the only one.
const RATIO_USUAL: usize = 16;
const ROOM_MIN: usize = 4 << 10;
/// The library's name of the error, the only one that more room cures.
const ROOM_TOO_SMALL: &str = "Destination buffer is too small";
