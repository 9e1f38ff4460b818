//! Reading ahead: small batches that lie near each other in a file cost one read of the disk, not one each.

use std::collections::VecDeque;

use bytes::Bytes;
use kolumn_journal::{FilePin, Position, ReadError};
use parking_lot::Mutex;

/// The last few stretches that were read from files. Positions are never reused, so that they cannot be out of date.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    stretches: Mutex<VecDeque<(u64, Bytes)>>,
}

impl Ahead {
    /// Bytes of a stretch that was read before. Never blocks on the disk.
    pub(crate) fn known(&self, position: u64, len: usize) -> Option<Bytes> {
        if len > SMALL_LEN_MAX {
            return None;
        }
        let known = |(start, bytes): &(u64, Bytes)| part(*start, bytes, position, len);
        self.stretches.lock().iter().rev().find_map(known)
    }

    /// Committed bytes of a file, from a stretch that is known or by reading one.
    pub(crate) fn read(&self, pin: &FilePin, position: u64, len: usize) -> Result<Bytes, ReadError> {
        if len > SMALL_LEN_MAX {
            return pin.read(Position::new(position), len);
        }
        if let Some(bytes) = self.known(position, len) {
            return Ok(bytes);
        }
        // Near the end of what is committed a long stretch is refused.
        for stretch_len in STRETCH_LENS.into_iter().filter(|stretch_len| *stretch_len > len) {
            if let Ok(stretch) = pin.read(Position::new(position), stretch_len) {
                let bytes = stretch.slice(..len);
                let mut stretches = self.stretches.lock();
                if stretches.len() >= STRETCHES_MAX {
                    stretches.pop_front();
                }
                stretches.push_back((position, stretch));
                return Ok(bytes);
            }
        }
        pin.read(Position::new(position), len)
    }
}

fn part(start: u64, bytes: &Bytes, position: u64, len: usize) -> Option<Bytes> {
    let from = usize::try_from(position.checked_sub(start)?).ok()?;
    let to = from.checked_add(len)?;
    (to <= bytes.len()).then(|| bytes.slice(from..to))
}

const STRETCH_LENS: [usize; 2] = [256 << 10, 32 << 10];
const SMALL_LEN_MAX: usize = 64 << 10;
/// 4 MiB in all.
const STRETCHES_MAX: usize = 16;
