//! Tags of objects: kept here for a storage that keeps none, left to it otherwise.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use s3s::dto::{
    CopyObjectInput, CopySource, DeleteObjectTaggingInput, DeleteObjectTaggingOutput, GetObjectTaggingInput,
    GetObjectTaggingOutput, PutObjectTaggingInput, PutObjectTaggingOutput, Tag, TaggingDirective,
};
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use super::detail::Detail;
use super::ids::digest;
use super::look::look;
use super::tags::{TagList, Tags};
use super::{Shared, detached};
use crate::event::EventName;

impl<S: S3> Shared<S> {
    pub(super) async fn get_object_tagging(
        self: &Arc<Self>,
        req: S3Request<GetObjectTaggingInput>,
    ) -> S3Result<S3Response<GetObjectTaggingOutput>> {
        let Some(tags) = &self.tags else { return self.inner.get_object_tagging(req).await };
        let (bucket, key) = (&req.input.bucket, &req.input.key);
        self.check_object(bucket, key, req.input.version_id.clone()).await?;
        let tags = tags.read(bucket, key).await.map_err(S3Error::internal_error)?.unwrap_or_default();
        let tag_set = tags.into_iter().map(|(name, value)| Tag { key: Some(name), value: Some(value) });
        Ok(S3Response::new(GetObjectTaggingOutput { tag_set: tag_set.collect(), version_id: None }))
    }

    pub(super) async fn put_object_tagging(
        self: &Arc<Self>,
        req: S3Request<PutObjectTaggingInput>,
    ) -> S3Result<S3Response<PutObjectTaggingOutput>> {
        const NAME: EventName = EventName::ObjectCreatedPutTagging;
        let given = req.input.tagging.tag_set.iter().cloned();
        let given = given.map(|tag| (tag.key.unwrap_or_default(), tag.value.unwrap_or_default()));
        let given = checked(given.collect())?;
        let is_wanted = self.wants(&req, &req.input.bucket, &[NAME]);
        let about = self.about(&req, &req.input.bucket, &req.input.key);
        let version_id = req.input.version_id.clone();
        let shared = Arc::clone(self);
        detached(async move {
            if shared.tags.is_some() {
                shared.check_object(&about.bucket, &about.key, version_id.clone()).await?;
            }
            let sum = sum(&given);
            let add = move |detail: &mut Detail| detail.tags = Some(sum);
            let begun = if is_wanted { shared.begin_with(NAME, about.clone(), add).await? } else { None };
            let outcome = if shared.tags.is_some() {
                let kept = shared.replace_tags(&about.bucket, &about.key, Some(given)).await;
                kept.map(|()| S3Response::new(PutObjectTaggingOutput::default()))
            } else {
                shared.inner.put_object_tagging(req).await
            };
            shared.settle(begun, outcome, version_id).await
        })
        .await
    }

