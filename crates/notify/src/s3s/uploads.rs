//! Objects that are uploaded in one request.

use std::sync::Arc;

use s3s::dto::{ETag, PostObjectInput, PostObjectOutput, PutObjectInput, PutObjectOutput, StreamingBlob};
use s3s::{S3, S3Request, S3Response, S3Result};

use super::begun::{About, failed};
use super::body::{Gate, Opening, Passage};
use super::detail::Detail;
use super::facts::{Facts, described, size};
use super::tags::TagList;
use super::{Shared, detached};
use crate::event::{EventName, Timestamp};

/// An upload that somebody wants to know of.
struct Upload {
    name: EventName,
    about: About,
    facts: Facts,
    /// When the request came: what it makes is not older.
    started: Timestamp,
    /// The length that the request announces.
    len: Option<u64>,
}

/// The method for one way to upload; their types have the same fields, and nothing in common.
macro_rules! upload {
    ($method:ident($Input:ident) -> $Output:ident, $name:expr) => {
        pub(super) async fn $method(
            self: &Arc<Self>,
            mut req: S3Request<$Input>,
        ) -> S3Result<S3Response<$Output>> {
            let tags = self.header_tags(&mut req.input.tagging)?;
            let is_wanted = self.wants(&req, &req.input.bucket, &[$name]);
            if !is_wanted && !self.concerns_tags(&req.input.bucket, tags.as_ref()).await? {
                return self.inner.$method(req).await;
            }
            let upload = Upload {
                name: $name,
                about: self.about(&req, &req.input.bucket, &req.input.key),
                facts: described!(req.input),
                started: self.stamps.next(),
                len: size(req.input.content_length),
            };
            let shared = Arc::clone(self);
            detached(async move {
                let gate = is_wanted.then(|| shared.gate(&upload, &mut req.input.body));
                let outcome = shared.inner.$method(req).await;
                let stored = |output: &$Output| (output.e_tag.clone(), output.version_id.clone());
                shared.uploaded(upload, gate, tags, outcome, stored).await
            })
            .await
        }
    };
}

impl<S: S3> Shared<S> {
    upload!(put_object(PutObjectInput) -> PutObjectOutput, EventName::ObjectCreatedPut);
    upload!(post_object(PostObjectInput) -> PostObjectOutput, EventName::ObjectCreatedPost);

    fn gate(self: &Arc<Self>, upload: &Upload, body: &mut Option<StreamingBlob>) -> Gate {
        let (shared, name, about) = (Arc::clone(self), upload.name, upload.about.clone());
        let not_before = upload.started.unix_nanos();
        let opener = move |len| {
            let begin = async move {
                let add = move |detail: &mut Detail| {
                    detail.size = Some(len);
                    detail.not_before = not_before;
                };
                shared.begin_with(name, about, add).await
            };
            Box::pin(begin) as Opening
        };
        Gate::before_end(body, upload.len, Box::new(opener))
    }

    async fn uploaded<O: Send>(
        &self,
        upload: Upload,
        gate: Option<Gate>,
        tags: Option<TagList>,
        outcome: S3Result<S3Response<O>>,
        stored: impl FnOnce(&O) -> (Option<ETag>, Option<String>) + Send,
    ) -> S3Result<S3Response<O>> {
        let Upload { name, about, mut facts, .. } = upload;
        let is_wanted = gate.is_some();
        let passage = gate.map_or(Passage::Waiting, Gate::passage);
        let begun = match (passage, outcome.is_ok()) {
            (Passage::Begun(begun, len), _) => {
                facts.size = Some(len);
                begun.map(|begun| *begun)
            }
            (Passage::Refused(error), _) => return Err(error),
            // A storage that needs no body, such as for what only looks like a folder, is through already.
            (Passage::Waiting, true) if is_wanted => self.begin(name, about.clone()).await?,
            (Passage::Waiting, _) => None,
        };
        let (begun, response) = failed(begun, outcome)?;
        let kept = self.replace_tags(&about.bucket, &about.key, tags).await;
        if let Some(begun) = begun {
            let (e_tag, version_id) = stored(&response.output);
            facts.set_e_tag(e_tag.as_ref());
            facts.version_id = version_id.unwrap_or_default();
            self.tell(begun, facts).await;
        }
        kept?;
        Ok(response)
    }
}
