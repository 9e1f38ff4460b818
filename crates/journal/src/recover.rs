//! Finding the newest checkpoint and the log's end in a directory, and telling a torn tail from damage.

use std::sync::Arc;

use crate::checkpoint::{self, Found};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::file::{FileTable, LogFile};
use crate::format::file_header::FileHeader;
use crate::format::names::Name;
use crate::format::{GroupHeader, Malformed, VERSION};
use crate::options::{FILE_LEN_MAX, Options};
use crate::position::{BLOCK, BLOCK_U64, Position, in_memory};
use crate::reader::{Chain, Window};
use uuid::Uuid;

/// What was found and done while a log was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenReport {
    /// Whether the directory was empty and a new log was begun.
    pub created: bool,
    /// Where the checkpoint stands that the log was opened from.
    pub checkpoint: Option<Position>,
    /// How many newer checkpoints were unreadable. The log is whole all the same.
    pub checkpoints_skipped: usize,
    /// What lay behind the log's end and had never been committed: the interrupted last write.
    pub torn: Option<TornTail>,
    /// How many groups were verified after the checkpoint.
    pub groups: u64,
}

/// The interrupted last write of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TornTail {
    /// The log's end, where it was cut.
    pub position: Position,
    /// How many bytes were cut, as far as can be told.
    pub len: u64,
    /// The file in the log's directory that keeps them; `None` if there was no room for it.
    pub kept_in: Option<String>,
}

/// A directory understood.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) log_id: Uuid,
    pub(crate) tenant: Uuid,
    pub(crate) files: FileTable,
    pub(crate) spares: Vec<u64>,
    pub(crate) checkpoint: Option<Found>,
    /// The walk's state at the checkpoint, and at the log's end.
    pub(crate) start: Chain,
    pub(crate) end: Chain,
    /// What the interrupted write left behind the end.
    pub(crate) torn: Vec<TornRange>,
    pub(crate) report: OpenReport,
}

/// A stretch of a file behind the log's end that is to be blanked.
#[derive(Clone, Debug)]
pub(crate) struct TornRange {
    pub(crate) file: Arc<LogFile>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl TornRange {
    /// Makes the stretch look as if it had never been written, so that it is not met again.
    pub(crate) fn blank(&self) -> std::io::Result<()> {
        let mut at = self.from;
        while at < self.to {
            let step = (self.to - at).min(COPY_LEN);
            self.file.handle.write_at(at - self.file.base, &crate::block::aligned(in_memory(step)))?;
            at += step;
        }
        self.file.handle.sync()
    }
}

/// Reads a directory. Nothing in it is changed, except that an interrupted write is copied aside.
pub(crate) fn recover(disk: &Arc<dyn Disk>, options: &Options) -> Result<Recovered, OpenError> {
    let names = disk.list().map_err(|error| OpenError::io("listing the log's directory failed", error))?;
    let mut names: Vec<Name> = names.iter().filter_map(|name| Name::parse(name)).collect();
    names.sort_unstable();
    let mut identity = Identity { log_id: options.log_id, tenant: None };
    let files = open_files(disk, &names, &mut identity)?;
    let (checkpoint, skipped) = checkpoint::newest(disk, &names, &mut identity)?;
    let log_id = identity.log_id.unwrap_or_else(|| new_log_id(options));
    let tenant = identity.tenant.unwrap_or(options.tenant);
    let mut report = OpenReport {
        created: identity.tenant.is_none(),
        checkpoint: checkpoint.as_ref().map(|found| Position::new(found.header.position)),
        checkpoints_skipped: skipped.len(),
        ..OpenReport::default()
    };
    let start = Chain {
        log_id,
        end: checkpoint.as_ref().map_or(0, |found| found.header.position),
        next_sequence: checkpoint.as_ref().map_or(0, |found| found.header.next_sequence),
        owner_epoch: checkpoint.as_ref().map_or(0, |found| found.header.owner_epoch),
        trusting: trusting(options),
    };
    let mut end = start.clone();
    let mut window = Window::default();
    if let Some(file) = files.containing(start.end) {
        file.set_end(start.end.max(file.first()));
    }
    while let Some(group) = end.next(&files, &mut window).map_err(|error| reading(end.end, error))? {
        report.groups += 1;
        if let Some(file) = files.containing(group.at) {
            file.set_end(group.end());
        }
    }
    check_whole(&files, &start, &report)?;
    check_log_before(&files, &start, &mut window)?;
    let tail = Tail::survey(&files, &end, &mut window)?;
    let mut claims = vec![(tail.synced, "a later group")];
    claims.extend(
        checkpoint.iter().map(|found| (found.header.synced.max(found.header.position), "the checkpoint")),
    );
    claims.extend(skipped.iter().map(|position| (*position, "an unreadable checkpoint")));
    if let Some((_, who)) = claims.iter().find(|(synced, _)| *synced > end.end) {
        let why = format!("{who} says that it was durable beyond, but no valid group follows");
        return Err(OpenError::damaged(end.end, why));
    }
    close_ends(&files, &end);
    report.torn = tail.keep(disk, &end)?;
    let spares =
        names.iter().filter_map(|name| if let Name::Spare(id) = name { Some(*id) } else { None }).collect();
    Ok(Recovered { log_id, tenant, files, spares, checkpoint, start, end, torn: tail.torn, report })
}

/// What the files say about whose log this is.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) log_id: Option<Uuid>,
    /// Known as soon as one file was read.
    pub(crate) tenant: Option<Uuid>,
}

