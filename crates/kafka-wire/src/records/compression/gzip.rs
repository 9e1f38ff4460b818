//! gzip: one or more members, as `RFC 1952` allows.

use alloc::vec::Vec;
use std::io::Write;

use flate2::write::GzEncoder;
use flate2::{Decompress, FlushDecompress, Status};

use super::output::{Fault, Output};

pub(super) fn inflate(mut input: &[u8], output: &mut Output) -> Result<(), Fault> {
    loop {
        input = inflate_member(input, output)?;
        if input.is_empty() {
            return Ok(());
        }
    }
}

/// Inflates one member, whose checksum and length the library checks, and returns what follows it.
fn inflate_member<'i>(mut input: &'i [u8], output: &mut Output) -> Result<&'i [u8], Fault> {
    let mut member = Decompress::new_gzip(WINDOW_BITS);
    loop {
        if output.split().1.is_empty() {
            output.reserve(STEP.min(output.allowance()))?;
        }
        let (_, room) = output.split();
        let at_limit = room.is_empty();
        // At the limit the stream may still end; a byte that comes out instead is one too many.
        let mut probe = [0];
        let target = if at_limit { &mut probe[..] } else { room };
        let before = (member.total_in(), member.total_out());
        let status = member
            .decompress(input, target, FlushDecompress::None)
            .map_err(|_| Fault::Corrupt("the deflate stream or its checksum is wrong"))?;
        let consumed = distance(before.0, member.total_in());
        let produced = distance(before.1, member.total_out());
        input = input.get(consumed..).unwrap_or_default();
        if at_limit && produced > 0 {
            return Err(Fault::TooLarge);
        }
        output.advance(produced);
        match status {
            Status::StreamEnd => return Ok(input),
            Status::Ok | Status::BufError if consumed == 0 && produced == 0 => {
                return Err(Fault::Corrupt("the gzip stream has no end"));
            }
            Status::Ok | Status::BufError => {}
        }
    }
}

pub(super) fn compress(records: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut encoder = GzEncoder::new(out, flate2::Compression::default());
    encoder.write_all(records).ok()?;
    encoder.finish().ok()?;
    Some(())
}

/// How far a counter of the library moved within one slice, which fits.
fn distance(before: u64, after: u64) -> usize {
    usize::try_from(after.saturating_sub(before)).unwrap_or(usize::MAX)
}

/// The largest window, which is what every client uses.
const WINDOW_BITS: u8 = 15;
/// How much room the first step of inflation gets.
const STEP: usize = 16 << 10;
