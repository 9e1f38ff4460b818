//! The log: one file for all partitions, written around in a circle, and its newest bytes in memory.
//!
//! ```text
//! position:  oldest            end - MEMORY_LEN        start         end
//!               | only in the file    | in both          | gathered   |
//! ```
//! A position is a byte in an endless log; the file has it modulo its length, the memory modulo its own. Groups begin at
//! whole blocks and end before the memory's end, so each is one stretch in both, and one write.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::partition::{Entry, Partition};
use crate::answer::{CORRUPT_MESSAGE, Found, Topics, Wanted};
use crate::batch;
use crate::wire::{invalid, truncated};

/// Where a stretch of batches lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: u64,
    pub(super) len: usize,
}

/// All partitions of all topics.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    file_len: u64,
    is_synced: bool,
    memory: Block,
    /// What is read back from the file lands here.
    scratch: Block,
    /// Where the group that is being gathered begins, and how far it has got.
    start: u64,
    end: u64,
    partitions_of_a_topic: i32,
    /// The first partition of each topic.
    topics: HashMap<String, usize>,
    partitions: Vec<Partition>,
    /// Partitions with batches in the group that is being gathered.
    touched: Vec<usize>,
}

impl Log {
    /// Makes an empty log in a directory, with room for the last `file_len` bytes.
    pub(super) fn create(dir: &Path, file_len: u64, partitions: i32, is_synced: bool) -> io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let file_len = file_len.next_multiple_of(MEMORY_LEN).max(2 * MEMORY_LEN);
        let path = dir.join("floor.log");
        let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or_default();
        // A file system without direct writes (one in memory) is good enough for a test.
        let file = open(&path, direct).or_else(|_| open(&path, 0))?;
        fallocate(&file, FallocateFlags::empty(), 0, file_len)?;
        file.sync_all()?;
        Ok(Self {
            file,
            file_len,
            is_synced,
            memory: Block::new(within(MEMORY_LEN)),
            scratch: Block::new(PIECE_LEN + 2 * within(BLOCK_LEN)),
            start: 0,
            end: 0,
            partitions_of_a_topic: partitions,
            topics: HashMap::new(),
            partitions: Vec::new(),
            touched: Vec::new(),
        })
    }

    /// Checks a batch and gathers it; its base offset, or the code of an error. It is durable after [`Log::commit`].
    pub(super) fn append(
        &mut self,
        topic: &str,
        partition: i32,
        sent: &[u8],
    ) -> io::Result<Result<i64, i16>> {
        let Some(id) = self.partition(topic, partition) else { return Ok(Err(UNKNOWN_TOPIC_OR_PARTITION)) };
        if sent.len() > BATCH_LEN_MAX {
            return Ok(Err(MESSAGE_TOO_LARGE));
        }
        let Some(header) = checked(sent) else { return Ok(Err(CORRUPT_MESSAGE)) };
        let len = length(sent.len());
        let wraps = (self.end / MEMORY_LEN + 1) * MEMORY_LEN;
        if self.end + len > wraps {
            self.commit()?;
            self.start = self.end.next_multiple_of(MEMORY_LEN);
            self.end = self.start;
        }
        let at = self.end;
        let known = self.partitions.get_mut(id).ok_or_else(truncated)?;
        let base_offset = known.push(at, sent.len(), &header);
        let stored = self.memory.bytes_mut(at % MEMORY_LEN, sent.len())?;
        stored.copy_from_slice(sent);
        put(stored, 0, &base_offset.to_be_bytes());
        put(stored, 12, &0_i32.to_be_bytes());
        self.end += len;
        self.touched.push(id);
        Ok(Ok(base_offset))
    }

    /// Writes and syncs what was gathered, and makes it visible; whether there was anything.
    pub(super) fn commit(&mut self) -> io::Result<bool> {
        if self.end == self.start {
            return Ok(false);
        }
        let end = self.end.next_multiple_of(BLOCK_LEN);
        let padding = within(end - self.end);
        if padding > 0 {
            self.memory.bytes_mut(self.end % MEMORY_LEN, padding)?.fill(0);
        }
        let group = self.memory.bytes(self.start % MEMORY_LEN, within(end - self.start))?;
        self.file.write_all_at(group, self.start % self.file_len)?;
        if self.is_synced {
            self.file.sync_data()?;
        }
        self.start = end;
        self.end = end;
        let oldest = self.oldest();
        for id in self.touched.drain(..) {
            if let Some(partition) = self.partitions.get_mut(id) {
                partition.commit(oldest);
            }
        }
        Ok(true)
    }

    /// The beginning of a stretch: at most [`PIECE_LEN`] bytes, from memory or read from the file.
    pub(super) fn bytes(&mut self, place: Place) -> io::Result<&[u8]> {
        let len = place.len.min(PIECE_LEN);
        if place.at + MEMORY_LEN >= self.end {
            return self.memory.bytes(place.at % MEMORY_LEN, len);
        }
        if place.at < self.oldest() {
            return Err(invalid("a reader was overtaken by the log's end"));
        }
        let from = place.at - place.at % BLOCK_LEN;
        let to = (place.at + length(len)).next_multiple_of(BLOCK_LEN);
        let into = self.scratch.bytes_mut(0, within(to - from))?;
        self.file.read_exact_at(into, from % self.file_len)?;
        self.scratch.bytes(place.at - from, len)
    }

    /// What lies before this position is or may soon be overwritten.
    fn oldest(&self) -> u64 {
        (self.end + MEMORY_LEN).saturating_sub(self.file_len)
    }

    /// The partition's place in the list; a topic begins to exist with its first batch.
    fn partition(&mut self, topic: &str, partition: i32) -> Option<usize> {
        if let Some(id) = self.known(topic, partition) {
            return Some(id);
        }
        if self.topics.contains_key(topic) || self.topics.len() == TOPICS_MAX {
            return None;
        }
        let first = self.partitions.len();
        let count = usize::try_from(self.partitions_of_a_topic).unwrap_or(0);
        self.partitions.resize_with(first + count, Partition::default);
        self.topics.insert(topic.to_owned(), first);
        self.known(topic, partition)
    }

    fn known(&self, topic: &str, partition: i32) -> Option<usize> {
        let first = self.topics.get(topic)?;
        let is_there = (0..self.partitions_of_a_topic).contains(&partition);
        usize::try_from(partition).ok().filter(|_| is_there).map(|index| first + index)
    }

    fn stored(&self, topic: &str, partition: i32) -> Option<&Partition> {
        self.known(topic, partition).and_then(|id| self.partitions.get(id))
    }
}

