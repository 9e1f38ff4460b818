//! Events in each style, against documented messages.

use std::sync::Arc;

use kolumn_notify::event::{Event, EventBuilder, EventName, Origin, Style, Timestamp, test_event};

fn origin() -> Arc<Origin> {
    let mut origin = Origin::default();
    origin.deployment_id = "2369dcb4-348b-4d30-8fc9-61ab089ba4bc".into();
    origin.endpoint = "https://minio.test.svc.cluster.local".into();
    Arc::new(origin)
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn now() -> Timestamp {
    at("2025-02-06T01:04:31.998Z")
}

/// The operation of `MinIO`'s documented example, on another object if need be.
fn image(name: EventName, key: &str) -> EventBuilder {
    Event::builder(&origin(), name, "test-bucket", key)
        .size(84_452)
        .e_tag("\"eb52f8e46f60a27a8a1a704e25757f30\"")
        .content_type("image/jpeg")
        .mod_time(Timestamp::from_unix_nanos(0x1821_78E8_B372_8CAC))
        .requester("access_key", None)
        .source("192.168.1.10", "MinIO (linux; amd64) minio-go/v7.0.83")
        .request_id("182178E8B36AC9DF")
        .host_id("dd9025bab4ad464b049177c95eb6ebf374d3b3fd1af9251148b658df7ac2e3e8")
}

fn put() -> EventBuilder {
    image(EventName::ObjectCreatedPut, "image.jpg")
}

fn message(builder: EventBuilder, style: Style) -> String {
    let mut out = Vec::new();
    builder.build(now()).unwrap().write_message(style, "rule 1", &mut out);
    String::from_utf8(out).unwrap()
}

/// A member of the only record, by its JSON pointer; `null` if it is absent.
fn member(message: &str, pointer: &str) -> serde_json::Value {
    let message: serde_json::Value = serde_json::from_str(message).unwrap();
    let record = message.pointer("/Records/0").or(message.pointer("/data")).unwrap();
    record.pointer(pointer).cloned().unwrap_or_default()
}

const RECORD: &str = concat!(
    r#"{"eventVersion":"2.0","eventSource":"minio:s3","awsRegion":"","eventTime":"2025-02-06T01:04:31.998Z","#,
    r#""eventName":"s3:ObjectCreated:Put","userIdentity":{"principalId":"access_key"},"#,
    r#""requestParameters":{"principalId":"access_key","region":"","sourceIPAddress":"192.168.1.10"},"#,
    r#""responseElements":{"x-amz-id-2":"dd9025bab4ad464b049177c95eb6ebf374d3b3fd1af9251148b658df7ac2e3e8","#,
    r#""x-amz-request-id":"182178E8B36AC9DF","x-minio-deployment-id":"2369dcb4-348b-4d30-8fc9-61ab089ba4bc","#,
    r#""x-minio-origin-endpoint":"https://minio.test.svc.cluster.local"},"#,
    r#""s3":{"s3SchemaVersion":"1.0","configurationId":"Config","#,
    r#""bucket":{"name":"test-bucket","ownerIdentity":{"principalId":"access_key"},"arn":"arn:aws:s3:::test-bucket"},"#,
    r#""object":{"key":"image.jpg","size":84452,"eTag":"eb52f8e46f60a27a8a1a704e25757f30","#,
    r#""contentType":"image/jpeg","userMetadata":{"content-type":"image/jpeg"},"sequencer":"182178E8B3728CAC"}},"#,
    r#""source":{"host":"192.168.1.10","port":"","userAgent":"MinIO (linux; amd64) minio-go/v7.0.83"}}"#,
);

#[test]
fn the_documented_message_of_minio_is_written_byte_for_byte() {
    let envelope = format!(
        r#"{{"EventName":"s3:ObjectCreated:Put","Key":"test-bucket/image.jpg","Records":[{RECORD}]}}"#
    );
    assert_eq!(message(put(), Style::Minio), envelope);
    let event = put().build(now()).unwrap();
    let mut out = Vec::new();
    event.write_record(Style::Minio, "rule 1", &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), RECORD);
    let mut out = b"before ".to_vec();
    event.write_records(Style::Minio, "rule 1", &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!(r#"before {{"Records":[{RECORD}]}}"#));
    assert_eq!(event.record_key(), "test-bucket/image.jpg");
    assert_eq!(event.sequencer().to_string(), "182178E8B3728CAC");
}

#[test]
fn the_documented_message_is_read_and_written_again() {
    let event = Event::from_record_json(message(put(), Style::Minio).as_bytes()).unwrap();
    let mut out = Vec::new();
    event.write_record(Style::Minio, "", &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), RECORD);
    assert_eq!(event, put().build(now()).unwrap());
}

#[track_caller]
fn check_key(key: &str, minio: &str, aws: &str) {
    let written = |style| message(image(EventName::ObjectCreatedPut, key), style);
    let filed: serde_json::Value = serde_json::from_str(&written(Style::Minio)).unwrap();
    assert_eq!(filed["Key"], format!("test-bucket/{key}"));
    assert_eq!(member(&written(Style::Minio), "/s3/object/key"), minio);
    for style in [Style::Aws, Style::EventBroker, Style::CloudEvents] {
        assert_eq!(member(&written(style), "/s3/object/key"), aws, "{style}");
    }
    let mut line = Vec::new();
    image(EventName::ObjectCreatedPut, key).build(now()).unwrap().write_listen_line(&mut line);
    let line = String::from_utf8(line).unwrap();
    assert!(line.ends_with("]}\n"));
    assert_eq!(line.lines().count(), 1);
    assert_eq!(member(&line, "/s3/object/key"), key);
    assert!(serde_json::from_str::<serde_json::Value>(&line).unwrap().get("Key").is_none());
    let again = Event::from_record_json(written(Style::Minio).as_bytes()).unwrap();
    assert_eq!(again.key(), key);
}

#[test]
fn keys_are_encoded_in_records_and_as_they_are_elsewhere() {
    check_key("a/b c", "a%2Fb+c", "a/b+c");
    check_key("a+b%20c", "a%2Bb%2520c", "a%2Bb%2520c");
    check_key(
        "größe/漢字.txt",
        "gr%C3%B6%C3%9Fe%2F%E6%BC%A2%E5%AD%97.txt",
        "gr%C3%B6%C3%9Fe/%E6%BC%A2%E5%AD%97.txt",
    );
    check_key("<&>\"\\\n", "%3C%26%3E%22%5C%0A", "%3C%26%3E%22%5C%0A");
    let long = "x".repeat(1024);
    check_key(&long, &long, &long);
}

#[test]
fn every_name_is_written_in_every_style() {
    for name in EventName::ALL.iter().copied() {
        let key = if name.is_of_bucket() { "" } else { "k" };
        let written = |style| message(image(name, key), style);
        let minio = written(Style::Minio);
        assert!(
            minio.starts_with(&format!(r#"{{"EventName":"{name}","Key":"test-bucket/{key}","Records":["#))
        );
        assert_eq!(member(&minio, "/eventName"), name.as_str());
        let in_aws = match name {
            EventName::ObjectCreatedPutTagging => EventName::ObjectTaggingPut,
            EventName::ObjectCreatedDeleteTagging => EventName::ObjectTaggingDelete,
            EventName::ObjectTransitionComplete => EventName::LifecycleTransition,
            EventName::LifecycleDelMarkerExpirationDelete => EventName::LifecycleExpirationDelete,
            other => other,
        };
        assert_eq!(member(&written(Style::Aws), "/eventName"), in_aws.short());
        assert_eq!(member(&written(Style::EventBroker), "/eventName"), in_aws.as_str());
        let cloud_event: serde_json::Value = serde_json::from_str(&written(Style::CloudEvents)).unwrap();
        assert_eq!(cloud_event["type"], format!("com.amazonaws.s3.{}", in_aws.short()));
        assert_eq!(cloud_event.get("subject").is_none(), key.is_empty());
    }
}

#[test]
fn minio_leaves_out_what_is_empty_and_what_a_removed_object_has_no_more() {
    let object = |builder| member(&message(builder, Style::Minio), "/s3/object").to_string();
    let empty = Event::builder(&origin(), EventName::ObjectCreatedPut, "b", "k").size(0).version_id("");
    assert_eq!(object(empty), r#"{"key":"k","sequencer":"182178E8B483BB80"}"#);
    for name in [
        EventName::ObjectRemovedDelete,
        EventName::ObjectRemovedDeleteMarkerCreated,
        EventName::ObjectRemovedNoOp,
    ] {
        let bare = r#"{"key":"k","sequencer":"182178E8B3728CAC","versionId":"v1"}"#;
        assert_eq!(object(image(name, "k").version_id("v1")), bare, "{name}");
    }
    let versioned = message(put().version_id("v1"), Style::Minio);
    assert!(versioned.contains(r#"},"versionId":"v1","sequencer":"182178E8B3728CAC"}}"#), "{versioned}");
}

#[test]
fn minio_adds_a_range_and_a_content_length_in_the_order_of_names() {
    let get = image(EventName::ObjectAccessedGet, "k").range("bytes=0-9").response_content_length(10);
    let written = message(get, Style::Minio);
    let parameters = r#""requestParameters":{"principalId":"access_key","range":"bytes=0-9","region":"","sourceIPAddress":"#;
    assert!(written.contains(parameters), "{written}");
    assert!(written.contains(r#""responseElements":{"content-length":"10","x-amz-id-2":"#), "{written}");
}

#[test]
fn metadata_is_sorted_by_bytes_and_secrets_are_not_in_any_style() {
    let builder = put()
        .user_metadata("x-amz-meta-b", "<2>")
        .user_metadata("x-amz-meta-a", "1")
        .user_metadata("authorization", "SECRET")
        .user_metadata("x-amz-server-side-encryption-customer-key", "SECRET")
        .user_metadata("x-minio-internal-Server-Side-Encryption-Sealed-Key", "SECRET");
    let written = message(builder.clone(), Style::Minio);
    let metadata = concat!(
        r#""userMetadata":{"X-Amz-Meta-A":"1","X-Amz-Meta-B":"\u003c2\u003e","#,
        r#""content-type":"image/jpeg"}"#
    );
    assert!(written.contains(metadata), "{written}");
    for style in Style::ALL.iter().copied() {
        assert!(!message(builder.clone(), style).contains("SECRET"), "{style}");
    }
}

#[test]
fn the_message_of_aws_has_its_members_in_its_order() {
    let expect = concat!(
        r#"{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"","#,
        r#""eventTime":"2025-02-06T01:04:31.998Z","eventName":"ObjectCreated:Put","#,
        r#""userIdentity":{"principalId":"access_key"},"requestParameters":{"sourceIPAddress":"192.168.1.10"},"#,
        r#""responseElements":{"x-amz-request-id":"182178E8B36AC9DF","#,
        r#""x-amz-id-2":"dd9025bab4ad464b049177c95eb6ebf374d3b3fd1af9251148b658df7ac2e3e8"},"#,
        r#""s3":{"s3SchemaVersion":"1.0","configurationId":"rule 1","bucket":{"name":"test-bucket","#,
        r#""ownerIdentity":{"principalId":"access_key"},"arn":"arn:aws:s3:::test-bucket"},"#,
        r#""object":{"key":"image.jpg","size":84452,"eTag":"eb52f8e46f60a27a8a1a704e25757f30","#,
        r#""versionId":"v1","sequencer":"182178E8B3728CAC"}}}]}"#,
    );
    assert_eq!(message(put().version_id("v1"), Style::Aws), expect);
}

#[track_caller]
fn check_aws(name: EventName, version: &str, object: &str) {
    let written = message(image(name, "k"), Style::Aws);
    assert_eq!(member(&written, "/eventVersion"), version, "{name}");
    assert_eq!(member(&written, "/s3/object").to_string(), object, "{name}");
}

#[test]
fn the_version_and_the_object_of_aws_depend_on_the_event() {
    let whole = r#"{"eTag":"eb52f8e46f60a27a8a1a704e25757f30","key":"k","sequencer":"182178E8B3728CAC","size":84452}"#;
    let unsequenced = r#"{"eTag":"eb52f8e46f60a27a8a1a704e25757f30","key":"k","size":84452}"#;
    let removed = r#"{"key":"k","sequencer":"182178E8B3728CAC"}"#;
    check_aws(EventName::ObjectCreatedCopy, "2.1", whole);
    check_aws(EventName::ObjectRemovedDelete, "2.1", removed);
    check_aws(EventName::ObjectRestorePost, "2.1", unsequenced);
    check_aws(EventName::ObjectRestoreCompleted, "2.1", unsequenced);
    check_aws(EventName::ReplicationFailed, "2.2", unsequenced);
    check_aws(EventName::ReplicationCompleted, "2.2", unsequenced);
    check_aws(EventName::ObjectRestoreDelete, "2.3", unsequenced);
    check_aws(EventName::LifecycleExpirationDeleteMarkerCreated, "2.3", removed);
    check_aws(EventName::LifecycleTransition, "2.3", unsequenced);
    check_aws(EventName::ObjectTransitionComplete, "2.3", unsequenced);
    check_aws(EventName::IntelligentTiering, "2.3", unsequenced);
    check_aws(EventName::ObjectAclPut, "2.3", unsequenced);
    check_aws(EventName::ObjectCreatedPutTagging, "2.3", unsequenced);
    let empty = Event::builder(&origin(), EventName::ObjectCreatedPut, "b", "k").size(0);
    assert_eq!(member(&message(empty, Style::Aws), "/s3/object/size"), 0);
}

#[test]
fn a_completed_restoration_tells_aws_how_long_the_copy_stays() {
    let until = at("2025-03-01T00:00:00Z");
    let written = |name| message(image(name, "k").restored(until, "GLACIER"), Style::Aws);
    let expect = concat!(
        r#"},"glacierEventData":{"restoreEventData":{"lifecycleRestorationExpiryTime":"2025-03-01T00:00:00.000Z","#,
        r#""lifecycleRestoreStorageClass":"GLACIER"}}}]}"#,
    );
    let completed = written(EventName::ObjectRestoreCompleted);
    assert!(completed.ends_with(expect), "{completed}");
    assert!(!written(EventName::ObjectRestorePost).contains("glacier"));
}

#[test]
fn the_test_message_of_aws_has_no_records() {
    let expect = concat!(
        r#"{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2025-02-06T01:04:31.998Z","Bucket":"b","#,
        r#""RequestId":"182178E8B36AC9DF","HostId":"h\"1"}"#,
    );
    assert_eq!(String::from_utf8(test_event("b", now(), "182178E8B36AC9DF", "h\"1")).unwrap(), expect);
}

#[test]
fn the_event_broker_has_microseconds_and_an_arn_of_its_own() {
    let mut origin = Origin::default();
    origin.region = "eu".into();
    let event = Event::builder(&Arc::new(origin), EventName::ObjectCreatedPut, "b", "a/b c")
        .size(0)
        .e_tag("abc")
        .version_id("v1")
        .mod_time(Timestamp::from_unix_nanos(0xAB))
        .requester("alice@example.com", None)
        .source("10.0.0.1", "agent")
        .request_id("R")
        .host_id("H");
    let time = at("2025-02-06T01:04:31.998765432Z");
    let expect = concat!(
        r#"{"Records":[{"awsRegion":"eu","eventName":"s3:ObjectCreated:Put","eventSource":"vast:s3","#,
        r#""eventTime":"2025-02-06T01:04:31.998765Z","eventVersion":"2.2","#,
        r#""requestParameters":{"sourceIPAddress":"10.0.0.1"},"#,
        r#""responseElements":{"x-amz-request-id":"R","x-amz-id-2":"H"},"#,
        r#""s3":{"bucket":{"arn":"arn:vast:s3:::b","name":"b","ownerIdentity":{"principalId":"alice@example.com"}},"#,
        r#""configurationId":"rule 1","object":{"eTag":"abc","key":"a/b+c","versionId":"v1","#,
        r#""sequencer":"00000000000000AB","size":0},"s3SchemaVersion":"1.0"},"#,
        r#""userIdentity":{"principalId":"alice@example.com"}}]}"#,
    );
    let mut out = Vec::new();
    event.build(time).unwrap().write_message(Style::EventBroker, "rule 1", &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), expect);
    let object = |name| member(&message(image(name, "k"), Style::EventBroker), "/s3/object").to_string();
    let removed = r#"{"key":"k","sequencer":"182178E8B3728CAC"}"#;
    assert_eq!(object(EventName::ObjectRemovedDelete), removed);
    let tagged = r#"{"eTag":"eb52f8e46f60a27a8a1a704e25757f30","key":"k","size":84452}"#;
    assert_eq!(object(EventName::ObjectTaggingDelete), tagged);
}

#[test]
fn a_cloud_event_has_the_attributes_of_the_adapter_and_the_record_as_its_data() {
    let mut origin = Origin::default();
    origin.region = "eu".into();
    let builder = || {
        Event::builder(&Arc::new(origin.clone()), EventName::ObjectCreatedPut, "b", "a/b c")
            .request_id("R")
            .host_id("H")
    };
    let written = message(builder(), Style::CloudEvents);
    let expect = concat!(
        r#"","source":"kolumn:s3.eu.b","type":"com.amazonaws.s3.ObjectCreated:Put","#,
        r#""datacontenttype":"application/json","subject":"a/b+c","time":"2025-02-06T01:04:31.998Z","#,
        r#""data":{"eventVersion":"2.1","eventSource":"kolumn:s3","awsRegion":"eu","#,
    );
    assert!(written.starts_with(r#"{"specversion":"1.0","id":"R.H."#), "{written}");
    assert!(written.contains(expect), "{written}");
    assert_eq!(member(&written, "/s3/configurationId"), "rule 1");
    let mut records = Vec::new();
    builder().build(now()).unwrap().write_records(Style::CloudEvents, "rule 1", &mut records);
    assert_eq!(String::from_utf8(records).unwrap(), written);
}

#[test]
fn the_ids_of_cloud_events_are_the_same_when_sent_again_and_differ_within_a_request() {
    let id = |builder: EventBuilder| {
        let event: serde_json::Value = serde_json::from_str(&message(builder, Style::CloudEvents)).unwrap();
        event["id"].as_str().unwrap().to_owned()
    };
    let removed = |key| image(EventName::ObjectRemovedDelete, key);
    assert_eq!(id(removed("a")), id(removed("a")));
    let ids = [
        id(removed("a")),
        id(removed("b")),
        id(removed("a").version_id("v")),
        id(removed("va")),
        id(image(EventName::ObjectRemovedNoOp, "a")),
        id(removed("a").mod_time(now())),
        id(removed("a").request_id("182178E8B36AC9E0")),
    ];
    for (at, one) in ids.iter().enumerate() {
        assert!(!ids[..at].contains(one), "{ids:?}");
    }
}

#[test]
fn media_types_tell_a_cloud_event_from_other_json() {
    assert_eq!(Style::CloudEvents.content_type(), "application/cloudevents+json; charset=UTF-8");
    for style in [Style::Minio, Style::Aws, Style::EventBroker] {
        assert_eq!(style.content_type(), "application/json");
    }
}
