//! LZ4 frames.
//!
//! ```text
//! frame  => magic:4 flags:1 blockDescriptor:1 [contentSize:8] [dictionaryId:4] headerChecksum:1
//!           block* 0:4 [contentChecksum:4]
//! block  => size:4 data*size [blockChecksum:4]      the size's top bit means stored, not compressed
//! ```
//! All integers are little-endian; checksums are XXH32. Blocks are inflated one behind the other into the
//! output, which therefore is the dictionary that linked blocks refer to, and no block buffer exists
//! whose size a frame could choose.

use alloc::vec::Vec;
use std::io::Write;

use lz4_flex::block::{DecompressError, decompress_into, decompress_into_with_dict};
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};

use super::output::{Fault, Output};
use super::xxh32::xxh32;

pub(super) fn inflate(mut input: &[u8], output: &mut Output) -> Result<(), Fault> {
    loop {
        inflate_frame(&mut input, output)?;
        if input.is_empty() {
            return Ok(());
        }
    }
}

fn inflate_frame(input: &mut &[u8], output: &mut Output) -> Result<(), Fault> {
    let frame = Frame::read(input)?;
    let start = output.filled().len();
    loop {
        let size = read_u32(input)?;
        if size == 0 {
            break;
        }
        let data = take(input, (size & !STORED) as usize)?;
        if frame.has_block_checksums && read_u32(input)? != xxh32(data) {
            return Err(Fault::Corrupt("the checksum of a block is wrong"));
        }
        if size & STORED == 0 {
            inflate_block(&frame, data, start, output)?;
        } else {
            store_block(&frame, data, output)?;
        }
    }
    let content = output.filled().get(start..).unwrap_or_default();
    if frame.content_size.is_some_and(|size| size != content.len() as u64) {
        return Err(Fault::Corrupt("the frame's content has another length than it declares"));
    }
    if frame.has_content_checksum && read_u32(input)? != xxh32(content) {
        return Err(Fault::Corrupt("the frame's checksum is wrong"));
    }
    Ok(())
}

fn store_block(frame: &Frame, data: &[u8], output: &mut Output) -> Result<(), Fault> {
    if data.len() > frame.block_len_max {
        return Err(Fault::Corrupt("a block is larger than the frame allows"));
    }
    output.reserve(data.len())?;
    output.room(data.len()).copy_from_slice(data);
    output.advance(data.len());
    Ok(())
}

/// Inflates a block whose frame's content begins at `start` of the output.
fn inflate_block(frame: &Frame, data: &[u8], start: usize, output: &mut Output) -> Result<(), Fault> {
    // A byte of a length field adds at most 255 bytes, so that more than this cannot come out.
    let most = frame.block_len_max.min(data.len().saturating_mul(RATIO_MAX));
    let allowed = most.min(output.allowance());
    output.reserve(allowed)?;
    let (filled, room) = output.split();
    let room = room.get_mut(..allowed).unwrap_or_default();
    let written = if frame.has_linked_blocks {
        let window = filled.get(start.max(filled.len().saturating_sub(WINDOW_LEN))..);
        decompress_into_with_dict(data, room, window.unwrap_or_default())
    } else {
        decompress_into(data, room)
    };
    match written {
        Ok(written) => {
            output.advance(written);
            Ok(())
        }
        Err(DecompressError::OutputTooSmall { .. }) if allowed < most => Err(Fault::TooLarge),
        Err(_) => Err(Fault::Corrupt("a block is malformed")),
    }
}

pub(super) fn compress(records: &[u8], out: &mut Vec<u8>) -> Option<()> {
    // Independent blocks without a content size are what the Java client reads.
    let info = FrameInfo::new().block_size(BlockSize::Max64KB);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    encoder.write_all(records).ok()?;
    encoder.finish().ok()?;
    Some(())
}

/// What a frame's header says.
struct Frame {
    has_linked_blocks: bool,
    has_block_checksums: bool,
    has_content_checksum: bool,
    content_size: Option<u64>,
    block_len_max: usize,
}

impl Frame {
    fn read(input: &mut &[u8]) -> Result<Self, Fault> {
        if read_u32(input)? != MAGIC {
            return Err(Fault::Corrupt("the frame's magic number is missing"));
        }
        let header = *input;
        let &[flags, descriptor] = take(input, 2)? else { return Err(CUT) };
        if flags & 0b1100_0010 != 0b0100_0000 || descriptor & 0b1000_1111 != 0 {
            return Err(Fault::Corrupt("the frame is of an unknown version"));
        }
        let block_len_max = match descriptor >> 4 {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            7 => 4 << 20,
            _ => return Err(Fault::Corrupt("the frame's block size is unknown")),
        };
        let content_size = if flags & 0b1000 == 0 {
            None
        } else {
            let (size, rest) = input.split_first_chunk().ok_or(CUT)?;
            *input = rest;
            Some(u64::from_le_bytes(*size))
        };
        if flags & 0b1 != 0 {
            return Err(Fault::Corrupt("the frame needs a dictionary"));
        }
        let covered = header.get(..header.len() - input.len()).unwrap_or_default();
        let [_, checksum, ..] = xxh32(covered).to_le_bytes();
        if take(input, 1)? != [checksum] {
            return Err(Fault::Corrupt("the checksum of the frame's header is wrong"));
        }
        Ok(Self {
            has_linked_blocks: flags & 0b10_0000 == 0,
            has_block_checksums: flags & 0b1_0000 != 0,
            has_content_checksum: flags & 0b100 != 0,
            content_size,
            block_len_max,
        })
    }
}

fn take<'i>(input: &mut &'i [u8], len: usize) -> Result<&'i [u8], Fault> {
    let (taken, rest) = input.split_at_checked(len).ok_or(CUT)?;
    *input = rest;
    Ok(taken)
}

fn read_u32(input: &mut &[u8]) -> Result<u32, Fault> {
    let (value, rest) = input.split_first_chunk().ok_or(CUT)?;
    *input = rest;
    Ok(u32::from_le_bytes(*value))
}

const CUT: Fault = Fault::Corrupt("the frame is cut");
const MAGIC: u32 = 0x184d_2204;
const STORED: u32 = 1 << 31;
const RATIO_MAX: usize = 255;
const WINDOW_LEN: usize = 64 << 10;
