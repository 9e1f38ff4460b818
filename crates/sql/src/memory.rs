//! The memory of all queries together.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;

use datafusion::common::resources_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, TrackConsumersPool,
};
use parking_lot::Mutex;

/// The memory that queries use for sorting, grouping and joining.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Bytes now.
    pub reserved: usize,
    /// The most at any moment so far.
    pub reserved_max: usize,
}

/// A pool with a limit that remembers its peak, and says who uses most when it is exhausted.
#[derive(Debug)]
pub(crate) struct Pool {
    inner: TrackConsumersPool<Fair>,
}

impl Pool {
    /// A pool for queries of so many pieces each.
    pub(crate) fn new(len_max: usize, pieces: usize) -> Self {
        let inner = Fair { len_max, pieces, used: Mutex::new(Used::default()) };
        Self { inner: TrackConsumersPool::new(inner, CONSUMERS_NAMED) }
    }

    pub(crate) fn used(&self) -> MemoryUse {
        let used = self.inner.inner().used.lock();
        MemoryUse { reserved: used.all, reserved_max: used.all_max }
    }
}

/// Shares the memory: what can spill gets a share of it, which is smaller the more there are, and spills when that is full.
/// In a greedy pool one large sort would take all, and small queries that come later fail.
///
/// A sort has two consumers: one holds its rows and spills, the other merges what is sorted and cannot spill. The merge of
/// spilled runs takes as much as it is given, so that one of several sorts that run at a time would leave the others nothing
/// to write their rows out with. Hence a merge has a share as well. It is larger than that of the rows, because the rows move
/// over to the merge, which adds a copy of their keys.
///
/// Shares become smaller when more begin, and a sort may have gathered rows for a merge of a larger one by then. So shares are
/// never larger than if all pieces of a query that sorts did so, which do not begin at the same moment, and a merge has always
/// some part of what the others leave.
///
/// A part is kept for all else, such as the merge of several sorts' results, which can only fail.
#[derive(Debug)]
struct Fair {
    len_max: usize,
    pieces: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    by_consumer: HashMap<usize, usize>,
    spillers: usize,
    merges: usize,
    by_others: usize,
    all: usize,
    all_max: usize,
}

/// How a consumer is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Spiller,
    Merge,
    /// By nothing but the whole.
    Other,
}

impl Role {
    fn of(consumer: &MemoryConsumer) -> Self {
        if consumer.can_spill() {
            Self::Spiller
        } else if consumer.name().starts_with(SORT_MERGE) {
            Self::Merge
        } else {
            Self::Other
        }
    }
}

impl Used {
    fn grow(&mut self, consumer: &MemoryConsumer, additional: usize) {
        let len = self.by_consumer.entry(consumer.id()).or_default();
        *len = len.saturating_add(additional);
        if Role::of(consumer) == Role::Other {
            self.by_others = self.by_others.saturating_add(additional);
        }
        self.all = self.all.saturating_add(additional);
        self.all_max = self.all_max.max(self.all);
    }

    fn shrink(&mut self, consumer: &MemoryConsumer, shrink: usize) {
        if let Some(len) = self.by_consumer.get_mut(&consumer.id()) {
            *len = len.saturating_sub(shrink);
        }
        if Role::of(consumer) == Role::Other {
            self.by_others = self.by_others.saturating_sub(shrink);
        }
        self.all = self.all.saturating_sub(shrink);
    }

    /// How much more a consumer may take.
    fn room(&self, consumer: &MemoryConsumer, len_max: usize, pieces: usize) -> usize {
        let room = len_max.saturating_sub(self.all);
        let weight = match Role::of(consumer) {
            Role::Spiller => SPILLER_WEIGHT,
            Role::Merge => MERGE_WEIGHT,
            Role::Other => return room,
        };
        let shared = len_max.saturating_sub(self.by_others.max(len_max / KEPT));
        let sorts = if self.merges > 0 { pieces } else { 0 };
        let least_weights = sorts.saturating_mul(SPILLER_WEIGHT + MERGE_WEIGHT).max(1);
        let weights = self.spillers * SPILLER_WEIGHT + self.merges * MERGE_WEIGHT;
        let share = shared / weights.max(least_weights) * weight;
        let held = self.by_consumer.get(&consumer.id()).copied().unwrap_or(0);
        let least = match Role::of(consumer) {
            Role::Merge => room.saturating_add(held) / MERGE_LEAST,
            Role::Spiller | Role::Other => 0,
        };
        room.min(share.max(least).saturating_sub(held))
    }
}

impl MemoryPool for Fair {
    fn name(&self) -> &'static str {
        "fair"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        let mut used = self.used.lock();
        match Role::of(consumer) {
            Role::Spiller => used.spillers += 1,
            Role::Merge => used.merges += 1,
            Role::Other => {}
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        let mut used = self.used.lock();
        match Role::of(consumer) {
            Role::Spiller => used.spillers = used.spillers.saturating_sub(1),
            Role::Merge => used.merges = used.merges.saturating_sub(1),
            Role::Other => {}
        }
        used.by_consumer.remove(&consumer.id());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.used.lock().grow(reservation.consumer(), additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.used.lock().shrink(reservation.consumer(), shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut used = self.used.lock();
        let consumer = reservation.consumer();
        let room = used.room(consumer, self.len_max, self.pieces);
        if additional > room {
            let name = consumer.name();
            return resources_err!(
                "{name} asked for {additional} bytes more, of which {room} are left to it"
            );
        }
        used.grow(consumer, additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.used.lock().all
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.len_max)
    }
}

impl MemoryPool for Pool {
    fn name(&self) -> &'static str {
        "fair"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.inner.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.inner.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.inner.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.inner.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.inner.try_grow(reservation, additional).or_else(|error| {
            // Of an error's lines only the first one is shown.
            let lines = error.message();
            let lines: Vec<_> = lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            let (len_max, cause) = (self.inner.inner().len_max, lines.join(" "));
            resources_err!("the memory of queries (`memory_len_max`, {len_max} bytes) is used up: {cause}")
        })
    }

    fn reserved(&self) -> usize {
        self.inner.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.inner.memory_limit()
    }
}

impl fmt::Display for Fair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fair")
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// How DataFusion begins the names of the merges inside of sorts.
const SORT_MERGE: &str = "ExternalSorterMerge";
/// The shares of what holds rows and can spill, and of a sort's merge, in relation to each other.
const SPILLER_WEIGHT: usize = 2;
const MERGE_WEIGHT: usize = 3;
/// The part, one in so many, of what all others leave that a merge may have even if its share is smaller.
const MERGE_LEAST: usize = 5;
/// The part of the memory, one in so many, that is kept for what has no share.
const KEPT: usize = 4;
/// How many of the largest consumers an error about exhausted memory names.
const CONSUMERS_NAMED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(2);