impl Identity {
    /// Takes in what a file says; all must say the same.
    pub(crate) fn agree(&mut self, name: Name, log_id: Uuid, tenant: Uuid) -> Result<(), OpenError> {
        if *self.log_id.get_or_insert(log_id) != log_id || *self.tenant.get_or_insert(tenant) != tenant {
            let message =
                format!("`{name}` belongs to log {log_id} of tenant {tenant}, another one than expected");
            return Err(OpenError::new(crate::OpenErrorKind::WrongLog, message));
        }
        Ok(())
    }
}

/// The error for a header or checkpoint that was not understood.
pub(crate) fn malformed(name: Name, at: u64, error: &Malformed) -> OpenError {
    match error {
        Malformed::Damaged(why) => OpenError::damaged(at, format!("{why} in `{name}`")),
        Malformed::Newer(version) => OpenError::new(
            crate::OpenErrorKind::UnknownVersion,
            format!("`{name}` has format version {version}, this build reads versions up to {VERSION}"),
        ),
    }
}

fn reading(position: u64, error: std::io::Error) -> OpenError {
    OpenError::io(format!("reading the log at position {position} failed"), error)
}

#[cfg(feature = "test-util")]
fn trusting(options: &Options) -> bool {
    options.has(crate::Mutant::TrustsRecycledGroups)
}

#[cfg(not(feature = "test-util"))]
fn trusting(_: &Options) -> bool {
    false
}

/// An id from the seed, with the marks of a random UUID.
fn new_log_id(options: &Options) -> Uuid {
    let mut state = options.seed ^ 0x6b6f_6c75_6d6e_6c6f;
    let high = crate::chance::next(&mut state);
    let low = crate::chance::next(&mut state);
    uuid::Builder::from_random_bytes(((u128::from(high) << 64) | u128::from(low)).to_be_bytes()).into_uuid()
}

fn open_files(disk: &Arc<dyn Disk>, names: &[Name], identity: &mut Identity) -> Result<FileTable, OpenError> {
    let mut files = FileTable::default();
    let mut limit = 0;
    for name in names {
        let Name::Log(base) = *name else { continue };
        let failed = |error| OpenError::io(format!("reading `{name}` failed"), error);
        let handle = disk.open(&name.to_string()).map_err(failed)?;
        let mut block = crate::block::aligned(BLOCK);
        let filled = handle.read_at(0, &mut block).map_err(failed)?;
        block.truncate(filled);
        let header = FileHeader::decode(&block).map_err(|error| malformed(*name, base, &error))?;
        identity.agree(*name, header.log_id, header.tenant)?;
        let fits = header.base == base
            && base >= limit
            && header.len % BLOCK_U64 == 0
            && (BLOCK_U64..=FILE_LEN_MAX).contains(&header.len);
        let Some(file_limit) = base.checked_add(header.len).filter(|_| fits) else {
            return Err(OpenError::damaged(
                base,
                format!("`{name}` does not hold the positions that its name says"),
            ));
        };
        limit = file_limit;
        let file = LogFile::new(base, header.len, header.generation, handle, files.memory(), limit);
        files.insert(Arc::new(file));
    }
    Ok(files)
}

/// Between the walk's start and its end no file may be missing. The walk itself finds a hole in the middle; here the
/// start is checked. The file in which a checkpoint stands may have been freed only after a group in the next was synced.
fn check_whole(files: &FileTable, start: &Chain, report: &OpenReport) -> Result<(), OpenError> {
    if report.created || report.groups > 0 || files.containing(start.end).is_some() {
        return Ok(());
    }
    let what = if start.end == 0 { "the first file" } else { "the file that the checkpoint continues in" };
    Err(OpenError::damaged(start.end, format!("{what} is missing")))
}

