//! Looking at an object without being told of it.

use hyper::http::Extensions;
use hyper::{HeaderMap, Method, StatusCode, Uri};
use s3s::dto::{ETag, HeadBucketInput, HeadObjectInput};
use s3s::{S3, S3Error, S3Request, S3Result};

use super::Shared;
use super::begun::About;
use super::facts::{Facts, time};
use crate::event::Timestamp;

/// Marks requests of our own, which nobody is told of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quiet;

/// An object as it is found.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) facts: Facts,
    pub(super) modified: Option<Timestamp>,
}

/// A request of our own.
pub(super) fn quiet<T>(input: T) -> S3Request<T> {
    let mut extensions = Extensions::new();
    extensions.insert(Quiet);
    S3Request {
        input,
        method: Method::HEAD,
        uri: Uri::default(),
        headers: HeaderMap::new(),
        extensions,
        credentials: None,
        region: None,
        service: None,
        trailing_headers: None,
    }
}

/// The object, or `None` if there is none.
pub(super) async fn look<S: S3>(
    storage: &S,
    bucket: &str,
    key: &str,
    version_id: Option<String>,
) -> S3Result<Option<Looked>> {
    let mut input = HeadObjectInput::default();
    bucket.clone_into(&mut input.bucket);
    key.clone_into(&mut input.key);
    input.version_id = version_id;
    match storage.head_object(quiet(input)).await {
        Ok(head) => {
            let modified = head.output.last_modified.as_ref().and_then(time);
            Ok(Some(Looked { facts: Facts::of_head(&head.output), modified }))
        }
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// # Errors
/// What the storage says of a bucket that does not exist.
pub(super) async fn check_bucket<S: S3 + ?Sized>(storage: &S, bucket: &str) -> S3Result<()> {
    let mut input = HeadBucketInput::default();
    bucket.clone_into(&mut input.bucket);
    storage.head_bucket(quiet(input)).await.map(drop)
}

/// Whether a storage says that there is no such thing.
pub(super) fn is_absence(error: &S3Error) -> bool {
    error.status_code() == Some(StatusCode::NOT_FOUND)
}

impl<S: S3> Shared<S> {
    /// What is known of an object that was just changed. If it is another one by now, as its tag tells, or gone, what
    /// that is like is not told.
    pub(super) async fn facts(
        &self,
        about: &About,
        version_id: Option<String>,
        e_tag: Option<&ETag>,
    ) -> Facts {
        let looked = look(&self.inner, &about.bucket, &about.key, version_id.clone()).await;
        let facts = looked.ok().flatten().map(|looked| looked.facts);
        let is_same = |facts: &Facts| e_tag.is_none_or(|tag| tag.value() == facts.e_tag);
        let mut facts = facts.filter(is_same).unwrap_or_default();
        facts.set_e_tag(e_tag);
        if let Some(version_id) = version_id {
            facts.version_id = version_id;
        }
        facts
    }
}
