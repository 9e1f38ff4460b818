//! What the answers are made of: a broker's topics, what a fetch finds in them, and a response that is being built.

use std::ops::Range;
use std::time::Duration;

use crate::wire::Put;

/// What a broker knows of its topics.
pub(crate) trait Topics {
    /// Where a stored stretch of batches lies.
    type Stored;

    /// The cluster's name.
    fn cluster(&self) -> &'static str;

    /// Partitions of every topic.
    fn partitions(&self) -> i32;

    /// A partition's first offset and the one after its last.
    fn offsets(&self, topic: &str, partition: i32) -> Range<i64>;

    /// The batches from the one that covers an offset on.
    fn read(&self, wanted: &Wanted<'_>) -> Found<Self::Stored>;
}

/// What a fetch wants of one partition.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) len_max: usize,
}

/// What a fetch finds in one partition.
#[derive(Debug)]
pub(crate) struct Found<S> {
    pub(crate) error: i16,
    /// Written in front of what is stored, where that lacks its first 8 bytes.
    pub(crate) base_offset: Option<i64>,
    /// Stretches that follow each other in the answer, with their lengths.
    pub(crate) stored: Vec<(S, usize)>,
}

impl<S> Found<S> {
    pub(crate) fn nothing(error: i16) -> Self {
        Self { error, base_offset: None, stored: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        let offset_len = if self.base_offset.is_some() { 8 } else { 0 };
        self.stored.iter().map(|(_, len)| len).sum::<usize>() + offset_len
    }
}

/// A response that is being built.
#[derive(Debug)]
pub(crate) struct Reply<S> {
    pub(super) bytes: Vec<u8>,
    /// What is to be spliced in: where, what, and its length.
    pub(crate) stored: Vec<(usize, S, usize)>,
    /// How long the client would rather wait, because there is less than it wants.
    pub(crate) patience: Option<Duration>,
}

impl<S> Reply<S> {
    pub(crate) fn new(correlation_id: i32) -> Self {
        Self { bytes: correlation_id.to_be_bytes().to_vec(), stored: Vec::new(), patience: None }
    }

    /// The frame so far, its size counting what is spliced in.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let spliced_len: usize = self.stored.iter().map(|(_, _, len)| len).sum();
        let mut frame = Vec::with_capacity(self.bytes.len() + 4);
        frame.count(self.bytes.len() + spliced_len);
        frame.bytes(&self.bytes);
        frame
    }

    pub(crate) fn count(&mut self, count: i32) {
        self.bytes.int32(count);
    }

    pub(crate) fn topic(&mut self, name: &str, partitions: i32) {
        self.bytes.string(name);
        self.bytes.int32(partitions);
    }

    pub(crate) fn throttle(&mut self) {
        self.bytes.int32(0);
    }

    /// One partition of a Produce response.
    pub(crate) fn produced(&mut self, version: i16, index: i32, error: i16, base_offset: i64) {
        self.bytes.int32(index);
        self.bytes.int16(error);
        self.bytes.int64(base_offset);
        self.bytes.int64(-1); // the time of appending, if the broker sets it
        if version >= 5 {
            self.bytes.int64(0); // the log's start
        }
        if version >= 8 {
            self.bytes.int32(0); // errors of records
            self.bytes.null_string();
        }
    }
}
