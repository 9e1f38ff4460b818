//! Preallocated files that wait to be written: made ahead, recycled from freed ones.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use crate::block::aligned;
use crate::checkpoint::is_full;
use crate::disk::DiskFile;
use crate::file::LogFile;
use crate::format::file_header::FileHeader;
use crate::format::names::Name;
use crate::position::BLOCK;
use crate::shared::Shared;

/// A preallocated file without content.
#[derive(Debug)]
struct Spare {
    id: u64,
    handle: Arc<dyn DiskFile>,
    /// How many lives it has had.
    generation: u64,
}

/// The files that are not part of the log yet.
///
/// The next file of the log gets its header and its name ahead of time, so that going on to it takes no call that
/// could meet a full directory, and no sync.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    blank: VecDeque<Spare>,
    next: Option<Arc<LogFile>>,
    next_id: u64,
}

impl Spares {
    /// The spares with these names; those of another length than files have now are removed.
    pub(crate) fn adopt(shared_disk: &Arc<dyn crate::Disk>, ids: &[u64], file_len: u64) -> io::Result<Self> {
        let mut adopted = Self { next_id: ids.iter().max().map_or(0, |id| id + 1), ..Self::default() };
        for id in ids {
            let name = Name::Spare(*id).to_string();
            let handle = shared_disk.open(&name)?;
            if handle.len()? != file_len {
                drop(handle);
                shared_disk.remove(&name)?;
                continue;
            }
            let mut block = aligned(BLOCK);
            let filled = handle.read_at(0, &mut block)?;
            block.truncate(filled);
            // A spare without a header has had no life, or one that ended before it began.
            let generation = FileHeader::decode(&block).map_or(0, |header| header.generation);
            adopted.blank.push_back(Spare { id: *id, handle, generation });
        }
        Ok(adopted)
    }

    /// How many files are ready.
    pub(crate) fn len(&self) -> usize {
        self.blank.len() + usize::from(self.next.is_some())
    }

    pub(crate) fn has_next(&self) -> bool {
        self.next.is_some()
    }

    /// Makes one more spare. `false` if the disk is full; other errors leave the log as it is.
    pub(crate) fn grow(&mut self, shared: &Shared) -> io::Result<bool> {
        let id = self.take_id();
        let name = Name::Spare(id).to_string();
        let made = shared.disk.create(&name).and_then(|handle| {
            handle.preallocate(shared.options.file_len)?;
            shared.disk.sync_dir()?;
            Ok(handle)
        });
        match made {
            Ok(handle) => {
                self.blank.push_back(Spare { id, handle, generation: 0 });
                Ok(true)
            }
            Err(error) => {
                // What was begun must not take space: this is tried again and again.
                let removed = crate::checkpoint::remove_if_there(&shared.disk, &name);
                if is_full(&error) { removed.map(|()| false) } else { Err(error) }
            }
        }
    }

    /// Takes a file back that has left the log's table: as a spare, or off the disk if somebody still reads it, if it
    /// has another length than files have now, or if there are spares enough. Tells whether it became a spare.
    pub(crate) fn take_back(&mut self, shared: &Shared, file: &Arc<LogFile>) -> io::Result<bool> {
        let name = Name::Log(file.base).to_string();
        let reusable = Arc::strong_count(file) == 1
            && file.len == shared.options.file_len
            && self.blank.len() < shared.options.spare_files_max;
        if reusable {
            let id = self.take_id();
            shared.disk.rename(&name, &Name::Spare(id).to_string())?;
            shared.disk.sync_dir()?;
            self.blank.push_back(Spare { id, handle: file.handle.clone(), generation: file.generation });
        } else {
            shared.disk.remove(&name)?;
            shared.disk.sync_dir()?;
        }
        Ok(reusable)
    }

    /// Gives a spare the header and the name of the file with this base. Does nothing if that is done or no spare is
    /// left.
    pub(crate) fn prepare(&mut self, shared: &Shared, base: u64) -> io::Result<()> {
        if self.next.is_some() {
            return Ok(());
        }
        let Some(spare) = self.blank.pop_front() else { return Ok(()) };
        let len = shared.options.file_len;
        let generation = spare.generation + 1;
        let header = FileHeader { generation, log_id: shared.log_id, tenant: shared.tenant, base, len };
        let mut block = aligned(BLOCK);
        header.encode(&mut block);
        spare.handle.write_at(0, &block)?;
        spare.handle.sync()?;
        shared.disk.rename(&Name::Spare(spare.id).to_string(), &Name::Log(base).to_string())?;
        shared.disk.sync_dir()?;
        let memory = shared.files.read().memory();
        let file = LogFile::new(base, len, generation, spare.handle, memory, base + BLOCK as u64);
        self.next = Some(Arc::new(file));
        Ok(())
    }

    /// The prepared file, which is now the log's.
    pub(crate) fn take_next(&mut self) -> Option<Arc<LogFile>> {
        self.next.take()
    }

    fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }
}
