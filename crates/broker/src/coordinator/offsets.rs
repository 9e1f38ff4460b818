//! What the store is told of groups' offsets, in agreement with the state of the group.

use std::sync::Arc;

use kolumn_kafka_wire::ErrorCode;
use kolumn_topic_store::{Commit, GroupError, GroupErrorKind, OffsetCommit, PartitionIndex, TopicId};

use super::{Absent, Coordinator, Reach};
use crate::bridge::errors;
use crate::group::{GroupState, MemberRef};

/// Why nothing was written.
#[derive(Debug)]
pub(crate) enum Refused {
    /// By the group.
    Group(ErrorCode),
    /// By the store.
    Store(GroupError),
}

impl Refused {
    /// Whether it passes by itself when the store has room.
    pub(crate) fn lacks_room(&self) -> bool {
        match self {
            Self::Group(_) => false,
            Self::Store(error) => matches!(error.kind(), GroupErrorKind::Busy | GroupErrorKind::Full),
        }
    }

    /// Whether a topic or partition went away in the meantime.
    pub(crate) fn lacks_topic(&self) -> bool {
        let gone = |kind| matches!(kind, GroupErrorKind::UnknownTopic | GroupErrorKind::UnknownPartition);
        matches!(self, Self::Store(error) if gone(error.kind()))
    }

    pub(crate) fn code(&self) -> ErrorCode {
        match self {
            Self::Group(code) => *code,
            Self::Store(error) => errors::group_code(error.kind()),
        }
    }
}

/// An offset that somebody wants deleted.
#[derive(Debug, Clone)]
pub(crate) struct Deletable {
    pub(crate) name: Arc<str>,
    pub(crate) topic: TopicId,
    pub(crate) partition: PartitionIndex,
}

impl Coordinator {
    /// Commits offsets, if the group lets this member. `unknown` is the code for a member of a group that does not exist;
    /// who is a member of none makes it.
    pub(crate) fn commit(
        self: &Arc<Self>,
        group: &str,
        member: &MemberRef<'_>,
        unknown: ErrorCode,
        offsets: Vec<OffsetCommit>,
    ) -> Result<Commit<()>, Refused> {
        let reach = if member.generation < 0 { Reach::Any } else { Reach::Known };
        let committed = self.visit(group, reach, |entry, now| {
            let checked = entry.group.check_commit(now, member).map_err(Refused::Group);
            let write = || self.store.commit_offsets(self.view, group, offsets).map_err(Refused::Store);
            (checked.and_then(|()| write()), Vec::new())
        });
        committed.unwrap_or_else(|absent| {
            Err(Refused::Group(match absent {
                Absent::Unknown => unknown,
                Absent::TooMany => ErrorCode::GROUP_MAX_SIZE_REACHED,
            }))
        })
    }

    /// Deletes a group without members, with its offsets.
    pub(crate) fn delete(self: &Arc<Self>, group: &str) -> Result<Commit<()>, Refused> {
        let deleted = self.visit(group, Reach::Known, |entry, _| {
            let deleted = match entry.group.state() {
                GroupState::Empty => self.delete_empty(group, entry),
                GroupState::Dead => Err(Refused::Group(ErrorCode::GROUP_ID_NOT_FOUND)),
                _ => Err(Refused::Group(ErrorCode::NON_EMPTY_GROUP)),
            };
            (deleted, Vec::new())
        });
        deleted.unwrap_or(Err(Refused::Group(ErrorCode::GROUP_ID_NOT_FOUND)))
    }

    pub(super) fn delete_empty(&self, group: &str, entry: &mut super::Entry) -> Result<Commit<()>, Refused> {
        let commit = self.store.delete_group(self.view, group).map_err(Refused::Store)?;
        // What waits to be stored belongs to what was deleted.
        entry.unstored = None;
        entry.group.delete().map_err(Refused::Group)?;
        Ok(commit)
    }

    /// Deletes offsets, but for topics that members are subscribed to: a code for each, and the write.
    pub(crate) fn delete_offsets(
        self: &Arc<Self>,
        group: &str,
        offsets: &[Deletable],
    ) -> Result<(Vec<ErrorCode>, Commit<()>), Refused> {
        let deleted = self.visit(group, Reach::Known, |entry, _| {
            let subscribed = match entry.group.state() {
                GroupState::Dead => return (Err(Refused::Group(ErrorCode::GROUP_ID_NOT_FOUND)), Vec::new()),
                GroupState::Empty => None,
                _ => match entry.group.subscribed_topics() {
                    Some(topics) => Some(topics),
                    None => return (Err(Refused::Group(ErrorCode::NON_EMPTY_GROUP)), Vec::new()),
                },
            };
            let is_subscribed = |name: &str| subscribed.as_ref().is_some_and(|topics| topics.contains(name));
            let mut codes = Vec::with_capacity(offsets.len());
            let mut free = Vec::with_capacity(offsets.len());
            for offset in offsets {
                if is_subscribed(&offset.name) {
                    codes.push(ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC);
                } else {
                    codes.push(ErrorCode::NONE);
                    free.push((offset.topic, offset.partition));
                }
            }
            let commit = self.store.delete_offsets(self.view, group, &free).map_err(Refused::Store);
            (commit.map(|commit| (codes, commit)), Vec::new())
        });
        deleted.unwrap_or(Err(Refused::Group(ErrorCode::GROUP_ID_NOT_FOUND)))
    }
}
