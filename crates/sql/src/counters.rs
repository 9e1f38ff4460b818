//! What the scans of a statement did, all together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kolumn_topic_store::ScanCounters;
use parking_lot::Mutex;

/// Counts of all scans of a statement, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanTotals {
    /// Records whose bytes were walked through.
    pub rows_walked: u64,
    /// Rows whose columns were copied out of records.
    pub rows_decoded: u64,
    /// Rows that came from the cache of decoded rows.
    pub rows_cached: u64,
    /// Batches that were looked at.
    pub batches: u64,
    /// Bytes that were read from files.
    pub bytes_read: u64,
}

impl ScanTotals {
    pub(crate) fn of(counters: &ScanCounters) -> Self {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Self {
            rows_walked: load(&counters.rows_walked),
            rows_decoded: load(&counters.rows_decoded),
            rows_cached: load(&counters.rows_cached),
            batches: load(&counters.batches),
            bytes_read: load(&counters.bytes_read),
        }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            rows_walked: self.rows_walked + other.rows_walked,
            rows_decoded: self.rows_decoded + other.rows_decoded,
            rows_cached: self.rows_cached + other.rows_cached,
            batches: self.batches + other.batches,
            bytes_read: self.bytes_read + other.bytes_read,
        }
    }
}

/// The counters of the scans of one statement: one for each place where it reads a table. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatementCounters(Arc<Mutex<Vec<Arc<ScanCounters>>>>);

impl StatementCounters {
    /// The counters of a further scan.
    pub(crate) fn scan(&self) -> Arc<ScanCounters> {
        let counters = Arc::new(ScanCounters::default());
        self.0.lock().push(Arc::clone(&counters));
        counters
    }

    pub(crate) fn totals(&self) -> ScanTotals {
        let scans = self.0.lock();
        scans.iter().fold(ScanTotals::default(), |sum, scan| sum.plus(ScanTotals::of(scan)))
    }
}
