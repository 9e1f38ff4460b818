//! Incremental fetch sessions: clients name their partitions once, and are told only what changed.
//!
//! ```text
//!  request            |  scope        |  answer
//!  -------------------+---------------+-------------------------------------------------
//!  id 0, epoch 0      |  New          |  in full, with the id of a session, 0 if no room
//!  id n, epoch 0      |  New          |  likewise; session n ends
//!  id n, epoch -1     |  Sessionless  |  in full, with id 0; session n ends
//!  id n, epoch e > 0  |  Incremental  |  what changed, with id n; 0 if the session ended
//! ```
//!
//! A session is state of the broker about a client, bounded by the [`Cache`]. What a client counts as told changes with
//! the answer that tells it, in one step: a request that is given up before has told nothing, and a client that lost an
//! answer repeats an epoch that is over, is refused and starts anew. A session holds numbers and names, no records.

mod cache;
mod session;

use std::sync::Arc;
use std::time::Instant;

use kolumn_kafka_wire::{ErrorCode, Str, Uuid};

pub(crate) use self::cache::Cache;
use self::cache::Shared;
use self::session::Session;

/// A topic as a client calls it: by its name, or in newer versions by its id. The other one is empty.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TopicRef {
    pub(crate) name: Str<'static>,
    pub(crate) id: Uuid,
}

/// What a client wants of a partition.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) topic: Arc<TopicRef>,
    pub(crate) partition: i32,
    pub(crate) current_leader_epoch: i32,
    pub(crate) offset: i64,
    pub(crate) max_len: usize,
}

/// The offsets of a partition that a client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) high_watermark: i64,
    pub(crate) last_stable: i64,
    pub(crate) log_start: i64,
}

/// What was found in a partition, as far as it decides whether it is news.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// `None` if there is an error instead.
    pub(crate) bounds: Option<Bounds>,
    pub(crate) has_records: bool,
}

/// The part of a fetch request that concerns sessions.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) id: i32,
    pub(crate) epoch: i32,
    /// Whether this version calls topics by their ids.
    pub(crate) by_id: bool,
    pub(crate) partitions: Vec<Wanted>,
    pub(crate) forgotten: Vec<(Arc<TopicRef>, i32)>,
}

/// How one request is tied to a session.
#[derive(Debug)]
pub(crate) enum Scope {
    /// To none.
    Sessionless,
    /// Its answer makes one.
    New { by_id: bool },
    /// To this one, whose epoch the request had.
    Incremental {
        id: i32,
        epoch: i32,
        session: Arc<Shared>,
        /// The session is in the cache; else this answer is the last one.
        kept: bool,
    },
}

/// What an answer has to tell.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) session_id: i32,
    /// Whether a partition belongs in the answer, in the order in which they were read; `None` if all do.
    pub(crate) news: Option<Vec<bool>>,
}

impl Cache {
    /// Begins a request: how it is tied to a session, and the partitions to read, in this order.
    pub(crate) fn begin(&self, asked: Asked, now: Instant) -> Result<(Scope, Vec<Wanted>), ErrorCode> {
        if matches!(asked.epoch, INITIAL_EPOCH | FINAL_EPOCH) {
            self.close(asked.id);
            let new = asked.epoch == INITIAL_EPOCH;
            let scope = if new { Scope::New { by_id: asked.by_id } } else { Scope::Sessionless };
            return Ok((scope, asked.partitions));
        }
        let (id, epoch) = (asked.id, asked.epoch);
        let shared = self.find(id).ok_or(ErrorCode::FETCH_SESSION_ID_NOT_FOUND)?;
        let storable = is_storable(&asked.partitions);
        let mut session = shared.lock();
        let partitions = session.begin(asked)?;
        shared.moved(session.epoch());
        let len = if storable { session.len() } else { 0 };
        // Under the lock, so that the cache learns lengths in the order in which they came about.
        let kept = self.keep(id, len, now);
        drop(session);
        Ok((Scope::Incremental { id, epoch, session: shared, kept }, partitions))
    }
}

impl Scope {
    /// Ends a request: what was found in the partitions that [`Cache::begin`] gave counts as told from now on.
    pub(crate) fn tell(
        self,
        cache: &Cache,
        partitions: &[Wanted],
        found: impl Iterator<Item = Found>,
        now: Instant,
    ) -> Result<Told, ErrorCode> {
        match self {
            Self::Sessionless => Ok(Told { session_id: 0, news: None }),
            Self::New { by_id } => {
                let session_id = if is_storable(partitions) {
                    cache.open(Session::new(by_id, partitions.iter().cloned().zip(found)), now)
                } else {
                    0
                };
                Ok(Told { session_id, news: None })
            }
            Self::Incremental { id, epoch, session, kept } => {
                let news = session.lock().tell(epoch, found)?;
                Ok(Told { session_id: if kept { id } else { 0 }, news: Some(news) })
            }
        }
    }

    /// Resolves when a later request of the session has begun: this one has nothing left to tell.
    pub(crate) async fn superseded(&self) {
        match self {
            Self::Sessionless | Self::New { .. } => std::future::pending().await,
            Self::Incremental { epoch, session, .. } => session.left(session::next_epoch(*epoch)).await,
        }
    }
}

/// Whether a session can remember these: a name that no topic can have is not worth its memory.
fn is_storable(partitions: &[Wanted]) -> bool {
    partitions.iter().all(|wanted| wanted.topic.name.len() <= NAME_LEN_MAX)
}

/// The epoch of a request that asks for a session, and of one that wants none.
const INITIAL_EPOCH: i32 = 0;
const FINAL_EPOCH: i32 = -1;
const NAME_LEN_MAX: usize = 249;