impl Topics for Log {
    type Stored = Place;

    fn cluster(&self) -> &'static str {
        "floor-broker"
    }

    fn partitions(&self) -> i32 {
        self.partitions_of_a_topic
    }

    fn offsets(&self, topic: &str, partition: i32) -> Range<i64> {
        self.stored(topic, partition).map_or(0..0, |stored| stored.offsets(self.oldest()))
    }

    fn read(&self, wanted: &Wanted<'_>) -> Found<Place> {
        let Some(partition) = self.stored(wanted.topic, wanted.partition) else {
            return Found::nothing(if wanted.offset == 0 { 0 } else { OFFSET_OUT_OF_RANGE });
        };
        let offsets = partition.offsets(self.oldest());
        if wanted.offset != offsets.end && !offsets.contains(&wanted.offset) {
            return Found::nothing(OFFSET_OUT_OF_RANGE);
        }
        let mut places: Vec<(Place, usize)> = Vec::new();
        let mut found_len = 0;
        for Entry { at, len, .. } in partition.from(wanted.offset) {
            if found_len > 0 && found_len + len > wanted.len_max {
                break;
            }
            found_len += len;
            match places.last_mut() {
                Some((last, total)) if last.at + length(last.len) == *at => {
                    last.len += len;
                    *total += len;
                }
                _ => places.push((Place { at: *at, len: *len }, *len)),
            }
        }
        Found { error: 0, base_offset: None, stored: places }
    }
}

/// The header of a batch that is whole and what its checksum says.
fn checked(sent: &[u8]) -> Option<batch::Header> {
    let header = batch::Header::parse(sent).ok().filter(|header| header.len == sent.len())?;
    let sum = sent.get(17..)?.first_chunk::<4>()?;
    (batch::crc32c(sent.get(21..)?) == u32::from_be_bytes(*sum)).then_some(header)
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).custom_flags(flags).open(path)
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    for (to, from) in bytes.iter_mut().skip(at).zip(what) {
        *to = *from;
    }
}

