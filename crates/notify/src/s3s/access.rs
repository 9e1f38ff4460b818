//! Objects that are read, and what changes only what is said about them.

use std::sync::Arc;

use hyper::header::{HeaderName, HeaderValue, RANGE};
use s3s::dto::{
    GetObjectAttributesInput, GetObjectAttributesOutput, GetObjectInput, GetObjectLegalHoldInput,
    GetObjectLegalHoldOutput, GetObjectOutput, GetObjectRetentionInput, GetObjectRetentionOutput,
    HeadObjectInput, HeadObjectOutput, PutObjectLegalHoldInput, PutObjectLegalHoldOutput,
    PutObjectRetentionInput, PutObjectRetentionOutput, RestoreObjectInput, RestoreObjectOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result};

use super::begun::About;
use super::facts::{Facts, described, size};
use super::{Shared, detached};
use crate::event::EventName;

/// Methods that change what is said about an object.
macro_rules! changes {
    ($($method:ident($Input:ident) -> $Output:ident, $name:expr;)*) => {
        $(pub(super) async fn $method(
            self: &Arc<Self>,
            req: S3Request<$Input>,
        ) -> S3Result<S3Response<$Output>> {
            if !self.wants(&req, &req.input.bucket, &[$name]) {
                return self.inner.$method(req).await;
            }
            let about = self.about(&req, &req.input.bucket, &req.input.key);
            let version_id = req.input.version_id.clone();
            let shared = Arc::clone(self);
            detached(async move {
                let begun = shared.begin($name, about).await?;
                let outcome = shared.inner.$method(req).await;
                shared.settle(begun, outcome, version_id).await
            })
            .await
        })*
    };
}

/// Methods that read what is said about an object.
macro_rules! reads {
    ($($method:ident($Input:ident) -> $Output:ident, $name:expr;)*) => {
        $(pub(super) async fn $method(
            self: &Arc<Self>,
            req: S3Request<$Input>,
        ) -> S3Result<S3Response<$Output>> {
            if !self.wants(&req, &req.input.bucket, &[$name]) {
                return self.inner.$method(req).await;
            }
            let about = self.about(&req, &req.input.bucket, &req.input.key);
            let version_id = req.input.version_id.clone();
            let response = self.inner.$method(req).await?;
            let facts = self.facts(&about, version_id, None).await;
            self.accessed($name, about, facts).await?;
            Ok(response)
        })*
    };
}

impl<S: S3> Shared<S> {
    changes! {
        put_object_retention(PutObjectRetentionInput) -> PutObjectRetentionOutput,
            EventName::ObjectCreatedPutRetention;
        put_object_legal_hold(PutObjectLegalHoldInput) -> PutObjectLegalHoldOutput,
            EventName::ObjectCreatedPutLegalHold;
        restore_object(RestoreObjectInput) -> RestoreObjectOutput, EventName::ObjectRestorePost;
    }

    reads! {
        get_object_retention(GetObjectRetentionInput) -> GetObjectRetentionOutput,
            EventName::ObjectAccessedGetRetention;
        get_object_legal_hold(GetObjectLegalHoldInput) -> GetObjectLegalHoldOutput,
            EventName::ObjectAccessedGetLegalHold;
        get_object_attributes(GetObjectAttributesInput) -> GetObjectAttributesOutput,
            EventName::ObjectAccessedAttributes;
    }

    pub(super) async fn get_object(
        self: &Arc<Self>,
        req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        const NAME: EventName = EventName::ObjectAccessedGet;
        let (bucket, key) = (req.input.bucket.clone(), req.input.key.clone());
        let about = self.wants(&req, &bucket, &[NAME]).then(|| self.about(&req, &bucket, &key));
        let range = range(&req);
        let mut response = self.inner.get_object(req).await?;
        if response.output.tag_count.is_none() {
            response.output.tag_count = self.tag_count(&bucket, &key).await?;
        }
        if let Some(about) = about {
            let output = &response.output;
            let mut facts = described!(output);
            facts.content_length = size(output.content_length);
            // Of a part of it, the size of the whole stands behind the slash.
            let whole = output.content_range.as_deref().and_then(|range| range.rsplit_once('/'));
            facts.size = match whole {
                Some((_, whole)) => whole.parse().ok(),
                None => facts.content_length,
            };
            facts.set_e_tag(output.e_tag.as_ref());
            facts.version_id = output.version_id.clone().unwrap_or_default();
            facts.range = range;
            self.accessed(NAME, about, facts).await?;
        }
        Ok(response)
    }

    pub(super) async fn head_object(
        self: &Arc<Self>,
        req: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        const NAME: EventName = EventName::ObjectAccessedHead;
        let (bucket, key) = (req.input.bucket.clone(), req.input.key.clone());
        let about = self.wants(&req, &bucket, &[NAME]).then(|| self.about(&req, &bucket, &key));
        let range = range(&req);
        let mut response = self.inner.head_object(req).await?;
        if let Some(count) = self.tag_count(&bucket, &key).await? {
            response.headers.insert(TAG_COUNT, HeaderValue::from(count));
        }
        if let Some(about) = about {
            let mut facts = Facts::of_head(&response.output);
            facts.content_length = facts.size;
            facts.range = range;
            self.accessed(NAME, about, facts).await?;
        }
        Ok(response)
    }

    /// Tells of a reading. Its intent is written after it: there is nothing to be looked at later.
    async fn accessed(&self, name: EventName, about: About, facts: Facts) -> S3Result<()> {
        if let Some(begun) = self.begin(name, about).await? {
            self.tell(begun, facts).await;
        }
        Ok(())
    }

    async fn tag_count(&self, bucket: &str, key: &str) -> S3Result<Option<i32>> {
        let tags = self.stored_tags(bucket, key).await?;
        Ok(tags.and_then(|tags| i32::try_from(tags.len()).ok()))
    }
}

fn range<T>(request: &S3Request<T>) -> String {
    let range = request.headers.get(RANGE).and_then(|range| range.to_str().ok());
    range.unwrap_or_default().to_owned()
}

const TAG_COUNT: HeaderName = HeaderName::from_static("x-amz-tagging-count");
