//! What a simulated disk holds, what of it is durable, and what a crash makes of it.

use std::collections::BTreeMap;
use std::io;

use super::inode::Inode;
use super::{Call, CallKind, SimStats};
use crate::chance;
use crate::position::in_memory;

#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Set(String, u64),
    Moved(String, String, u64),
    Gone(String),
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) chance: u64,
    pub(super) capacity: u64,
    /// How often the power was lost. Handles belong to one life.
    pub(super) life: u64,
    pub(super) locked: bool,
    pub(super) powered: bool,
    pub(super) calls_left: Option<u64>,
    pub(super) faults: Vec<(CallKind, u64, io::ErrorKind)>,
    pub(super) inodes: BTreeMap<u64, Inode>,
    pub(super) inode_next: u64,
    pub(super) names: BTreeMap<String, u64>,
    pub(super) names_durable: BTreeMap<String, u64>,
    pub(super) name_changes: Vec<NameChange>,
    pub(super) stats: SimStats,
    pub(super) log: Vec<Call>,
}

impl State {
    /// An empty disk without a limit.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            chance: seed,
            capacity: u64::MAX,
            life: 0,
            locked: false,
            powered: true,
            calls_left: None,
            faults: Vec::new(),
            inodes: BTreeMap::new(),
            inode_next: 0,
            names: BTreeMap::new(),
            names_durable: BTreeMap::new(),
            name_changes: Vec::new(),
            stats: SimStats::default(),
            log: Vec::new(),
        }
    }

    pub(super) fn due_fault(&mut self, kind: CallKind) -> Option<io::Error> {
        let mut due = None;
        self.faults.retain_mut(|(of, nth, error)| {
            if *of == kind {
                *nth = nth.saturating_sub(1);
                if *nth == 0 {
                    due = Some(io::Error::from(*error));
                }
            }
            *nth > 0
        });
        due
    }

    pub(super) fn take_inode(&mut self) -> u64 {
        self.inode_next += 1;
        self.inode_next
    }

    pub(super) fn used(&self) -> u64 {
        let named: std::collections::BTreeSet<_> = self.names.values().collect();
        let counted = self.inodes.iter().filter(|(id, inode)| inode.handles > 0 || named.contains(id));
        counted.map(|(_, inode)| inode.data.len() as u64).sum()
    }

    pub(super) fn lookup(&self, name: &str) -> io::Result<u64> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn inode(&mut self, id: u64) -> io::Result<&mut Inode> {
        self.inodes.get_mut(&id).ok_or_else(|| io::Error::other("the file is gone"))
    }

    pub(super) fn grow(&mut self, id: u64, len: u64) -> io::Result<()> {
        let old = self.inode(id)?.data.len() as u64;
        if len <= old {
            return Ok(());
        }
        if self.used().saturating_add(len - old) > self.capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inode(id)?.data.resize(in_memory(len), 0);
        Ok(())
    }

    pub(super) fn crash(&mut self) {
        self.life += 1;
        self.locked = false;
        self.powered = true;
        self.calls_left = None;
        self.faults.clear();
        // Sometimes nearly all is lost, sometimes nearly nothing, mostly something in between.
        let kept_percent = chance::next(&mut self.chance) % 101;
        for change in std::mem::take(&mut self.name_changes) {
            if chance::next(&mut self.chance) % 100 >= kept_percent {
                continue;
            }
            match change {
                NameChange::Set(name, id) => drop(self.names_durable.insert(name, id)),
                NameChange::Gone(name) => drop(self.names_durable.remove(&name)),
                NameChange::Moved(from, to, id) => {
                    self.names_durable.remove(&from);
                    self.names_durable.insert(to, id);
                }
            }
        }
        self.names = self.names_durable.clone();
        let named: std::collections::BTreeSet<_> = self.names.values().copied().collect();
        self.inodes.retain(|id, _| named.contains(id));
        for inode in self.inodes.values_mut() {
            inode.crash(&mut self.chance, kept_percent);
        }
    }
}