/// A length in memory; what is counted here fits.
fn within(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

fn length(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Memory that begins at a whole block: more is allocated, and the aligned part is used.
#[derive(Debug)]
struct Block {
    allocated: Vec<u8>,
    from: usize,
}

impl Block {
    fn new(len: usize) -> Self {
        let allocated = vec![0; len + within(BLOCK_LEN)];
        let from = allocated.as_ptr().align_offset(within(BLOCK_LEN));
        Self { allocated, from }
    }

    fn bytes(&self, at: u64, len: usize) -> io::Result<&[u8]> {
        let from = self.from + within(at);
        self.allocated.get(from..from + len).ok_or_else(truncated)
    }

    fn bytes_mut(&mut self, at: u64, len: usize) -> io::Result<&mut [u8]> {
        let from = self.from + within(at);
        self.allocated.get_mut(from..from + len).ok_or_else(truncated)
    }
}

/// What direct writes must begin at and end with, in memory and in the file.
const BLOCK_LEN: u64 = 4096;
/// The newest bytes, which fetches are served from; the file's length is a multiple of it.
const MEMORY_LEN: u64 = 64 << 20;
/// Stored bytes go to the socket in pieces of at most this length.
const PIECE_LEN: usize = 256 << 10;
const BATCH_LEN_MAX: usize = 16 << 20;
const TOPICS_MAX: usize = 10_000;

const OFFSET_OUT_OF_RANGE: i16 = 1;
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const MESSAGE_TOO_LARGE: i16 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn log(dir: &tempfile::TempDir) -> Log {
        Log::create(dir.path(), 0, 2, true).unwrap()
    }

    fn wanted(offset: i64, len_max: usize) -> Wanted<'static> {
        Wanted { topic: "t", partition: 1, offset, len_max }
    }

    fn content(log: &mut Log, found: &Found<Place>) -> Vec<u8> {
        let mut content = Vec::new();
        for (place, _) in &found.stored {
            let mut left = *place;
            while left.len > 0 {
                let bytes = log.bytes(left).unwrap();
                content.extend_from_slice(bytes);
                let taken = bytes.len();
                left = Place { at: left.at + length(taken), len: left.len - taken };
            }
        }
        content
    }

    #[test]
    fn a_batch_is_visible_once_it_is_committed_and_is_what_was_sent_but_for_its_offset() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(&dir);
        let batch = batch::build(100, 1000, 7);
        let count = i64::from(batch.count);
        assert_eq!(log.append("t", 1, &batch.bytes).unwrap(), Ok(0));
        assert_eq!(log.append("t", 1, &batch.bytes).unwrap(), Ok(count));
        assert_eq!(log.offsets("t", 1), 0..0);
        assert!(log.read(&wanted(0, 1 << 20)).stored.is_empty());
        assert!(log.commit().unwrap() && !log.commit().unwrap());
        assert_eq!(log.offsets("t", 1), 0..2 * count);
        assert_eq!(log.offsets("t", 0), 0..0);
        let found = log.read(&wanted(count, 1 << 20));
        let bytes = content(&mut log, &found);
        assert_eq!(bytes[..8], count.to_be_bytes());
        assert_eq!(bytes[16..], batch.bytes[16..]);
        assert_eq!(log.read(&wanted(2 * count + 1, 1)).error, OFFSET_OUT_OF_RANGE);
    }

    #[test]
    fn a_damaged_batch_is_refused_wherever_the_damage_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(&dir);
        let batch = batch::build(10, 200, 7).bytes;
        // Offset and leader epoch are the broker's.
        for at in (8..12).chain(16..batch.len()) {
            let mut damaged = batch.clone();
            damaged[at] ^= 1;
            assert_eq!(log.append("t", 0, &damaged).unwrap(), Err(CORRUPT_MESSAGE), "byte {at}");
        }
        assert_eq!(log.append("t", 2, &batch).unwrap(), Err(UNKNOWN_TOPIC_OR_PARTITION));
        assert!(!log.commit().unwrap());
    }

    #[test]
    fn what_memory_has_lost_comes_from_the_file_until_that_is_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(&dir);
        let sent = batch::build(1000, 1 << 20, 7);
        let count = i64::from(sent.count);
        for round in 0..100_i64 {
            assert_eq!(log.append("t", 1, &sent.bytes).unwrap(), Ok(round * count));
            log.commit().unwrap();
            let offsets = log.offsets("t", 1);
            assert_eq!(offsets.end, (round + 1) * count);
            let found = log.read(&wanted(offsets.start, 1));
            let bytes = content(&mut log, &found);
            assert_eq!(bytes[..8], offsets.start.to_be_bytes(), "round {round}");
            assert!(bytes[16..] == sent.bytes[16..], "round {round}");
        }
        // The file has 128 MiB, of which the next 64 may be written over at any time.
        let offsets = log.offsets("t", 1);
        assert!((30 * count..50 * count).contains(&offsets.start), "{offsets:?}");
        assert_eq!(log.read(&wanted(0, 1)).error, OFFSET_OUT_OF_RANGE);
    }

    #[test]
    fn a_read_has_one_batch_at_least_and_otherwise_what_fits() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(&dir);
        let sent = batch::build(100, 1000, 7);
        let len = sent.bytes.len();
        for _ in 0..5 {
            log.append("t", 1, &sent.bytes).unwrap().unwrap();
        }
        log.commit().unwrap();
        for (len_max, batches) in [(0, 1), (2 * len - 1, 1), (2 * len, 2), (9 * len, 5)] {
            let found = log.read(&wanted(0, len_max));
            assert_eq!(found.stored.iter().map(|(_, len)| len).sum::<usize>(), batches * len);
            assert_eq!(found.stored.len(), 1, "neighbours are one stretch");
        }
    }
}
