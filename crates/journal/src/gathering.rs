//! The group that takes in what is appended, until it goes to the disk.

use bytes::{BufMut, Bytes};

use crate::block::Pool;
use crate::format::{ENTRY_FRAME_LEN, GROUP_HEADER_LEN, GroupHeader, HeaderEncoder, PayloadSum};
use crate::gate::Pending;
use crate::position::{BLOCK, in_memory, round_up};

/// One group at most, copied together in a block of the pool and summed up on the way.
#[derive(Debug)]
pub(crate) struct Gathering {
    pool: Pool,
    /// Lengths of the entries, each with its frame.
    lens: Vec<usize>,
    /// An empty list whose memory is for the next group.
    spare_lens: Vec<usize>,
    cost: u64,
    payload_len: usize,
    /// How much of the block the checksum has in it.
    summed: usize,
    sum: Sum,
    /// The header that the group has begun under.
    header: Option<GroupHeader>,
}

/// A group is summed up behind its header if that is known, else by itself.
#[derive(Debug)]
enum Sum {
    WithHeader(HeaderEncoder),
    Payload(PayloadSum),
}

impl Sum {
    fn payload(&mut self, piece: &[u8]) {
        match self {
            Self::WithHeader(encoder) => encoder.payload(piece),
            Self::Payload(sum) => sum.payload(piece),
        }
    }
}

/// A group as it goes to the disk, and what is to be told of it.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) header: GroupHeader,
    /// Header, payload and padding.
    pub(crate) bytes: Bytes,
    /// Lengths of the entries, each with its frame.
    pub(crate) lens: Vec<usize>,
    /// What was reserved for the entries.
    pub(crate) cost: u64,
}

/// What is copied is summed up this soon, while the processor's cache still has it.
const SUM_LEN: usize = 32 << 10;

impl Gathering {
    pub(crate) fn new(pool: Pool) -> Self {
        Self {
            pool,
            lens: Vec::new(),
            spare_lens: Vec::new(),
            cost: 0,
            payload_len: 0,
            summed: 0,
            sum: Sum::Payload(PayloadSum::new()),
            header: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }

    pub(crate) fn payload_len(&self) -> usize {
        self.payload_len
    }

    /// The length that the group may have in the memory it has begun in; any length, before it has begun.
    pub(crate) fn len_max(&self) -> u64 {
        if self.is_empty() { u64::MAX } else { self.pool.room() as u64 }
    }

    /// Begins a group for a payload of this length, in memory for `len_wanted` bytes if there has to be new one. With a
    /// header, the payload is complete with what follows.
    pub(crate) fn begin(&mut self, header: Option<GroupHeader>, payload_len: usize, len_wanted: usize) {
        let block = self.pool.reserve(group_len(payload_len), len_wanted);
        block.resize(GROUP_HEADER_LEN, 0);
        self.summed = GROUP_HEADER_LEN;
        self.sum = match &header {
            Some(header) => Sum::WithHeader(header.begin_encoding()),
            None => Sum::Payload(PayloadSum::new()),
        };
        self.header = header;
    }

    /// Copies an entry into the group.
    pub(crate) fn put(&mut self, entry: &Pending) {
        let framed_len = entry.framed_len();
        let block = self.pool.filling();
        block.put_u32_le(u32::try_from(framed_len - ENTRY_FRAME_LEN).unwrap_or(u32::MAX));
        block.extend_from_slice(entry.head());
        for piece in entry.body.chunks(SUM_LEN) {
            block.extend_from_slice(piece);
            if block.len() - self.summed >= SUM_LEN {
                self.sum.payload(block.get(self.summed..).unwrap_or_default());
                self.summed = block.len();
            }
        }
        self.payload_len += framed_len;
        self.lens.push(framed_len);
        self.cost += entry.cost;
    }

    /// The header that the group has begun under; it is to be sealed with it.
    pub(crate) fn take_header(&mut self) -> Option<GroupHeader> {
        self.header.take()
    }

    /// Ends the group under this header.
    pub(crate) fn seal(&mut self, header: GroupHeader) -> Sealed {
        let group_len = group_len(self.payload_len);
        let block = self.pool.filling();
        debug_assert_eq!(block.len(), GROUP_HEADER_LEN + self.payload_len, "what was counted was copied");
        self.sum.payload(block.get(self.summed..).unwrap_or_default());
        let encoded = match std::mem::replace(&mut self.sum, Sum::Payload(PayloadSum::new())) {
            Sum::WithHeader(encoder) => encoder.finish(),
            Sum::Payload(sum) => header.begin_encoding().finish_before(&sum),
        };
        if let Some(start) = block.get_mut(..GROUP_HEADER_LEN) {
            start.copy_from_slice(&encoded);
        }
        block.resize(group_len, 0);
        let bytes = self.pool.split().freeze();
        self.payload_len = 0;
        let lens = std::mem::replace(&mut self.lens, std::mem::take(&mut self.spare_lens));
        Sealed { header, bytes, lens, cost: std::mem::take(&mut self.cost) }
    }

    /// Takes the memory of a list back that nobody needs any more.
    pub(crate) fn reuse(&mut self, mut lens: Vec<usize>) {
        lens.clear();
        self.spare_lens = lens;
    }

    /// Forgets what was gathered.
    pub(crate) fn clear(&mut self) {
        self.pool.filling().clear();
        self.lens.clear();
        (self.cost, self.payload_len, self.header) = (0, 0, None);
    }

    /// How many entries were gathered.
    pub(crate) fn count(&self) -> usize {
        self.lens.len()
    }
}

fn group_len(payload_len: usize) -> usize {
    in_memory(round_up((GROUP_HEADER_LEN + payload_len) as u64))
}

const _: () = assert!(BLOCK > GROUP_HEADER_LEN, "a group without entries is one block");
