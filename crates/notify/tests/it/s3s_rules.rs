//! Bucket notification configurations, as S3 clients set and read them.

use hyper::{Method, StatusCode};
use s3s_fs::FileSystem;
use tempfile::TempDir;

use crate::s3s_support::{ARN, Server, names};

async fn files(folder: &TempDir) -> Server<FileSystem> {
    let root = folder.path().join("objects");
    std::fs::create_dir_all(&root).unwrap();
    Server::start(folder, FileSystem::new(root).unwrap()).await
}

fn configuration(content: &str) -> String {
    format!(
        "<NotificationConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{content}</NotificationConfiguration>"
    )
}

fn queue(arn: &str, event: &str, prefix: &str) -> String {
    let filter = format!(
        "<Filter><S3Key><FilterRule><Name>prefix</Name><Value>{prefix}</Value></FilterRule></S3Key></Filter>"
    );
    format!(
        "<QueueConfiguration><Id>q1</Id><Queue>{arn}</Queue><Event>{event}</Event>{filter}</QueueConfiguration>"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_set_and_read_and_outlive_a_restart() {
    let folder = TempDir::new().unwrap();
    let mut server = files(&folder).await;
    server.put("/photos", "").await;
    let none = server.request(Method::GET, "/photos?notification", &[], "").await;
    assert_eq!(none.status, StatusCode::OK, "{}", none.text());
    assert!(!none.text().contains("QueueConfiguration"), "{}", none.text());
    let upper = ARN.replace("primary", "PRIMARY");
    server.put("/photos?notification", &configuration(&queue(&upper, "s3:ObjectCreated:*", "a b/"))).await;
    server.put("/photos/a%20b/1", "x").await;
    server.put("/photos/c", "x").await;
    assert_eq!(names(&server.messages(1).await), [("s3:ObjectCreated:Put", "photos/a b/1")]);
    server.stop().await;

    let mut server = files(&folder).await;
    let answer = server.request(Method::GET, "/photos?notification", &[], "").await;
    for part in [
        format!("<Queue>{ARN}</Queue>"),
        "<Id>q1</Id>".into(),
        "<Event>s3:ObjectCreated:*</Event>".into(),
        "<FilterRule><Name>prefix</Name><Value>a b/</Value></FilterRule>".into(),
    ] {
        assert!(answer.text().contains(&part), "{part} in {}", answer.text());
    }
    server.put("/photos/a%20b/2", "x").await;
    assert_eq!(names(&server.messages(1).await), [("s3:ObjectCreated:Put", "photos/a b/2")]);

    server.put("/photos?notification", &configuration("")).await;
    server.put("/photos/a%20b/3", "x").await;
    assert_eq!(server.messages(1).await.len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_takes_its_rules_with_it() {
    let folder = TempDir::new().unwrap();
    let mut server = files(&folder).await;
    server.put("/photos", "").await;
    server.put("/photos?notification", &configuration(&queue(ARN, "s3:ObjectCreated:*", ""))).await;
    server.delete("/photos").await;
    server.put("/photos", "").await;
    server.put("/photos/a", "x").await;
    assert!(server.messages(0).await.is_empty());
    let answer = server.request(Method::GET, "/photos?notification", &[], "").await;
    assert!(!answer.text().contains("QueueConfiguration"), "{}", answer.text());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_are_refused_with_the_codes_of_s3() {
    let folder = TempDir::new().unwrap();
    let server = files(&folder).await;
    server.put("/photos", "").await;
    let put = async |bucket: &str, content: &str| {
        server.request(Method::PUT, &format!("/{bucket}?notification"), &[], configuration(content)).await
    };
    let good = queue(ARN, "s3:ObjectCreated:*", "");
    put("nothing", &good).await.check_refused(404, "NoSuchBucket");
    server.request(Method::GET, "/nothing?notification", &[], "").await.check_refused(404, "NoSuchBucket");
    let unknown = put("photos", &queue("arn:minio:sqs::other:kafka", "s3:ObjectCreated:*", "")).await;
    unknown.check_refused(400, "InvalidArgument");
    assert!(unknown.text().contains("A specified destination ARN does not exist"), "{}", unknown.text());
    assert!(unknown.text().contains(ARN), "those that exist are named: {}", unknown.text());
    put("photos", &queue(ARN, "put", "")).await.check_refused(400, "InvalidArgument");
    let twice = put("photos", &format!("{good}{good}")).await;
    twice.check_refused(400, "InvalidArgument");
    assert!(twice.text().contains("overlapping prefixes, overlapping suffixes"), "{}", twice.text());
    let topic = format!(
        "<TopicConfiguration><Topic>{ARN}</Topic><Event>s3:ObjectCreated:*</Event></TopicConfiguration>"
    );
    put("photos", &topic).await.check_refused(400, "UnsupportedNotification");
    put("photos", "<QueueConfiguration/>").await.check_refused(400, "MalformedXML");
    server.stop().await;
}