    pub(super) async fn delete_object_tagging(
        self: &Arc<Self>,
        req: S3Request<DeleteObjectTaggingInput>,
    ) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
        const NAME: EventName = EventName::ObjectCreatedDeleteTagging;
        let is_wanted = self.wants(&req, &req.input.bucket, &[NAME]);
        let about = self.about(&req, &req.input.bucket, &req.input.key);
        let version_id = req.input.version_id.clone();
        let shared = Arc::clone(self);
        detached(async move {
            if shared.tags.is_some() {
                shared.check_object(&about.bucket, &about.key, version_id.clone()).await?;
            }
            let add = |detail: &mut Detail| detail.tags = Some(sum(&[]));
            let begun = if is_wanted { shared.begin_with(NAME, about.clone(), add).await? } else { None };
            let outcome = if shared.tags.is_some() {
                let kept = shared.replace_tags(&about.bucket, &about.key, None).await;
                kept.map(|()| S3Response::new(DeleteObjectTaggingOutput::default()))
            } else {
                shared.inner.delete_object_tagging(req).await
            };
            shared.settle(begun, outcome, version_id).await
        })
        .await
    }

    /// Takes the header `x-amz-tagging` out of a request if tags are kept here.
    pub(super) fn header_tags(&self, header: &mut Option<String>) -> S3Result<Option<TagList>> {
        if self.tags.is_none() {
            return Ok(None);
        }
        let Some(text) = header.take() else { return Ok(None) };
        let pairs = form_urlencoded::parse(text.as_bytes());
        let pairs = pairs.map(|(name, value)| (name.into_owned(), value.into_owned()));
        checked(pairs.collect()).map(Some)
    }

    /// The tags of a copy: those of the request, or those of its source.
    pub(super) async fn copied_tags(&self, input: &mut CopyObjectInput) -> S3Result<Option<TagList>> {
        let given = self.header_tags(&mut input.tagging)?;
        let directive = input.tagging_directive.as_ref().map(TaggingDirective::as_str);
        if self.tags.is_none() || directive == Some(TaggingDirective::REPLACE) {
            return Ok(given);
        }
        match &input.copy_source {
            CopySource::Bucket { bucket, key, .. } => self.stored_tags(bucket, key).await,
            _ => Ok(None),
        }
    }

    /// Whether tags have to be written or removed when an object of the bucket is replaced.
    pub(super) async fn concerns_tags(&self, bucket: &str, given: Option<&TagList>) -> S3Result<bool> {
        let Some(tags) = &self.tags else { return Ok(false) };
        Ok(given.is_some() || tags.has(bucket).await.map_err(S3Error::internal_error)?)
    }

    /// The tags that are kept here.
    pub(super) async fn stored_tags(&self, bucket: &str, key: &str) -> S3Result<Option<TagList>> {
        let Some(tags) = &self.tags else { return Ok(None) };
        tags.read(bucket, key).await.map_err(S3Error::internal_error)
    }

    /// Gives an object these tags, if they are kept here, and takes all others from it.
    pub(super) async fn replace_tags(&self, bucket: &str, key: &str, given: Option<TagList>) -> S3Result<()> {
        let Some(tags) = &self.tags else { return Ok(()) };
        let outcome: io::Result<()> = match given {
            Some(given) if !given.is_empty() => tags.write(bucket, key, given).await,
            _ => tags.remove(bucket, key).await,
        };
        outcome.map_err(S3Error::internal_error)
    }

    pub(super) async fn drop_bucket_tags(&self, bucket: &str) -> S3Result<()> {
        let Some(tags) = &self.tags else { return Ok(()) };
        Tags::remove_bucket(tags, bucket).await.map_err(S3Error::internal_error)
    }

    async fn check_object(&self, bucket: &str, key: &str, version_id: Option<String>) -> S3Result<()> {
        match look(&self.inner, bucket, key, version_id).await? {
            Some(_) => Ok(()),
            None => Err(s3_error!(NoSuchKey)),
        }
    }
}

/// By what the tags of an object are recognised.
pub(super) fn sum(tags: &[(String, String)]) -> String {
    let mut sorted: Vec<_> = tags.iter().collect();
    sorted.sort_unstable();
    // A list of texts can always be written.
    digest(&serde_json::to_vec(&sorted).unwrap_or_default())
}

/// S3's limits: ten tags with different names of 1 to 128 characters, and values of up to 256.
fn checked(tags: TagList) -> S3Result<TagList> {
    let refuse = |why: String| Err(S3Error::with_message(S3ErrorCode::InvalidTag, why));
    if tags.len() > TAGS_MAX {
        return refuse(format!("an object cannot have more than {TAGS_MAX} tags"));
    }
    let mut names = HashSet::new();
    for (name, value) in &tags {
        let chars = name.chars().count();
        if chars == 0 || chars > NAME_CHARS_MAX {
            return refuse(format!("a tag's key has 1 to {NAME_CHARS_MAX} characters, and this has {chars}"));
        }
        let chars = value.chars().count();
        if chars > VALUE_CHARS_MAX {
            return refuse(format!(
                "a tag's value has up to {VALUE_CHARS_MAX} characters, and this has {chars}"
            ));
        }
        if !names.insert(name) {
            return refuse(format!(
                "cannot provide multiple tags with the same key: {}",
                name.escape_debug()
            ));
        }
    }
    Ok(tags)
}

const TAGS_MAX: usize = 10;
const NAME_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tags: &[(&str, &str)], message: Option<&str>) {
        let tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let refused = checked(tags).err();
        assert_eq!(refused.as_ref().and_then(S3Error::message), message);
    }

    #[test]
    fn tags_are_limited_as_in_s3() {
        let (name, value) = ("é".repeat(128), "é".repeat(256));
        check(&[(&name, &value), ("a", "")], None);
        check(&[("", "v")], Some("a tag's key has 1 to 128 characters, and this has 0"));
        let longer = format!("{name}x");
        check(&[(&longer, "v")], Some("a tag's key has 1 to 128 characters, and this has 129"));
        let longer = format!("{value}x");
        check(&[("n", &longer)], Some("a tag's value has up to 256 characters, and this has 257"));
        check(&[("n", "1"), ("n", "2")], Some("cannot provide multiple tags with the same key: n"));
        let names: Vec<String> = (0..11).map(|number| number.to_string()).collect();
        let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
        check(&many[..10], None);
        check(&many, Some("an object cannot have more than 10 tags"));
    }

    #[test]
    fn the_sum_of_tags_does_not_depend_on_their_order() {
        let [a, b] = [("a", "1"), ("b", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(sum(&[a.clone(), b.clone()]), sum(&[b.clone(), a.clone()]));
        assert_ne!(sum(&[a]), sum(&[b]));
    }
}
