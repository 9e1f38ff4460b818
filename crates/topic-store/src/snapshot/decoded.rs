//! The cache of decoded rows: stretches of a partition as columns, under a budget of memory.
//!
//! An entry is known by the offset of its first row. What is at an offset of a partition never changes, so that entries are
//! never wrong, whatever is carried, thinned or deleted behind them; what is not asked for any more ages out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::Array;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::Column;
use super::rows::Chunk;
use crate::ids::{PartitionIndex, TopicId};

/// The first row of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    pub(crate) topic: TopicId,
    pub(crate) partition: PartitionIndex,
    pub(crate) offset: i64,
}

pub(crate) struct Decoded {
    /// `None`: there is no memory for it.
    cache: Option<Cache<RowKey, Arc<Chunk>, ByMemory>>,
    is_closed: AtomicBool,
}

impl Decoded {
    pub(crate) fn new(len_max: usize) -> Self {
        let options = OptionsBuilder::new()
            // The budget is one: shards would each refuse what the others have room for.
            .shards(1)
            .estimated_items_capacity((len_max / ENTRY_LEN).max(1))
            .weight_capacity(len_max as u64)
            .build();
        let cache = options.ok().filter(|_| len_max > 0).map(|options| {
            Cache::with_options(options, ByMemory, DefaultHashBuilder::default(), DefaultLifecycle::default())
        });
        Self { cache, is_closed: AtomicBool::new(false) }
    }

    /// Whether anything can be kept.
    pub(super) fn is_open(&self) -> bool {
        self.cache.is_some() && !self.is_closed.load(Ordering::Acquire)
    }

    /// The stretch that begins here, whichever columns it has.
    pub(super) fn get(&self, key: &RowKey) -> Option<Arc<Chunk>> {
        self.cache.as_ref()?.get(key)
    }

    /// Whether a stretch with these columns begins here.
    pub(super) fn has(&self, key: &RowKey, columns: &[Column]) -> bool {
        let found = self.cache.as_ref().and_then(|cache| cache.peek(key));
        found.is_some_and(|chunk| chunk.has_all(columns))
    }

    /// Keeps a stretch, together with the columns that are kept already.
    pub(super) fn put(&self, key: RowKey, chunk: Chunk) {
        let Some(cache) = self.cache.as_ref().filter(|_| self.is_open()) else { return };
        let merged = match cache.peek(&key) {
            Some(known) if known.rows == chunk.rows => chunk.or(&known),
            _ => chunk,
        };
        cache.insert(key, Arc::new(merged));
        // Closed in the meantime: what came too late goes, too.
        if self.is_closed.load(Ordering::Acquire) {
            cache.clear();
        }
    }

    /// Lets go of everything, for good.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        if let Some(cache) = &self.cache {
            cache.clear();
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn len(&self) -> usize {
        self.cache.as_ref().map_or(0, |cache| usize::try_from(cache.weight()).unwrap_or(usize::MAX))
    }
}

impl std::fmt::Debug for Decoded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoded").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
struct ByMemory;

impl Weighter<RowKey, Arc<Chunk>> for ByMemory {
    fn weight(&self, _: &RowKey, chunk: &Arc<Chunk>) -> u64 {
        let arrays = [&chunk.timestamps, &chunk.keys, &chunk.values, &chunk.headers];
        let len: usize = arrays.into_iter().flatten().map(Array::get_array_memory_size).sum();
        (len as u64).saturating_add(ENTRY_COST)
    }
}

/// What an entry takes, about: how many there will be.
const ENTRY_LEN: usize = 64 << 10;
/// What an entry takes besides its arrays.
const ENTRY_COST: u64 = 256;
