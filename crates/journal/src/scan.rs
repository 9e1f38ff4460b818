//! Reading entries back in order, verified.

use std::ops::ControlFlow;
use std::sync::Arc;

use uuid::Uuid;

use crate::error::{ReadError, ReadErrorKind};
use crate::file::LogFile;
use crate::format::group::EntryWalk;
use crate::journal::Entry;
use crate::position::{BLOCK_U64, Position, round_down};
use crate::reader::{ReadGroup, Window};
use crate::shared::Shared;

pub(crate) fn scan(
    shared: &Shared,
    from: Position,
    to: Position,
    f: impl FnMut(Entry) -> ControlFlow<()>,
) -> Result<Position, ReadError> {
    let durable = shared.durable.lock().position;
    let to = to.value().min(durable);
    walk(from.value(), to, f, |at, is_first, window| {
        let around = if is_first { group_around(shared, at, window)? } else { None };
        around.map_or_else(|| group_after(shared, at, window), Ok)
    })
}

/// The part of a scan that lies in one file, which need not belong to the log any more.
pub(crate) fn scan_file(
    file: &Arc<LogFile>,
    log_id: Uuid,
    from: Position,
    to: Position,
    f: impl FnMut(Entry) -> ControlFlow<()>,
) -> Result<Position, ReadError> {
    let to = to.value().min(file.end());
    walk(from.value().max(file.first()), to, f, |at, is_first, window| {
        let around = if is_first { group_in(file, log_id, at, window)? } else { None };
        match around {
            Some(group) => Ok(group),
            None => read(log_id, file, at, window)?.ok_or_else(|| damaged(at)),
        }
    })
}

/// Hands over the entries of one group after the other, as `next` finds them: the first may begin before its position.
fn walk(
    from: u64,
    to: u64,
    mut f: impl FnMut(Entry) -> ControlFlow<()>,
    next: impl Fn(u64, bool, &mut Window) -> Result<ReadGroup, ReadError>,
) -> Result<Position, ReadError> {
    let mut window = Window::default();
    let mut done = from;
    let mut is_first = true;
    while done < to {
        let group = next(done, is_first, &mut window)?;
        is_first = false;
        if group.at >= to {
            break;
        }
        for entry in entries(&group) {
            if f(entry).is_break() {
                return Ok(Position::new(done));
            }
        }
        done = group.end();
    }
    Ok(Position::new(done))
}

/// The entries of a group that was verified.
pub(crate) fn entries(group: &ReadGroup) -> impl Iterator<Item = Entry> {
    EntryWalk::new(&group.bytes, &group.header).zip(group.header.first_sequence..).map(
        |((start, len), sequence)| Entry {
            position: Position::new(group.at + start as u64),
            sequence,
            owner_epoch: group.header.owner_epoch,
            bytes: group.bytes.slice(start..start + len),
            group_end: Position::new(group.end()),
        },
    )
}

/// The group that begins at this position or that the position lies in. `None` if the position is the end of a file's
/// last group.
fn group_around(shared: &Shared, position: u64, window: &mut Window) -> Result<Option<ReadGroup>, ReadError> {
    let Some(file) = shared.files.read().containing(position).cloned() else { return Ok(None) };
    group_in(&file, shared.log_id, position, window)
}

fn group_in(
    file: &Arc<LogFile>,
    log_id: Uuid,
    position: u64,
    window: &mut Window,
) -> Result<Option<ReadGroup>, ReadError> {
    if position >= file.end() {
        return Ok(None);
    }
    let mut at = round_down(position).max(file.first());
    loop {
        if let Some(group) = read(log_id, file, at, window)? {
            return Ok((group.end() > position).then_some(group));
        }
        if at == file.first() {
            return Err(damaged(position));
        }
        at -= BLOCK_U64;
    }
}

/// The group that follows the one that ends here.
fn group_after(shared: &Shared, end: u64, window: &mut Window) -> Result<ReadGroup, ReadError> {
    let files = shared.files.read();
    let here = files.containing(end).cloned().map(|file| (end.max(file.first()), file));
    let after = files.from(end.saturating_add(1)).cloned().map(|file| (file.first(), file));
    drop(files);
    let (at, file) = match (here, after) {
        (Some((at, file)), _) if at < file.end() => (at, file),
        (here, Some(after)) => {
            if here.is_none() && after.1.base > end {
                // The file in which the position lies was freed; it may have been left exactly there.
                let follows = read(shared.log_id, &after.1, after.0, window)?
                    .filter(|group| group.header.previous == end);
                return follows.ok_or_else(|| freed(end));
            }
            after
        }
        _ => return Err(freed(end)),
    };
    read(shared.log_id, &file, at, window)?
        .filter(|group| group.header.previous == end)
        .ok_or_else(|| damaged(at))
}

fn read(
    log_id: Uuid,
    file: &Arc<LogFile>,
    at: u64,
    window: &mut Window,
) -> Result<Option<ReadGroup>, ReadError> {
    let ours = |header: &crate::format::GroupHeader| header.position == at && header.log_id == log_id;
    window.group(file, at, ours).map_err(|error| ReadError::io(at, error))
}

fn damaged(at: u64) -> ReadError {
    ReadError::new(ReadErrorKind::Damaged, format!("no valid group lies at position {at}"))
}

fn freed(position: u64) -> ReadError {
    ReadError::new(ReadErrorKind::Freed, format!("no file holds position {position}"))
}
