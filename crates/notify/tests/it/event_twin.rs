//! Any event, against a dull twin: the same structures by `serde_json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kolumn_notify::event::{Event, EventName, Origin, Style, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Message {
    event_name: String,
    key: String,
    records: [Record; 1],
}

#[derive(Serialize)]
struct Records {
    #[serde(rename = "Records")]
    records: [Record; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    event_version: &'static str,
    event_source: &'static str,
    aws_region: String,
    event_time: String,
    event_name: String,
    user_identity: Identity,
    request_parameters: BTreeMap<&'static str, String>,
    response_elements: BTreeMap<&'static str, String>,
    s3: S3,
    source: Source,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    principal_id: String,
}

#[derive(Serialize)]
struct S3 {
    #[serde(rename = "s3SchemaVersion")]
    schema_version: &'static str,
    #[serde(rename = "configurationId")]
    configuration_id: &'static str,
    bucket: Bucket,
    object: Object,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bucket {
    name: String,
    owner_identity: Identity,
    arn: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    e_tag: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    content_type: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    user_metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    version_id: String,
    sequencer: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    host: String,
    port: &'static str,
    user_agent: String,
}

/// What a server would tell; the builder and the twin are both given it.
#[derive(Debug, Clone)]
struct Told {
    name: EventName,
    bucket: String,
    key: String,
    nanos: u64,
    mod_time: Option<u64>,
    size: Option<u64>,
    content_length: Option<u64>,
    metadata: Vec<(String, String)>,
    /// Region, deployment, endpoint, tag, content type, version, principal, host, agent, range, request id, host id.
    texts: [String; 12],
}

fn told() -> impl Strategy<Value = Told> {
    // Texts of few characters that matter, and of any.
    let text = prop_oneof!["[a<>&\"\\\\\u{2028}\u{2029}\u{0}-\u{1f}é+% /]{0,12}", any::<String>()];
    let key = prop_oneof![
        "[a-z0-9/+% ~é漢]{1,40}",
        "\\PC{1,200}",
        vec(any::<char>(), 1..20).prop_map(String::from_iter)
    ];
    let numbers = (any::<u64>(), option::of(any::<u64>()), option::of(0..3_u64), option::of(any::<u64>()));
    let metadata = vec(("[a-z]{1,3}", any::<String>()), 0..4);
    (select(EventName::ALL), "[a-z0-9.<&-]{1,20}", key, numbers, metadata, proptest::array::uniform12(text))
        .prop_map(|(name, bucket, key, (nanos, mod_time, size, content_length), metadata, texts)| Told {
            name,
            bucket,
            key: if name.is_of_bucket() { String::new() } else { key },
            nanos,
            mod_time,
            size,
            content_length,
            metadata,
            texts,
        })
}

fn event(told: &Told) -> Event {
    let [
        region,
        deployment,
        endpoint,
        tag,
        content_type,
        version,
        principal,
        host,
        agent,
        range,
        request,
        host_id,
    ] = told.texts.clone();
    let mut origin = Origin::default();
    origin.region = region;
    origin.deployment_id = deployment;
    origin.endpoint = endpoint;
    let mut builder = Event::builder(&Arc::new(origin), told.name, &told.bucket, &told.key)
        .e_tag(&tag)
        .content_type(content_type)
        .version_id(version)
        .requester(&principal, None)
        .source(host, agent)
        .range(range)
        .request_id(request)
        .host_id(host_id);
    for (name, value) in &told.metadata {
        builder = builder.user_metadata(&format!("x-amz-meta-{name}"), value);
    }
    if let Some(size) = told.size {
        builder = builder.size(size);
    }
    if let Some(len) = told.content_length {
        builder = builder.response_content_length(len);
    }
    if let Some(nanos) = told.mod_time {
        builder = builder.mod_time(Timestamp::from_unix_nanos(nanos));
    }
    builder.build(Timestamp::from_unix_nanos(told.nanos)).unwrap()
}

fn encode(key: &str) -> String {
    key.bytes().fold(String::new(), |encoded, byte| match byte {
        b' ' => encoded + "+",
        b'-' | b'_' | b'.' | b'~' => encoded + &char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => encoded + &char::from(byte).to_string(),
        _ => encoded + &format!("%{byte:02X}"),
    })
}

fn capitalised(name: &str) -> String {
    let first = name.chars().next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(name.chars().skip(1)).collect()
}

fn twin(told: &Told, key: String) -> Record {
    let [region, deployment, endpoint, _, _, _, principal, host, agent, range, request, host_id] =
        told.texts.clone();
    let identity = || Identity { principal_id: principal.clone() };
    let mut parameters = BTreeMap::from([
        ("principalId", principal.clone()),
        ("region", region.clone()),
        ("sourceIPAddress", host.clone()),
    ]);
    if !range.is_empty() {
        parameters.insert("range", range);
    }
    let mut elements = BTreeMap::from([
        ("x-amz-request-id", request),
        ("x-amz-id-2", host_id),
        ("x-minio-deployment-id", deployment),
        ("x-minio-origin-endpoint", endpoint),
    ]);
    told.content_length.map(|len| elements.insert("content-length", len.to_string()));
    Record {
        event_version: "2.0",
        event_source: "minio:s3",
        aws_region: region,
        event_time: Timestamp::from_unix_nanos(told.nanos).to_string(),
        event_name: told.name.to_string(),
        user_identity: identity(),
        request_parameters: parameters,
        response_elements: elements,
        s3: S3 {
            schema_version: "1.0",
            configuration_id: "Config",
            bucket: Bucket {
                name: told.bucket.clone(),
                owner_identity: identity(),
                arn: format!("arn:aws:s3:::{}", told.bucket),
            },
            object: twin_object(told, key),
        },
        source: Source { host, port: "", user_agent: agent },
    }
}

fn twin_object(told: &Told, key: String) -> Object {
    let [_, _, _, tag, content_type, version_id, ..] = told.texts.clone();
    let sequencer = format!("{:016X}", told.mod_time.unwrap_or(told.nanos));
    let removed =
        ["s3:ObjectRemoved:Delete", "s3:ObjectRemoved:DeleteMarkerCreated", "s3:ObjectRemoved:NoOP"];
    if removed.contains(&told.name.as_str()) {
        let (e_tag, content_type, user_metadata) = Default::default();
        return Object { key, size: None, e_tag, content_type, user_metadata, version_id, sequencer };
    }
    let of_user = told.metadata.iter();
    let mut user_metadata: BTreeMap<String, String> =
        of_user.map(|(name, value)| (format!("X-Amz-Meta-{}", capitalised(name)), value.clone())).collect();
    if !content_type.is_empty() {
        user_metadata.insert("content-type".into(), content_type.clone());
    }
    let bare = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    let e_tag = bare.unwrap_or(&tag).to_owned();
    let size = told.size.filter(|size| *size != 0);
    Object { key, size, e_tag, content_type, user_metadata, version_id, sequencer }
}

/// As Go writes it: in JSON these characters can only stand within strings.
fn go_json(value: &impl Serialize) -> String {
    let escapes = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    let json = serde_json::to_string(value).unwrap();
    escapes.iter().fold(json, |json, (char, escaped)| json.replace(*char, escaped))
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

proptest! {
    #[test]
    fn any_event_is_the_same_bytes_as_its_twin(told in told()) {
        let event = event(&told);
        let message = Message {
            event_name: told.name.to_string(),
            key: format!("{}/{}", told.bucket, told.key),
            records: [twin(&told, encode(&told.key))],
        };
        prop_assert_eq!(written(|out| event.write_message(Style::Minio, "", out)), go_json(&message));
        let raw = Records { records: [twin(&told, told.key.clone())] };
        prop_assert_eq!(written(|out| event.write_listen_line(out)), go_json(&raw) + "\n");
    }

    #[test]
    fn any_record_is_read_and_written_again_as_it_was(told in told()) {
        let first = written(|out| event(&told).write_record(Style::Minio, "", out));
        let event = Event::from_record_json(first.as_bytes()).unwrap();
        prop_assert_eq!((event.bucket(), event.key(), event.name()), (told.bucket.as_str(), told.key.as_str(), told.name));
        prop_assert_eq!(written(|out| event.write_record(Style::Minio, "", out)), first);
    }

    #[test]
    fn any_event_is_json_in_every_style(told in told(), rule_id in any::<String>()) {
        let event = event(&told);
        for style in Style::ALL.iter().copied() {
            let message = written(|out| event.write_message(style, &rule_id, out));
            let message: serde_json::Value = serde_json::from_str(&message).unwrap();
            let record = message.pointer("/Records/0").or(message.pointer("/data")).unwrap();
            prop_assert_eq!(&record["s3"]["bucket"]["name"], &told.bucket);
            prop_assert_eq!(&record["responseElements"]["x-amz-request-id"], &told.texts[10]);
            let id = if style == Style::Minio { "Config" } else { rule_id.as_str() };
            prop_assert_eq!(&record["s3"]["configurationId"], id);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(Event::from_record_json(&bytes).is_err());
    }
}
