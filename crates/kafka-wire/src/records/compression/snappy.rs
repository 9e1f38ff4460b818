//! Snappy: one raw block, or the blocks of the Java client's framing.
//!
//! ```text
//! framed => 0x82 "SNAPPY" 0x00 version:INT32 compatible:INT32 block*
//! block  => length:INT32 raw
//! raw    => uncompressed length as an unsigned varint, then literals and copies
//! ```

use alloc::vec::Vec;

use super::output::{Fault, Output};

pub(super) fn inflate(input: &[u8], output: &mut Output) -> Result<(), Fault> {
    // No raw block begins like the frame: a copy (0x4e) cannot come before the first literal.
    let Some(framed) = input.strip_prefix(&MAGIC) else {
        return inflate_block(input, output);
    };
    let (_versions, mut blocks) =
        framed.split_first_chunk::<8>().ok_or(Fault::Corrupt("the frame's header is cut"))?;
    while !blocks.is_empty() {
        let (length, rest) =
            blocks.split_first_chunk().ok_or(Fault::Corrupt("the length of a block is cut"))?;
        let length = usize::try_from(i32::from_be_bytes(*length))
            .map_err(|_| Fault::Corrupt("the length of a block is negative"))?;
        let (block, rest) = rest.split_at_checked(length).ok_or(Fault::Corrupt("a block is cut"))?;
        inflate_block(block, output)?;
        blocks = rest;
    }
    Ok(())
}

fn inflate_block(block: &[u8], output: &mut Output) -> Result<(), Fault> {
    let declared = snap::raw::decompress_len(block)
        .map_err(|_| Fault::Corrupt("the uncompressed length of a block is malformed"))?;
    // The densest element makes 64 bytes of 3, so that more than this cannot come out.
    if declared / RATIO_MAX > block.len() {
        return Err(Fault::Corrupt("a block declares more than it can hold"));
    }
    output.reserve(declared)?;
    let written = snap::raw::Decoder::new()
        .decompress(block, output.room(declared))
        .map_err(|_| Fault::Corrupt("a block is malformed"))?;
    output.advance(written);
    Ok(())
}

pub(super) fn compress(records: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&1_i32.to_be_bytes());
    out.extend_from_slice(&1_i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for records in records.chunks(BLOCK_LEN) {
        let start = out.len();
        out.resize(start + LENGTH_LEN + snap::raw::max_compress_len(records.len()), 0);
        let (length, room) = out.get_mut(start..)?.split_first_chunk_mut::<LENGTH_LEN>()?;
        let written = encoder.compress(records, room).ok()?;
        *length = i32::try_from(written).ok()?.to_be_bytes();
        out.truncate(start + LENGTH_LEN + written);
    }
    Some(())
}

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const LENGTH_LEN: usize = 4;
/// The block size of the Java client.
const BLOCK_LEN: usize = 32 << 10;
const RATIO_MAX: usize = 22;
