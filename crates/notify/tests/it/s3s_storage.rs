//! A storage in memory, which takes keys of any length, and fails, waits or panics when it is told to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use s3s::dto::{
    CompleteMultipartUploadInput, CompleteMultipartUploadOutput, DeleteObjectInput, DeleteObjectOutput,
    DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETag, Error, GetObjectAttributesInput,
    GetObjectAttributesOutput, GetObjectLegalHoldInput, GetObjectLegalHoldOutput, GetObjectRetentionInput,
    GetObjectRetentionOutput, HeadBucketInput, HeadBucketOutput, HeadObjectInput, HeadObjectOutput,
    PutObjectInput, PutObjectLegalHoldInput, PutObjectLegalHoldOutput, PutObjectOutput,
    PutObjectRetentionInput, PutObjectRetentionOutput, RestoreObjectInput, RestoreObjectOutput, Timestamp,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use tokio::sync::Semaphore;

/// What it does after it has committed, instead of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Answer,
    /// Waits until the test lets it go on.
    Wait,
    Panic,
}

/// Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct MemoryStorage {
    objects: Arc<Mutex<Objects>>,
    after: Arc<Mutex<After>>,
    committed: Arc<Semaphore>,
    go_on: Arc<Semaphore>,
}

type Objects = BTreeMap<(String, String), (Bytes, SystemTime)>;

impl MemoryStorage {
    pub(crate) fn new() -> Self {
        Self {
            objects: Arc::default(),
            after: Arc::new(Mutex::new(After::Answer)),
            committed: Arc::new(Semaphore::new(0)),
            go_on: Arc::new(Semaphore::new(0)),
        }
    }

    /// What it does from now on.
    pub(crate) fn set_after(&self, after: After) {
        *self.after.lock().unwrap() = after;
    }

    /// Waits until it has committed something, and waits.
    pub(crate) async fn committed(&self) {
        self.committed.acquire().await.unwrap().forget();
    }

    /// Lets one go on that waits.
    pub(crate) fn go_on(&self) {
        self.go_on.add_permits(1);
    }

    #[expect(clippy::disallowed_methods, reason = "an object is modified now")]
    fn put(&self, bucket: String, key: String, body: Bytes) {
        self.objects.lock().unwrap().insert((bucket, key), (body, SystemTime::now()));
    }

    fn remove(&self, bucket: &str, key: &str) {
        self.objects.lock().unwrap().remove(&(bucket.to_owned(), key.to_owned()));
    }

    async fn after(&self) {
        let after = *self.after.lock().unwrap();
        match after {
            After::Answer => {}
            After::Wait => {
                self.committed.add_permits(1);
                self.go_on.acquire().await.unwrap().forget();
            }
            After::Panic => panic!("the storage panics, as the test wants it to"),
        }
    }
}

#[async_trait]
impl S3 for MemoryStorage {
    async fn head_bucket(&self, _: S3Request<HeadBucketInput>) -> S3Result<S3Response<HeadBucketOutput>> {
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let name = (request.input.bucket, request.input.key);
        let objects = self.objects.lock().unwrap();
        let (body, modified) = objects.get(&name).ok_or_else(|| s3_error!(NoSuchKey))?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: i64::try_from(body.len()).ok(),
            last_modified: Some(Timestamp::from(*modified)),
            e_tag: Some(ETag::Strong(body.len().to_string())),
            ..HeadObjectOutput::default()
        }))
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let input = request.input;
        let mut body = BytesMut::new();
        let mut stream = input.body.ok_or_else(|| s3_error!(IncompleteBody))?;
        while let Some(bytes) = stream.next().await {
            body.extend_from_slice(&bytes.map_err(|error| s3_error!(InternalError, "{error}"))?);
        }
        if input.key.starts_with("refused") {
            return Err(s3_error!(BadDigest));
        }
        let e_tag = Some(ETag::Strong(body.len().to_string()));
        self.put(input.bucket, input.key, body.freeze());
        self.after().await;
        Ok(S3Response::new(PutObjectOutput { e_tag, ..PutObjectOutput::default() }))
    }

    /// Puts nothing together, and takes its time: the answer is begun before.
    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = request.input;
        self.put(input.bucket, input.key.clone(), Bytes::from_static(b"parts"));
        let fails = input.key.starts_with("refused");
        let assembling = async move {
            tokio::task::yield_now().await;
            let e_tag = Some(ETag::Strong("5".into()));
            let output = CompleteMultipartUploadOutput { e_tag, ..CompleteMultipartUploadOutput::default() };
            if fails { Err(s3_error!(InvalidPart)) } else { Ok(output) }
        };
        let future: Option<BoxFuture<'static, _>> = Some(Box::pin(assembling));
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            future,
            ..CompleteMultipartUploadOutput::default()
        }))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = request.input;
        let has_versions = input.key.starts_with("versioned");
        self.remove(&input.bucket, &input.key);
        self.after().await;
        Ok(S3Response::new(DeleteObjectOutput {
            delete_marker: has_versions.then_some(true),
            version_id: has_versions.then(|| "marker-1".into()),
            ..DeleteObjectOutput::default()
        }))
    }

    /// Keys that begin with `refused` stay; the others are removed, and named unless it is to be quiet. At a key `broken`
    /// the whole ends.
    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let input = request.input;
        let (mut deleted, mut errors) = (Vec::new(), Vec::new());
        for object in input.delete.objects {
            if object.key == "broken" {
                return Err(s3_error!(InternalError));
            }
            if object.key.starts_with("refused") {
                errors.push(Error { key: Some(object.key), ..Error::default() });
                continue;
            }
            self.remove(&input.bucket, &object.key);
            deleted.push(DeletedObject { key: Some(object.key), ..DeletedObject::default() });
        }
        Ok(S3Response::new(DeleteObjectsOutput {
            deleted: (input.delete.quiet != Some(true)).then_some(deleted),
            errors: Some(errors),
            ..DeleteObjectsOutput::default()
        }))
    }

    async fn put_object_retention(
        &self,
        _: S3Request<PutObjectRetentionInput>,
    ) -> S3Result<S3Response<PutObjectRetentionOutput>> {
        Ok(S3Response::new(PutObjectRetentionOutput::default()))
    }

    async fn put_object_legal_hold(
        &self,
        _: S3Request<PutObjectLegalHoldInput>,
    ) -> S3Result<S3Response<PutObjectLegalHoldOutput>> {
        Ok(S3Response::new(PutObjectLegalHoldOutput::default()))
    }

    async fn restore_object(
        &self,
        _: S3Request<RestoreObjectInput>,
    ) -> S3Result<S3Response<RestoreObjectOutput>> {
        Ok(S3Response::new(RestoreObjectOutput::default()))
    }

    async fn get_object_retention(
        &self,
        _: S3Request<GetObjectRetentionInput>,
    ) -> S3Result<S3Response<GetObjectRetentionOutput>> {
        Ok(S3Response::new(GetObjectRetentionOutput::default()))
    }

    async fn get_object_legal_hold(
        &self,
        _: S3Request<GetObjectLegalHoldInput>,
    ) -> S3Result<S3Response<GetObjectLegalHoldOutput>> {
        Ok(S3Response::new(GetObjectLegalHoldOutput::default()))
    }

    async fn get_object_attributes(
        &self,
        _: S3Request<GetObjectAttributesInput>,
    ) -> S3Result<S3Response<GetObjectAttributesOutput>> {
        Ok(S3Response::new(GetObjectAttributesOutput::default()))
    }
}
