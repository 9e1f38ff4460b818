//! Buckets that are made and removed.

use std::sync::Arc;

use s3s::dto::{CreateBucketInput, CreateBucketOutput, DeleteBucketInput, DeleteBucketOutput};
use s3s::{S3, S3Error, S3Request, S3Response, S3Result};

use super::begun::failed;
use super::facts::Facts;
use super::look::{check_bucket, is_absence};
use super::{Shared, detached};
use crate::event::EventName;

impl<S: S3> Shared<S> {
    pub(super) async fn create_bucket(
        self: &Arc<Self>,
        req: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        const NAME: EventName = EventName::BucketCreated;
        let is_wanted = self.wants(&req, &req.input.bucket, &[NAME]);
        let about = self.about(&req, &req.input.bucket, "");
        let shared = Arc::clone(self);
        detached(async move {
            let bucket = about.bucket.clone();
            // Some storages answer well to one who makes his own bucket again; nothing has happened then.
            let is_new = check_bucket(&shared.inner, &bucket).await.is_err_and(|error| is_absence(&error));
            let begun = if is_wanted && is_new { shared.begin(NAME, about).await? } else { None };
            let outcome = shared.inner.create_bucket(req).await;
            let (begun, response) = failed(begun, outcome)?;
            if is_new {
                // What is left of a bucket of that name, if the process ended when it was being removed.
                let (begun, ()) = failed(begun, shared.forget(&bucket).await)?;
                if let Some(begun) = begun {
                    shared.tell(begun, Facts::default()).await;
                }
            }
            Ok(response)
        })
        .await
    }

    pub(super) async fn delete_bucket(
        self: &Arc<Self>,
        req: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        const NAME: EventName = EventName::BucketRemoved;
        let is_wanted = self.wants(&req, &req.input.bucket, &[NAME]);
        let about = self.about(&req, &req.input.bucket, "");
        let shared = Arc::clone(self);
        detached(async move {
            let bucket = about.bucket.clone();
            let begun = if is_wanted { shared.begin(NAME, about).await? } else { None };
            let outcome = shared.inner.delete_bucket(req).await;
            let (begun, response) = failed(begun, outcome)?;
            if let Some(begun) = begun {
                shared.tell(begun, Facts::default()).await;
            }
            shared.forget(&bucket).await?;
            Ok(response)
        })
        .await
    }

    /// A bucket has neither rules nor tags from now on.
    async fn forget(&self, bucket: &str) -> S3Result<()> {
        if self.hub.rules().bucket(bucket).is_some() {
            self.hub.forget_bucket(bucket).await.map_err(S3Error::internal_error)?;
        }
        self.drop_bucket_tags(bucket).await
    }
}