/// A checkpoint is written when the log before it is durable: a valid group must end where it stands, if the file is
/// still there.
fn check_log_before(files: &FileTable, start: &Chain, window: &mut Window) -> Result<(), OpenError> {
    let Some(file) = start.end.checked_sub(1).and_then(|last| files.containing(last)) else { return Ok(()) };
    let mut at = start.end;
    while at > file.first() {
        at -= BLOCK_U64;
        let last = |header: &GroupHeader| {
            header.position == at && header.log_id == start.log_id && header.end() == start.end
        };
        if window.group(file, at, last).map_err(|error| reading(at, error))?.is_some() {
            return Ok(());
        }
    }
    Err(OpenError::damaged(start.end, "the checkpoint is ahead of the log: no valid group ends there"))
}

/// Sets the ends of the files that the walk has passed, or not reached.
fn close_ends(files: &FileTable, end: &Chain) {
    for file in files.iter() {
        if file.base >= end.end {
            file.set_end(file.first());
        } else if end.end < file.limit() {
            file.set_end(end.end);
        }
    }
}

/// What lies behind the log's end.
#[derive(Debug, Default)]
struct Tail {
    /// The farthest position that a valid group there calls synced.
    synced: u64,
    /// What was written there.
    torn: Vec<TornRange>,
}

impl Tail {
    /// Looks at every block behind the end. A block counts as torn if it can be told from a former life of its file:
    /// a valid group, a header with the right position, or any content in a file in its first life.
    fn survey(files: &FileTable, end: &Chain, window: &mut Window) -> Result<Self, OpenError> {
        let mut tail = Self::default();
        for file in files.iter().filter(|file| file.limit() > end.end) {
            let from = end.end.max(file.first());
            let real_len = file.handle.len().map_err(|error| reading(from, error))?;
            let limit = file.limit().min(file.base.saturating_add(crate::position::round_up(real_len)));
            let (mut at, mut torn_to) = (from, from);
            while at < limit {
                let mut step = BLOCK_U64;
                let header = window.header(file, at).map_err(|error| reading(at, error))?;
                let ours = header.filter(|header| header.position == at && header.log_id == end.log_id);
                if let Some(header) = ours {
                    torn_to = torn_to.max(header.end().min(limit));
                    let valid = window.group(file, at, |_| true).map_err(|error| reading(at, error))?;
                    if valid.is_some() {
                        tail.synced = tail.synced.max(header.synced);
                        step = header.group_len();
                    }
                } else if file.generation == 1
                    && window.has_content(file, at).map_err(|error| reading(at, error))?
                {
                    torn_to = torn_to.max(at + BLOCK_U64);
                }
                at = at.saturating_add(step);
            }
            if torn_to > from {
                tail.torn.push(TornRange { file: file.clone(), from, to: torn_to });
            }
        }
        Ok(tail)
    }

    /// Copies what was torn into a file of its own, unless the disk has no room for it.
    fn keep(&self, disk: &Arc<dyn Disk>, end: &Chain) -> Result<Option<TornTail>, OpenError> {
        let len = self.torn.iter().map(|range| range.to - range.from).sum();
        if len == 0 {
            return Ok(None);
        }
        let name = Name::Torn(end.end, end.owner_epoch).to_string();
        let kept_in = match self.copy(disk, &name, len) {
            Ok(()) => Some(name),
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => None,
            Err(error) => return Err(OpenError::io(format!("writing `{name}` failed"), error)),
        };
        Ok(Some(TornTail { position: Position::new(end.end), len, kept_in }))
    }

    fn copy(&self, disk: &Arc<dyn Disk>, name: &str, len: u64) -> std::io::Result<()> {
        prune_torn(disk, name)?;
        let target = disk.create(name)?;
        if let Err(error) = target.preallocate(len) {
            disk.remove(name)?;
            return Err(error);
        }
        let mut offset = 0;
        for TornRange { file, from, to } in &self.torn {
            let mut at = *from;
            while at < *to {
                let step = (*to - at).min(COPY_LEN);
                let read = file.read_blocks(at, in_memory(step))?;
                let mut blocks = crate::block::aligned(in_memory(step));
                for (into, byte) in blocks.iter_mut().zip(&read) {
                    *into = *byte;
                }
                target.write_at(offset, &blocks)?;
                offset += step;
                at += step;
            }
        }
        target.sync()?;
        disk.sync_dir()
    }
}

const COPY_LEN: u64 = 256 << 10;
const TORN_FILES_MAX: usize = 16;

/// Keeps the number of kept tails bounded; the oldest positions go first.
fn prune_torn(disk: &Arc<dyn Disk>, new: &str) -> std::io::Result<()> {
    let mut kept: Vec<String> =
        disk.list()?.into_iter().filter(|name| matches!(Name::parse(name), Some(Name::Torn(..)))).collect();
    kept.sort_unstable();
    let excess = (kept.len() + 1).saturating_sub(TORN_FILES_MAX);
    for (nth, name) in kept.iter().enumerate() {
        if nth < excess || name == new {
            disk.remove(name)?;
        }
    }
    Ok(())
}
