//! Memory of long frames, used again for the next ones.
//!
//! A batch of a megabyte comes in memory that the allocator takes from the operating system and gives back when the
//! batch is stored: each of its pages is then faulted in and zeroed anew for the next one, which costs a tenth of what
//! the whole request does. Here a buffer whose frames are gone is handed out again.

use std::collections::VecDeque;

use bytes::BytesMut;
use parking_lot::Mutex;

/// Buffers that all connections share. What it keeps is bounded, whatever comes.
#[derive(Debug)]
pub struct FrameMemory {
    len_max: usize,
    retired: Mutex<Retired>,
}

/// INVARIANT: `len` is the sum of the lengths in `buffers`.
#[derive(Debug, Default)]
struct Retired {
    /// The oldest first, each with its length: its frames are the first to be gone.
    buffers: VecDeque<(BytesMut, usize)>,
    len: usize,
}

/// A buffer and the length of its memory, which the buffer does not tell once frames were split off.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub(super) bytes: BytesMut,
    memory_len: usize,
}

impl FrameMemory {
    /// Keeps at most so many bytes in buffers that nobody reads into.
    #[must_use]
    pub fn new(len_max: usize) -> Self {
        Self { len_max, retired: Mutex::new(Retired::default()) }
    }

    /// Makes room for `len` more bytes in the buffer, with what it holds.
    pub(super) fn reserve(&self, buffer: &mut Buffer, len: usize) {
        let held_len = buffer.bytes.len();
        if buffer.bytes.capacity() - held_len >= len {
            return;
        }
        let needed = held_len.saturating_add(len);
        if needed < POOLED_LEN_MIN {
            buffer.memory_len = 0;
            return buffer.bytes.reserve(len);
        }
        let mut fresh = self.take(needed).unwrap_or_else(|| {
            let memory_len = needed.next_multiple_of(POOLED_LEN_MIN);
            Buffer { bytes: BytesMut::with_capacity(memory_len), memory_len }
        });
        fresh.bytes.extend_from_slice(&buffer.bytes);
        self.put(std::mem::replace(buffer, fresh));
    }

    /// Takes a buffer back that nothing more is read into. Frames that were split off it keep its memory until they
    /// are gone.
    pub(super) fn put(&self, buffer: Buffer) {
        if buffer.memory_len == 0 || buffer.memory_len > self.len_max {
            return;
        }
        let Buffer { mut bytes, memory_len } = buffer;
        bytes.clear();
        let mut retired = self.retired.lock();
        retired.len += memory_len;
        retired.buffers.push_back((bytes, memory_len));
        let mut forgotten = Vec::new();
        while retired.len > self.len_max {
            let Some((bytes, len)) = retired.buffers.pop_front() else { break };
            retired.len -= len;
            forgotten.push(bytes);
        }
        drop(retired);
    }

    /// A buffer with room for this much whose frames are all gone.
    fn take(&self, len: usize) -> Option<Buffer> {
        let mut retired = self.retired.lock();
        let fits = |memory_len: usize| memory_len >= len && memory_len / SLACK_MAX <= len;
        let found = retired
            .buffers
            .iter_mut()
            .take(TRIES)
            .position(|(bytes, memory_len)| fits(*memory_len) && bytes.try_reclaim(*memory_len))?;
        let (bytes, memory_len) = retired.buffers.remove(found)?;
        retired.len -= memory_len;
        Some(Buffer { bytes, memory_len })
    }
}

/// Shorter buffers come from the allocator, which keeps memory for them itself.
const POOLED_LEN_MIN: usize = 64 << 10;
/// Buffers that are looked at for one that is free.
const TRIES: usize = 16;
/// How many times as long as needed a buffer may be.
const SLACK_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(memory: &FrameMemory, len: usize) -> Buffer {
        let mut buffer = Buffer::default();
        memory.reserve(&mut buffer, len);
        buffer.bytes.resize(len, 7);
        buffer
    }

    #[test]
    fn a_long_buffer_is_used_again_once_its_frames_are_gone() {
        let memory = FrameMemory::new(1 << 20);
        let mut buffer = filled(&memory, 200_000);
        let address = buffer.bytes.as_ptr();
        let frame = buffer.bytes.split_to(200_000).freeze();
        memory.put(buffer);
        assert_ne!(filled(&memory, 200_000).bytes.as_ptr(), address, "the frame is still there");
        assert!(frame.iter().all(|byte| *byte == 7));
        drop(frame);
        assert_eq!(filled(&memory, 150_000).bytes.as_ptr(), address);
    }

    #[test]
    fn a_buffer_that_grows_keeps_what_it_holds() {
        let memory = FrameMemory::new(1 << 20);
        let mut buffer = Buffer::default();
        let mut expected = Vec::new();
        for step in 0..40_u8 {
            let len = 1 << (step % 16);
            memory.reserve(&mut buffer, len);
            assert!(buffer.bytes.capacity() - buffer.bytes.len() >= len);
            buffer.bytes.extend(std::iter::repeat_n(step, len));
            expected.extend(std::iter::repeat_n(step, len));
        }
        assert!(buffer.bytes == expected);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let memory = FrameMemory::new(1 << 20);
        let buffers: Vec<Buffer> = (0..40).map(|_| filled(&memory, 100_000)).collect();
        for buffer in buffers {
            memory.put(buffer);
            let retired = memory.retired.lock();
            assert_eq!(retired.len, retired.buffers.iter().map(|(_, len)| len).sum::<usize>());
            assert!(retired.len <= 1 << 20);
        }
        memory.put(filled(&memory, 2 << 20));
        assert!(memory.retired.lock().buffers.iter().all(|(_, len)| *len <= 1 << 20));
    }

    #[test]
    fn a_short_request_gets_no_memory_of_a_long_one() {
        let memory = FrameMemory::new(1 << 24);
        memory.put(filled(&memory, 1 << 20));
        assert!(filled(&memory, 70_000).bytes.capacity() < 1 << 20);
    }
}
