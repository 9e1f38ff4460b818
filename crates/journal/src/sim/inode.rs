//! The content of a simulated file: what is read now, and what would be left of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::chance;

/// What a disk writes wholly or not at all.
pub(crate) const SECTOR: usize = 512;

#[derive(Clone, Debug, Default)]
pub(crate) struct Inode {
    pub(crate) data: Vec<u8>,
    pub(crate) durable_len: usize,
    pub(crate) handles: usize,
    /// The durable content of sectors written since the last sync.
    old: BTreeMap<usize, [u8; SECTOR]>,
    /// Sectors that a failed sync gave up on.
    doomed: BTreeSet<usize>,
}

impl Inode {
    /// A new file, opened once.
    pub(crate) fn opened() -> Self {
        Self { handles: 1, ..Self::default() }
    }

    /// A file with this content, all of it durable.
    pub(crate) fn durable(data: Vec<u8>) -> Self {
        Self { durable_len: data.len(), data, ..Self::default() }
    }

    /// Writes the sectors that the function picks.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8], mut picked: impl FnMut() -> bool) {
        for (sector, new) in (offset / SECTOR..).zip(bytes.chunks(SECTOR)) {
            let start = sector * SECTOR;
            let Some(now) = self.data.get_mut(start..start + new.len()) else { return };
            if !picked() {
                continue;
            }
            self.old.entry(sector).or_insert_with(|| {
                let mut old = [0; SECTOR];
                for (to, from) in old.iter_mut().zip(&*now) {
                    *to = *from;
                }
                old
            });
            now.copy_from_slice(new);
            self.doomed.remove(&sector);
        }
    }

    pub(crate) fn sync(&mut self) {
        let doomed = &self.doomed;
        self.old.retain(|sector, _| doomed.contains(sector));
        self.durable_len = self.data.len();
    }

    /// A sync failed: what it should have covered stays in doubt for ever.
    pub(crate) fn doom(&mut self) {
        self.doomed.extend(self.old.keys());
    }

    /// Decides what is left.
    pub(crate) fn crash(&mut self, state: &mut u64, kept_percent: u64) {
        let mut kept = || chance::next(state) % 100 < kept_percent;
        for (sector, old) in std::mem::take(&mut self.old) {
            let start = sector * SECTOR;
            if !kept() {
                let end = (start + SECTOR).min(self.data.len());
                if let Some(now) = self.data.get_mut(start..end) {
                    for (to, from) in now.iter_mut().zip(old) {
                        *to = from;
                    }
                }
            }
        }
        if self.data.len() > self.durable_len && !kept() {
            self.data.truncate(self.durable_len);
        }
        self.durable_len = self.data.len();
        self.doomed.clear();
        self.handles = 0;
    }
}
