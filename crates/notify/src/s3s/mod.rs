//! A server of S3 on the crate `s3s`, with notifications: a storage whose operations are told of, the listen API, and
//! the ids of requests.
//!
//! ```text
//! hyper -> RequestIds -> S3Service -> Notifying -> the storage
//!                            |            `-> Hub: intent, event, queues, listeners
//!                            `-> ListenRoute
//! ```
//!
//! - [`Notifying`] wraps any storage. An operation that somebody wants to know of has its intent written before it is
//!   committed, and its event in the queues before it is answered; one that fails has no event. Both happen in a task of
//!   their own, so that a client that goes away does not come between them.
//! - It answers bucket notification configurations by the hub's rules, and keeps the tags of objects for a storage that
//!   cannot.
//! - [`ListenRoute`] is the listen API; [`RequestIds`] gives each request the id that its answer and its event show.
//! - [`recover`] looks at what an earlier process has left in doubt, [`recover_doubtful`] at what this one has.
//!
//! # Sequencers
//!
//! The sequencer of an event is the time at which its operation was about to be committed, by this process's clock, and
//! no two are the same while it runs: an upload's when the end of its body was reached, any other's when it was passed to
//! the storage. So operations that follow each other have sequencers that do; of two at the same time on one key, the one
//! whose commit began later has the greater one. It stands in the intent, and so is the same when an event is sent again.
//! The storage's time of modification is not used: file systems tell it as of some milliseconds ago, and two uploads within
//! these would not be told apart.
//!
//! # What is told
//!
//! | operation | event |
//! | --- | --- |
//! | `PutObject`, `PostObject`, `CopyObject`, `CompleteMultipartUpload` | `s3:ObjectCreated:Put`, `Post`, `Copy`, `CompleteMultipartUpload` |
//! | `DeleteObject`, and `DeleteObjects` for each key | `s3:ObjectRemoved:Delete`; `NoOP` if there was no object; `DeleteMarkerCreated` |
//! | `PutObjectTagging`, `DeleteObjectTagging` | `s3:ObjectCreated:PutTagging`, `DeleteTagging` |
//! | `PutObjectRetention`, `PutObjectLegalHold` | `s3:ObjectCreated:PutRetention`, `PutLegalHold` |
//! | `GetObject`, `HeadObject`, `GetObjectAttributes`, … | `s3:ObjectAccessed:Get`, `Head`, `Attributes`, `GetRetention`, `GetLegalHold` |
//! | `RestoreObject` | `s3:ObjectRestore:Post` |
//! | `CreateBucket`, `DeleteBucket` | `s3:BucketCreated:*`, `s3:BucketRemoved:*`, which global rules and listeners see |
//!
//! An operation whose intent cannot be written (the disk is full) is refused before it is begun, with 503. A target whose
//! queue does not take an event does not make the operation fail: the hub's observer is told.

mod access;
mod begun;
mod body;
mod buckets;
mod caller;
mod detail;
mod facts;
mod ids;
mod listen;
mod look;
mod notification;
mod objects;
mod operations;
mod recover;
mod removal;
mod stamps;
mod tagging;
mod tags;
mod uploads;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use s3s::{S3, S3Error, S3Result};

pub use self::caller::PeerAddr;
pub use self::ids::{RequestId, RequestIds};
pub use self::listen::ListenRoute;
pub use self::recover::{Recovery, recover, recover_doubtful};

use self::stamps::Stamps;
use self::tags::Tags;
use crate::hub::Hub;
use crate::rules::Dialect;

/// How a [`Notifying`] storage behaves. Start from `NotifyingOptions::default()` and set fields.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NotifyingOptions {
    /// Whose rules about notification configurations are followed. `MinIO`'s.
    pub dialect: Dialect,
    /// The folder in which tags of objects are kept, for a storage that keeps none. Without it tags are left to the
    /// storage.
    pub tags_dir: Option<PathBuf>,
}

/// A storage whose operations are told of. Clones are the same.
pub struct Notifying<S: S3> {
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    inner: S,
    hub: Hub,
    dialect: Dialect,
    tags: Option<Tags>,
    stamps: Stamps,
}

impl<S: S3> Notifying<S> {
    /// Tells a hub of what happens in a storage. Operations run as tasks of the runtime that they are called in.
    #[must_use]
    pub fn new(inner: S, hub: Hub, options: NotifyingOptions) -> Self {
        let NotifyingOptions { dialect, tags_dir } = options;
        let tags = tags_dir.map(Tags::new);
        Self { shared: Arc::new(Shared { inner, hub, dialect, tags, stamps: Stamps::default() }) }
    }

    /// The storage.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.shared.inner
    }

    /// The hub that is told.
    #[must_use]
    pub fn hub(&self) -> &Hub {
        &self.shared.hub
    }

    /// The listen API for this storage's buckets.
    #[must_use]
    pub fn listen_route(&self) -> ListenRoute {
        ListenRoute::new(self.shared.hub.clone(), Arc::new(self.clone()))
    }
}

impl<S: S3> Clone for Notifying<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: S3> fmt::Debug for Notifying<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifying").finish_non_exhaustive()
    }
}

/// Runs to its end what must not stop between an operation and its event, whether or not the client stays.
async fn detached<T: Send + 'static>(
    work: impl Future<Output = S3Result<T>> + Send + 'static,
) -> S3Result<T> {
    tokio::spawn(work).await.unwrap_or_else(|error| Err(S3Error::internal_error(error)))
}
