//! Objects that are copied, or put together from parts.

use std::sync::Arc;

use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CopyObjectInput, CopyObjectOutput, CreateMultipartUploadInput,
    CreateMultipartUploadOutput, ETag,
};
use s3s::{S3, S3Error, S3Request, S3Response, S3Result};

use super::begun::{About, Begun, failed};
use super::tags::UPLOADS;
use super::{Shared, detached};
use crate::event::EventName;

impl<S: S3> Shared<S> {
    pub(super) async fn copy_object(
        self: &Arc<Self>,
        mut req: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        const NAME: EventName = EventName::ObjectCreatedCopy;
        let tags = self.copied_tags(&mut req.input).await?;
        let is_wanted = self.wants(&req, &req.input.bucket, &[NAME]);
        if !is_wanted && !self.concerns_tags(&req.input.bucket, tags.as_ref()).await? {
            return self.inner.copy_object(req).await;
        }
        let about = self.about(&req, &req.input.bucket, &req.input.key);
        let shared = Arc::clone(self);
        detached(async move {
            let begun = if is_wanted { shared.begin(NAME, about.clone()).await? } else { None };
            let outcome = shared.inner.copy_object(req).await;
            let (begun, response) = failed(begun, outcome)?;
            let kept = shared.replace_tags(&about.bucket, &about.key, tags).await;
            if let Some(begun) = begun {
                let result = response.output.copy_object_result.as_ref();
                let e_tag = result.and_then(|result| result.e_tag.clone());
                let version_id = response.output.version_id.clone();
                shared.tell_created(begun, e_tag, version_id).await;
            }
            kept?;
            Ok(response)
        })
        .await
    }

    pub(super) async fn create_multipart_upload(
        self: &Arc<Self>,
        mut req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let tags = self.header_tags(&mut req.input.tagging)?;
        let response = self.inner.create_multipart_upload(req).await?;
        if let (Some(tags), Some(upload_id)) = (tags, &response.output.upload_id) {
            self.replace_tags(UPLOADS, upload_id, Some(tags)).await?;
        }
        Ok(response)
    }

    pub(super) async fn abort_multipart_upload(
        self: &Arc<Self>,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let upload_id = req.input.upload_id.clone();
        let response = self.inner.abort_multipart_upload(req).await?;
        self.replace_tags(UPLOADS, &upload_id, None).await?;
        Ok(response)
    }

    pub(super) async fn complete_multipart_upload(
        self: &Arc<Self>,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        const NAME: EventName = EventName::ObjectCreatedCompleteMultipartUpload;
        let is_wanted = self.wants(&req, &req.input.bucket, &[NAME]);
        if !is_wanted && self.tags.is_none() {
            return self.inner.complete_multipart_upload(req).await;
        }
        let about = self.about(&req, &req.input.bucket, &req.input.key);
        let upload_id = req.input.upload_id.clone();
        let shared = Arc::clone(self);
        detached(async move {
            let begun = if is_wanted { shared.begin(NAME, about.clone()).await? } else { None };
            let outcome = shared.inner.complete_multipart_upload(req).await;
            let (begun, mut response) = failed(begun, outcome)?;
            let Some(assembling) = response.output.future.take() else {
                let made = (response.output.e_tag.clone(), response.output.version_id.clone());
                shared.completed(begun, about, &upload_id, made).await?;
                return Ok(response);
            };
            // The answer is begun, and kept alive while the parts are still being put together.
            let rest = tokio::spawn(async move {
                let (begun, output) = failed(begun, assembling.await)?;
                let made = (output.e_tag.clone(), output.version_id.clone());
                shared.completed(begun, about, &upload_id, made).await?;
                Ok::<_, S3Error>(output)
            });
            response.output.future = Some(Box::pin(async {
                rest.await.unwrap_or_else(|error| Err(S3Error::internal_error(error)))
            }));
            Ok(response)
        })
        .await
    }

    async fn completed(
        &self,
        begun: Option<Begun>,
        about: About,
        upload_id: &str,
        (e_tag, version_id): (Option<ETag>, Option<String>),
    ) -> S3Result<()> {
        let kept = async {
            let tags = self.stored_tags(UPLOADS, upload_id).await?;
            self.replace_tags(&about.bucket, &about.key, tags).await?;
            self.replace_tags(UPLOADS, upload_id, None).await
        };
        let kept = kept.await;
        if let Some(begun) = begun {
            self.tell_created(begun, e_tag, version_id).await;
        }
        kept
    }

    async fn tell_created(&self, begun: Begun, e_tag: Option<ETag>, version_id: Option<String>) {
        let facts = self.facts(&begun.about, version_id, e_tag.as_ref()).await;
        self.tell(begun, facts).await;
    }
}
