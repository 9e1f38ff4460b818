//! An operation between its intent and its event.

use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result};

use super::Shared;
use super::caller::Caller;
use super::detail::Detail;
use super::facts::Facts;
use super::look::Quiet;
use super::stamps::now;
use crate::event::{EventName, Timestamp};
use crate::hub::Operation;
use crate::intent::Intent;
use crate::target::chain;

/// What a request is about, and whose it is.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) caller: Caller,
}

/// An operation whose intent is written. Dropped, it is in doubt, and will be looked at.
#[must_use]
pub(super) struct Begun {
    operation: Operation,
    pub(super) name: EventName,
    pub(super) about: About,
    /// The version that the request names.
    pub(super) version_id: Option<String>,
    stamp: Timestamp,
}

impl<S: S3> Shared<S> {
    pub(super) fn about<T>(&self, request: &S3Request<T>, bucket: &str, key: &str) -> About {
        About { bucket: bucket.into(), key: key.into(), caller: Caller::of(request, &self.stamps) }
    }

    /// Whether anybody wants to know of any of these events of a bucket, and the request is a client's.
    pub(super) fn wants<T>(&self, request: &S3Request<T>, bucket: &str, names: &[EventName]) -> bool {
        let is_client = request.extensions.get::<Quiet>().is_none();
        is_client && names.iter().any(|name| self.hub.wants(bucket, *name))
    }

    /// Writes the intent of an operation that is about to be committed; `None` if nobody wants to know of it.
    pub(super) async fn begin(&self, name: EventName, about: About) -> S3Result<Option<Begun>> {
        self.begin_with(name, about, |_| ()).await
    }

    /// The same with more in the intent's detail.
    pub(super) async fn begin_with(
        &self,
        name: EventName,
        about: About,
        add: impl FnOnce(&mut Detail) + Send,
    ) -> S3Result<Option<Begun>> {
        let stamp = self.stamps.next();
        let mut detail = Detail::new(about.caller.clone(), stamp);
        add(&mut detail);
        let version_id = detail.version_id.clone();
        let intent = Intent::new(name, &*about.bucket, &*about.key, stamp).with_detail(detail.encode());
        let operation = self.hub.begin(intent).await.map_err(|error| {
            let message = format!("the event of this request could not be kept: {}", chain(&error));
            S3Error::with_message(S3ErrorCode::ServiceUnavailable, message)
        })?;
        Ok(operation.map(|operation| Begun { operation, name, about, version_id, stamp }))
    }

    /// Tells of an operation that has been committed.
    pub(super) async fn tell(&self, begun: Begun, facts: Facts) {
        let name = begun.name;
        self.tell_as(begun, name, facts).await;
    }

    /// Tells of it under another name than that of its intent.
    pub(super) async fn tell_as(&self, begun: Begun, name: EventName, facts: Facts) {
        let Begun { operation, about, stamp, .. } = begun;
        match facts.event(self.hub.origin(), name, &about, stamp, now()) {
            // The observer is told of targets that will not get to know. The operation has happened all the same.
            Ok(event) => drop(operation.happened(&event).await),
            // A storage that takes a key which no event can be about.
            Err(_) => operation.did_not_happen(),
        }
    }

    /// The answer of an operation on an object, after it was told of with what the object now is.
    pub(super) async fn settle<O>(
        &self,
        begun: Option<Begun>,
        outcome: S3Result<S3Response<O>>,
        version_id: Option<String>,
    ) -> S3Result<S3Response<O>>
    where
        O: Send,
    {
        let (begun, response) = failed(begun, outcome)?;
        if let Some(begun) = begun {
            let facts = self.facts(&begun.about, version_id, None).await;
            self.tell(begun, facts).await;
        }
        Ok(response)
    }
}

impl Begun {
    pub(super) fn did_not_happen(self) {
        self.operation.did_not_happen();
    }
}

/// Resolves the intent of an operation that has failed.
pub(super) fn failed<T>(begun: Option<Begun>, outcome: S3Result<T>) -> S3Result<(Option<Begun>, T)> {
    match outcome {
        Ok(response) => Ok((begun, response)),
        Err(error) => {
            if let Some(begun) = begun {
                begun.did_not_happen();
            }
            Err(error)
        }
    }
}
