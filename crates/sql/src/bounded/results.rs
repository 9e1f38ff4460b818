//! What is alive of the results of functions.

use std::collections::HashMap;
use std::fmt;

use datafusion::arrow::array::{Array, ArrayData};
use datafusion::arrow::buffer::Buffer;
use parking_lot::Mutex;

/// Counts the bytes of results for as long as anybody holds them.
///
/// Arrow does not tell when an array is dropped. So it keeps a reference to each buffer, and lets go of those that nobody
/// else refers to, every [`SWEPT_LEN`] bytes. A buffer that several arrays share counts once.
pub(super) struct Results {
    len_max: usize,
    alive: Mutex<Alive>,
}

#[derive(Default)]
struct Alive {
    /// By where their bytes begin.
    buffers: HashMap<usize, Buffer>,
    len: usize,
    /// The length from which it looks for what can go.
    sweep_len: usize,
}

/// All results together are longer than they may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) len_max: usize,
}

impl Results {
    pub(super) fn new(len_max: usize) -> Self {
        Self { len_max, alive: Mutex::new(Alive::default()) }
    }

    /// Counts a result from now on.
    pub(super) fn add(&self, array: &dyn Array) -> Result<(), Full> {
        let data = array.to_data();
        let mut alive = self.alive.lock();
        alive.add(&data);
        drop(data);
        if alive.len > alive.sweep_len.min(self.len_max) {
            alive.sweep();
        }
        if alive.len > self.len_max { Err(Full { len_max: self.len_max }) } else { Ok(()) }
    }

    /// Bytes that are alive.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let mut alive = self.alive.lock();
        alive.sweep();
        alive.len
    }
}

impl Alive {
    fn add(&mut self, data: &ArrayData) {
        for buffer in data.buffers() {
            let len = buffer.capacity();
            if len >= BUFFER_LEN_MIN
                && self.buffers.insert(buffer.data_ptr().as_ptr().addr(), buffer.clone()).is_none()
            {
                self.len += len;
            }
        }
        for child in data.child_data() {
            self.add(child);
        }
    }

    fn sweep(&mut self) {
        self.buffers.retain(|_, buffer| buffer.strong_count() > 1);
        self.len = self.buffers.values().map(Buffer::capacity).sum();
        self.sweep_len = self.len.saturating_add(SWEPT_LEN);
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").field("len_max", &self.len_max).finish_non_exhaustive()
    }
}

/// Smaller buffers are not counted.
const BUFFER_LEN_MIN: usize = 4 << 10;
/// How many bytes may be kept that nobody needs any more.
const SWEPT_LEN: usize = 2 << 20;
