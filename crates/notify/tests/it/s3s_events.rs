//! Which operations are told of, and how.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use kolumn_notify::config::QueueConfig;
use kolumn_notify::event::Style;
use kolumn_notify::rules::{BucketRules, Rule};
use kolumn_notify::target::Target as _;
use kolumn_notify::target::memory::MemoryTarget;
use s3s::dto::{
    GetObjectAttributesInput, GetObjectLegalHoldInput, GetObjectRetentionInput, PostObjectInput,
    PutObjectLegalHoldInput, PutObjectRetentionInput, RestoreObjectInput,
};
use s3s::{Body, S3 as _};
use s3s_fs::FileSystem;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::s3s_storage::MemoryStorage;
use crate::s3s_support::{Server, names, requested};

async fn files(folder: &TempDir) -> Server<FileSystem> {
    let root = folder.path().join("objects");
    std::fs::create_dir_all(&root).unwrap();
    let server = Server::start(folder, FileSystem::new(root).unwrap()).await;
    server.put("/photos", "").await;
    server.tell_all().await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_is_told_of_as_the_documented_example_has_it() {
    let folder = TempDir::new().unwrap();
    let mut server = files(&folder).await;
    let headers =
        [("content-type", "image/jpeg"), ("x-amz-meta-camera", "old"), ("cache-control", "no-store")];
    let answer = server.request(Method::PUT, "/photos/2025/sea%20side.jpg", &headers, "12345").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
    let messages = server.messages(1).await;
    let record = &messages[0]["Records"][0];
    let (time, sequencer) = (&record["eventTime"], record["s3"]["object"]["sequencer"].as_str().unwrap());
    assert_eq!(sequencer.len(), 16);
    let e_tag = "827ccb0eea8a706c4c34a16891f84e7b";
    assert_eq!(header("etag"), format!("\"{e_tag}\""));
    let expect = json!({
        "EventName": "s3:ObjectCreated:Put", "Key": "photos/2025/sea side.jpg", "Records": [{
            "eventVersion": "2.0", "eventSource": "minio:s3", "awsRegion": "", "eventTime": time,
            "eventName": "s3:ObjectCreated:Put", "userIdentity": {"principalId": "alice"},
            "requestParameters": {"principalId": "alice", "region": "", "sourceIPAddress": "192.168.1.10"},
            "responseElements": {
                "x-amz-id-2": header("x-amz-id-2"), "x-amz-request-id": header("x-amz-request-id"),
                "x-minio-deployment-id": record["responseElements"]["x-minio-deployment-id"],
                "x-minio-origin-endpoint": record["responseElements"]["x-minio-origin-endpoint"],
            },
            "s3": {
                "s3SchemaVersion": "1.0", "configurationId": "Config",
                "bucket": {
                    "name": "photos", "ownerIdentity": {"principalId": "alice"}, "arn": "arn:aws:s3:::photos"
                },
                "object": {
                    "key": "2025%2Fsea+side.jpg", "size": 5, "eTag": e_tag, "contentType": "image/jpeg",
                    "userMetadata": {
                        "X-Amz-Meta-Camera": "old", "cache-control": "no-store", "content-type": "image/jpeg"
                    },
                    "sequencer": sequencer
                }
            },
            "source": {"host": "192.168.1.10", "port": "", "userAgent": "a client of the test"}
        }]
    });
    assert_eq!(messages[0], expect);
    assert_eq!(header("x-amz-request-id").len(), 16);
    assert_eq!(header("x-amz-id-2").len(), 64);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_has_its_event() {
    let folder = TempDir::new().unwrap();
    let mut server = files(&folder).await;
    server.put("/photos/a", "first").await;
    let source = [("x-amz-copy-source", "photos/a")];
    let answer = server.request(Method::PUT, "/photos/b", &source, "").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let tags = "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>";
    server.put("/photos/a?tagging", tags).await;
    let answer = server.request(Method::GET, "/photos/a", &[("range", "bytes=1-2")], "").await;
    assert_eq!((answer.text(), answer.headers["x-amz-tagging-count"].to_str().unwrap()), ("ir", "1"));
    let answer = server.request(Method::HEAD, "/photos/a", &[], "").await;
    assert_eq!(answer.headers["x-amz-tagging-count"], "1");
    server.delete("/photos/a?tagging").await;
    server.delete("/photos/a").await;
    server.delete("/photos/a").await;
    server.delete("/photos").await;
    let messages = server.messages(9).await;
    let expect = [
        ("s3:ObjectCreated:Put", "photos/a"),
        ("s3:ObjectCreated:Copy", "photos/b"),
        ("s3:ObjectCreated:PutTagging", "photos/a"),
        ("s3:ObjectAccessed:Get", "photos/a"),
        ("s3:ObjectAccessed:Head", "photos/a"),
        ("s3:ObjectCreated:DeleteTagging", "photos/a"),
        ("s3:ObjectRemoved:Delete", "photos/a"),
        ("s3:ObjectRemoved:NoOP", "photos/a"),
        ("s3:BucketRemoved:*", "photos/"),
    ];
    assert_eq!(names(&messages), expect);
    for message in &messages[..6] {
        let object = &message["Records"][0]["s3"]["object"];
        assert_eq!(object["size"], 5, "{message}");
        assert_eq!(object["eTag"], "8b04d5e3775d298e78455efc5ca404d5", "{message}");
    }
    assert_eq!(messages[3]["Records"][0]["requestParameters"]["range"], "bytes=1-2");
    let sequencers: Vec<&str> = messages.iter().map(sequencer).collect();
    assert!(sequencers.is_sorted(), "{sequencers:?}");
    server.stop().await;
}

fn sequencer(message: &Value) -> &str {
    message["Records"][0]["s3"]["object"]["sequencer"].as_str().unwrap()
}

/// Asks for an operation on `photos/a` as the server does when it has read the request.
macro_rules! ask {
    ($storage:expr, $method:ident, $Input:ident) => {{
        let input = $Input { bucket: "photos".into(), key: "a".into(), ..$Input::default() };
        $storage.$method(requested(input)).await.unwrap();
    }};
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_that_few_storages_have_are_told_of_too() {
    let folder = TempDir::new().unwrap();
    let mut server = Server::start(&folder, MemoryStorage::new()).await;
    server.tell_all().await;
    let storage = server.notifying.clone();
    let input = PostObjectInput {
        bucket: "photos".into(),
        key: "a".into(),
        body: Some(Body::from(Bytes::from_static(b"posted")).into()),
        content_type: Some("text/plain".into()),
        ..PostObjectInput::default()
    };
    storage.post_object(requested(input)).await.unwrap();
    ask!(storage, put_object_retention, PutObjectRetentionInput);
    ask!(storage, put_object_legal_hold, PutObjectLegalHoldInput);
    ask!(storage, restore_object, RestoreObjectInput);
    ask!(storage, get_object_retention, GetObjectRetentionInput);
    ask!(storage, get_object_legal_hold, GetObjectLegalHoldInput);
    ask!(storage, get_object_attributes, GetObjectAttributesInput);
    let messages = server.messages(7).await;
    let expect = [
        "s3:ObjectCreated:Post",
        "s3:ObjectCreated:PutRetention",
        "s3:ObjectCreated:PutLegalHold",
        "s3:ObjectRestore:Post",
        "s3:ObjectAccessed:GetRetention",
        "s3:ObjectAccessed:GetLegalHold",
        "s3:ObjectAccessed:Attributes",
    ];
    assert_eq!(names(&messages), expect.map(|name| (name, "photos/a")));
    for message in &messages {
        assert_eq!(message["Records"][0]["s3"]["object"]["size"], 6, "{message}");
        assert_eq!(message["Records"][0]["userIdentity"]["principalId"], "alice");
    }
    assert_eq!(messages[0]["Records"][0]["s3"]["object"]["contentType"], "text/plain");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_are_told_of_when_they_are_put_together() {
    let folder = TempDir::new().unwrap();
    let mut server = files(&folder).await;
    let headers = [("x-amz-tagging", "k=v%20w"), ("content-type", "text/plain"), ("x-amz-meta-a", "b")];
    let answer = server.request(Method::POST, "/photos/big?uploads", &headers, "").await;
    let text = answer.text();
    let (_, rest) = text.split_once("<UploadId>").unwrap_or_else(|| panic!("{text}"));
    let (id, _) = rest.split_once("</UploadId>").unwrap();
    let part = server.put(&format!("/photos/big?partNumber=1&uploadId={id}"), "a part").await;
    let e_tag = part.headers["etag"].to_str().unwrap();
    let parts = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{e_tag}</ETag></Part></CompleteMultipartUpload>"
    );
    let answer = server.request(Method::POST, &format!("/photos/big?uploadId={id}"), &[], parts).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let messages = server.messages(1).await;
    assert_eq!(names(&messages), [("s3:ObjectCreated:CompleteMultipartUpload", "photos/big")]);
    let object = &messages[0]["Records"][0]["s3"]["object"];
    assert_eq!((&object["size"], &object["contentType"]), (&json!(6), &json!("text/plain")));
    assert_eq!(object["userMetadata"]["X-Amz-Meta-A"], "b");
    assert!(object["eTag"].as_str().unwrap().ends_with("-1"), "{object}");
    assert!(answer.text().contains(object["eTag"].as_str().unwrap()), "{}", answer.text());
    let tags = server.request(Method::GET, "/photos/big?tagging", &[], "").await;
    assert!(tags.text().contains("<Key>k</Key><Value>v w</Value>"), "{}", tags.text());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assembly_that_outlasts_its_answer_is_told_of_at_its_end() {
    let folder = TempDir::new().unwrap();
    let mut server = Server::start(&folder, MemoryStorage::new()).await;
    server.tell_all().await;
    let parts = "<CompleteMultipartUpload></CompleteMultipartUpload>";
    for key in ["refused", "big"] {
        server.request(Method::POST, &format!("/photos/{key}?uploadId=1"), &[], parts).await;
    }
    let messages = server.messages(1).await;
    assert_eq!(names(&messages), [("s3:ObjectCreated:CompleteMultipartUpload", "photos/big")]);
    assert_eq!(messages[0]["Records"][0]["s3"]["object"]["size"], 5);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_told_as_they_are() {
    let folder = TempDir::new().unwrap();
    let mut server = Server::start(&folder, MemoryStorage::new()).await;
    server.tell_all().await;
    let long = "k".repeat(1024);
    let keys = [
        ("a%20b", "a b", "a+b"),
        ("a%2Bb", "a+b", "a%2Bb"),
        ("100%25", "100%", "100%25"),
        ("%2520", "%20", "%2520"),
        ("%C3%A9/%E6%BC%A2/%F0%9F%A6%80", "é/漢/🦀", "%C3%A9%2F%E6%BC%A2%2F%F0%9F%A6%80"),
        ("a//b/", "a//b/", "a%2F%2Fb%2F"),
        (&long, &long, &long),
    ];
    for (written, _, _) in keys {
        server.put(&format!("/photos/{written}"), "x").await;
    }
    let messages = server.messages(keys.len()).await;
    for (message, (_, raw, encoded)) in messages.iter().zip(keys) {
        assert_eq!(message["Key"], format!("photos/{raw}"));
        assert_eq!(message["Records"][0]["s3"]["object"]["key"], encoded);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_removals_are_told_each() {
    let folder = TempDir::new().unwrap();
    let mut server = Server::start(&folder, MemoryStorage::new()).await;
    for key in ["a", "b", "versioned"] {
        server.put(&format!("/photos/{key}"), "x").await;
    }
    server.tell_all().await;
    let remove = |quiet: bool, keys: &[&str]| {
        let objects: Vec<String> =
            keys.iter().map(|key| format!("<Object><Key>{key}</Key></Object>")).collect();
        format!("<Delete><Quiet>{quiet}</Quiet>{}</Delete>", objects.concat())
    };
    for (quiet, keys) in [(false, &["a", "refused"][..]), (true, &["b", "refused", "missing"])] {
        let answer = server.request(Method::POST, "/photos?delete", &[], remove(quiet, keys)).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    }
    server.delete("/photos/versioned").await;
    let messages = server.messages(4).await;
    let expect = [
        ("s3:ObjectRemoved:Delete", "photos/a"),
        ("s3:ObjectRemoved:Delete", "photos/b"),
        ("s3:ObjectRemoved:NoOP", "photos/missing"),
        ("s3:ObjectRemoved:DeleteMarkerCreated", "photos/versioned"),
    ];
    assert_eq!(names(&messages), expect);
    assert_eq!(messages[3]["Records"][0]["s3"]["object"]["versionId"], "marker-1");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_not_told() {
    let folder = TempDir::new().unwrap();
    let mut server = files(&folder).await;
    server.put("/photos/there", "x").await;
    let check =
        |answer: crate::s3s_support::Answer, status: u16, code: &str| answer.check_refused(status, code);
    let only_new = [("if-none-match", "*")];
    check(server.request(Method::PUT, "/photos/there", &only_new, "y").await, 412, "PreconditionFailed");
    let digest = [("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")];
    check(server.request(Method::PUT, "/photos/bad", &digest, "y").await, 400, "BadDigest");
    let source = [("x-amz-copy-source", "photos/missing")];
    check(server.request(Method::PUT, "/photos/copy", &source, "").await, 404, "NoSuchKey");
    check(server.request(Method::GET, "/photos/missing", &[], "").await, 404, "NoSuchKey");
    check(server.request(Method::DELETE, "/nothing/key", &[], "").await, 404, "NoSuchBucket");
    check(server.request(Method::DELETE, "/nothing", &[], "").await, 404, "NoSuchBucket");
    check(server.request(Method::PUT, "/photos", &[], "").await, 409, "BucketAlreadyExists");
    check(server.request(Method::PUT, "/photos/missing?tagging", &[], TAGS).await, 404, "NoSuchKey");
    check(
        server.request(Method::PUT, "/photos/there", &[("x-amz-tagging", "a=1&a=2")], "").await,
        400,
        "InvalidTag",
    );
    let removal = "<Delete><Object><Key>a</Key></Object></Delete>";
    check(server.request(Method::POST, "/nothing?delete", &[], removal).await, 404, "NoSuchBucket");
    let messages = server.messages(1).await;
    assert_eq!(names(&messages), [("s3:ObjectCreated:Put", "photos/there")]);
    server.stop().await;
}

const TAGS: &str = "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>";

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_told_is_not_done() {
    let folder = TempDir::new().unwrap();
    let server = files(&folder).await;
    let (target, side) = MemoryTarget::new("arn:minio:sqs::small:webhook".parse().unwrap());
    side.set_down(true);
    let mut queue = QueueConfig::default();
    queue.limit = 1;
    let arn = target.arn().clone();
    server.hub().add_target(Arc::new(target), &queue, Style::Minio).await.unwrap();
    let rule = Rule::new(arn, ["s3:ObjectCreated:*".parse().unwrap()]).unwrap();
    server.hub().set_rules("photos", BucketRules::new(vec![rule])).await.unwrap();
    server.put("/photos/first", "x").await;
    let second = server.request(Method::PUT, "/photos/second", &[], "x").await;
    second.check_refused(503, "ServiceUnavailable");
    server.request(Method::GET, "/photos/second", &[], "").await.check_refused(404, "NoSuchKey");
    server.hub().close(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_stay_with_their_object() {
    let folder = TempDir::new().unwrap();
    let server = files(&folder).await;
    let with_tags = [("x-amz-tagging", "colour=dark+blue&k")];
    server.request(Method::PUT, "/photos/a", &with_tags, "x").await;
    check_tags(&server, "a", &[("colour", "dark blue"), ("k", "")]).await;
    server.request(Method::PUT, "/photos/b", &[("x-amz-copy-source", "photos/a")], "").await;
    check_tags(&server, "b", &[("colour", "dark blue"), ("k", "")]).await;
    let replaced =
        [("x-amz-copy-source", "photos/a"), ("x-amz-tagging-directive", "REPLACE"), ("x-amz-tagging", "n=1")];
    server.request(Method::PUT, "/photos/c", &replaced, "").await;
    check_tags(&server, "c", &[("n", "1")]).await;
    // A new object has none of the former one's.
    server.put("/photos/a", "y").await;
    check_tags(&server, "a", &[]).await;
    server.delete("/photos/b").await;
    server.put("/photos/b", "y").await;
    check_tags(&server, "b", &[]).await;
    server.stop().await;

    let server = Server::start(&folder, FileSystem::new(folder.path().join("objects")).unwrap()).await;
    check_tags(&server, "c", &[("n", "1")]).await;
    server.delete("/photos").await;
    server.put("/photos", "").await;
    server.put("/photos/c", "z").await;
    check_tags(&server, "c", &[]).await;
    server.stop().await;
}

async fn check_tags(server: &Server<FileSystem>, key: &str, expect: &[(&str, &str)]) {
    let answer = server.request(Method::GET, &format!("/photos/{key}?tagging"), &[], "").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let tags: Vec<String> = expect
        .iter()
        .map(|(name, value)| format!("<Tag><Key>{name}</Key><Value>{value}</Value></Tag>"))
        .collect();
    let text = answer.text();
    let set = text.split_once("<TagSet>").and_then(|(_, rest)| rest.split_once("</TagSet>"));
    assert_eq!(set.map_or("", |(set, _)| set), tags.concat(), "{key}: {text}");
}
