//! Each key of Kafka: what it may be, what it is by default, and what is said of a wrong value.

use std::time::Duration;

use kolumn_notify::config::{
    ClientAuth, Codec, KafkaConfig, Mechanism, QueueDurability, QueueFull, TargetConfig, TargetState,
};
use kolumn_notify::event::Style;

use crate::config_support::{enabled, kafka, line, refusal, resolve, warnings};

/// The same from a stored line and from a variable.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "what is expected is written where the check is called")]
fn check<T: PartialEq + std::fmt::Debug>(
    key: &str,
    value: &str,
    beside: &str,
    expect: T,
    read: impl Fn(&TargetConfig<KafkaConfig>) -> T,
) {
    let quoted = value.replace('"', "\"\"");
    let stored = resolve(&[], &line(&format!("{beside} {key}=\"{quoted}\"")));
    assert_eq!(read(enabled(&stored, "x")), expect, "{key}={value} stored");
    let variable = format!("MINIO_NOTIFY_KAFKA_{}_X", key.to_uppercase());
    let from_variable = resolve(&[(&variable, value)], &line(beside));
    assert_eq!(read(enabled(&from_variable, "x")), expect, "{key}={value} of a variable");
}

#[track_caller]
fn check_refused(keys: &str, expect: &[&str]) {
    let config = resolve(&[], &line(keys));
    let expect: Vec<String> = expect.iter().map(|text| format!("stored configuration: {text}")).collect();
    assert_eq!(refusal(kafka(&config, "x")).lines().collect::<Vec<_>>(), expect, "{keys}");
}

#[track_caller]
fn check_warned(keys: &str, expect: &[&str]) {
    let config = resolve(&[], &line(keys));
    let _is_enabled = enabled(&config, "x");
    let expect: Vec<String> = expect.iter().map(|text| format!("stored configuration: {text}")).collect();
    assert_eq!(warnings(&config), expect, "{keys}");
}

#[test]
fn what_is_not_set_has_its_default() {
    let config = resolve(&[], &line(""));
    let target = enabled(&config, "x");
    let kafka = &target.target;
    assert!(
        kafka.sasl.is_none() && kafka.tls.is_none() && kafka.version.is_none() && kafka.compression.is_none()
    );
    assert_eq!((kafka.client_auth, kafka.batch_size), (ClientAuth::NoClientCert, 0));
    assert_eq!(kafka.commit_timeout, Duration::from_secs(30));
    assert_eq!((target.style, target.comment.as_str()), (Style::Minio, ""));
    let queue = &target.queue;
    assert!(queue.dir.is_none() && queue.limit_bytes.is_none() && queue.dead_letter_dir.is_none());
    assert_eq!(
        (queue.limit, queue.full, queue.durability),
        (100_000, QueueFull::Refuse, QueueDurability::Os)
    );
    assert!(config.warnings().is_empty() && config.errors().is_empty());
}

#[test]
fn one_reader_of_flags_reads_all_flags() {
    for on in ["1", "t", "T", "true", "TRUE", "True", "on", "ON", "On", "enabled", "ENABLED"] {
        check("tls", on, "", true, |target| target.target.tls.is_some());
        check("tls_skip_verify", on, "tls=on", false, |target| target.target.tls.as_ref().unwrap().verify);
        check("sasl", on, "sasl_username=u sasl_password=p", true, |target| target.target.sasl.is_some());
        let config = resolve(&[("MINIO_NOTIFY_KAFKA_ENABLE_X", on)], &line("enable=off"));
        let _is_enabled = enabled(&config, "x");
    }
    for off in ["0", "f", "F", "false", "FALSE", "False", "off", "OFF", "Off", "disabled"] {
        check("tls", off, "", true, |target| target.target.tls.is_none());
        let config = resolve(&[], &line(&format!("enable={off}")));
        assert_eq!(kafka(&config, "x").state(), &TargetState::Disabled);
        assert_eq!(config.arns_line(), None);
    }
    for key in ["enable", "tls", "tls_skip_verify", "sasl"] {
        let expect = format!("key `{key}` of `notify_kafka:x` is `yes`: is neither `on` nor `off`");
        check_refused(&format!("{key}=yes"), &[&expect]);
    }
}

#[test]
fn each_value_is_read_by_its_type() {
    check(
        "sasl_mechanism",
        "SCRAM-SHA-256",
        "sasl=on sasl_username=u sasl_password=p",
        Mechanism::ScramSha256,
        |t| t.target.sasl.as_ref().unwrap().mechanism,
    );
    check("tls_client_auth", "2", "", ClientAuth::RequireAnyClientCert, |t| t.target.client_auth);
    check("tls_ca", "/ca.pem", "tls=on", Some("/ca.pem".into()), |t| {
        t.target.tls.as_ref().unwrap().ca.clone()
    });
    check("version", "0.11.0.2", "", Some("0.11.0.2".into()), |t| t.target.version.map(|v| v.to_string()));
    check("queue_dir", "/q", "", Some("/q".into()), |t| t.queue.dir.clone());
    check("queue_limit", "18446744073709551615", "", u64::MAX, |t| t.queue.limit);
    check("queue_limit", "0", "", 100_000, |t| t.queue.limit);
    check("batch_size", "1000000", "queue_dir=/q", 1_000_000, |t| t.target.batch_size);
    check(
        "batch_commit_timeout",
        "1m500ms",
        "queue_dir=/q batch_size=2",
        Duration::from_millis(60_500),
        |t| t.target.commit_timeout,
    );
    let compression = |t: &TargetConfig<KafkaConfig>| t.target.compression.map(|c| (c.codec, c.level));
    check("compression_codec", "none", "", None, compression);
    check("compression_codec", "GZIP", "", Some((Codec::Gzip, None)), compression);
    check("compression_level", "19", "compression_codec=zstd", Some((Codec::Zstd, Some(19))), compression);
    check("comment", "a = b, \"c\"", "", "a = b, \"c\"".into(), |t| t.comment.clone());
    check("queue_limit_bytes", "1024", "", Some(1024), |t| t.queue.limit_bytes);
    check("queue_full", "Drop_Oldest", "", QueueFull::DropOldest, |t| t.queue.full);
    check("queue_full", "block", "", QueueFull::Block, |t| t.queue.full);
    check("queue_full", "refuse", "", QueueFull::Refuse, |t| t.queue.full);
    check("durability", "sync", "queue_dir=/q", QueueDurability::Sync, |t| t.queue.durability);
    check("durability", "os", "queue_dir=/q", QueueDurability::Os, |t| t.queue.durability);
    check("dead_letter_dir", "/dead", "", Some("/dead".into()), |t| t.queue.dead_letter_dir.clone());
    for &style in Style::ALL {
        check("style", style.as_str(), "", style, |t| t.style);
    }
}

#[test]
fn a_wrong_value_is_refused_with_its_key_and_target() {
    let of = "of `notify_kafka:x`";
    check_refused(
        "tls_client_auth=5",
        &[&format!("key `tls_client_auth` {of} is `5`: is not a number from 0 to 4")],
    );
    check_refused(
        "sasl_mechanism=SCRAM",
        &[&format!("key `sasl_mechanism` {of} is `SCRAM`: is none of `plain`, `sha256` and `sha512`")],
    );
    check_refused(
        "version=2.8",
        &[&format!("key `version` {of} is `2.8`: is not a version such as `2.8.0` or `0.11.0.2`")],
    );
    check_refused("queue_dir=q", &[&format!("key `queue_dir` {of} is `q`: is not an absolute path")]);
    check_refused(
        "queue_limit=many",
        &[&format!("key `queue_limit` {of} is `many`: is not a whole number from 0 to 18446744073709551615")],
    );
    check_refused(
        "batch_size=4294967296",
        &[&format!("key `batch_size` {of} is `4294967296`: is not a whole number from 0 to 4294967295")],
    );
    check_refused(
        "batch_commit_timeout=30",
        &[&format!(
            "key `batch_commit_timeout` {of} is `30`: is not a duration such as `30s`, `1m30s` or `250ms`"
        )],
    );
    check_refused(
        "compression_codec=brotli",
        &[&format!(
            "key `compression_codec` {of} is `brotli`: is none of `none`, `gzip`, `snappy`, `lz4` and `zstd`"
        )],
    );
    check_refused(
        "compression_level=best",
        &[&format!("key `compression_level` {of} is `best`: is not a whole number")],
    );
    check_refused(
        "durability=power",
        &[&format!("key `durability` {of} is `power`: is none of `os`, `sync`")],
    );
}

#[test]
fn keys_that_need_each_other_are_checked_together() {
    let of = "of `notify_kafka:x`";
    check_refused("batch_size=2", &[&format!("key `batch_size` {of} is `2`: more than 1 needs `queue_dir`")]);
    check_refused(
        "batch_commit_timeout=1s queue_dir=/q",
        &[&format!(
            "key `batch_commit_timeout` {of} is `1s`: it needs `queue_dir`, and a `batch_size` of more than 1"
        )],
    );
    check_refused(
        "tls=on client_tls_cert=/c",
        &[&format!("key `client_tls_cert` {of}: it needs `client_tls_key` beside it")],
    );
    check_refused(
        "client_tls_key=/k",
        &[&format!("key `client_tls_key` {of}: it needs `client_tls_cert` beside it")],
    );
    check_refused(
        "compression_codec=gzip compression_level=22",
        &[&format!("key `compression_level` {of} is `22`: the levels of gzip are 0 to 9")],
    );
    let config = resolve(&[], &line("sasl=on"));
    assert_eq!(
        refusal(kafka(&config, "x")),
        "key `sasl_username` of `notify_kafka:x`: it is needed while `sasl` is on\n\
         key `sasl_password` of `notify_kafka:x`: it is needed while `sasl` is on"
    );
}

#[test]
fn brokers_and_topic_are_checked() {
    let of = "of `notify_kafka:x`";
    let refused = |text: &str| refusal(kafka(&resolve(&[], text), "x"));
    assert_eq!(refused("notify_kafka:x topic=t"), format!("key `brokers` {of}: an enabled target needs it"));
    for (brokers, expect) in [
        ("k1:9092,k2:x", "in `k2:x`, the port is not a number from 1 to 65535"),
        ("k1:9092,k1", "names k1:9092 twice"),
        ("k1:9092/t", "in `k1:9092/t`, an address has no path: it ends after the port"),
    ] {
        let text = format!("notify_kafka:x topic=t brokers={brokers}");
        assert_eq!(
            refused(&text),
            format!("stored configuration: key `brokers` {of} is `{brokers}`: {expect}")
        );
    }
    let topic = refused("notify_kafka:x brokers=k topic=a/b");
    assert!(topic.ends_with("is `a/b`: is no name of a topic: letters, digits, `.`, `_` and `-`"), "{topic}");
}

#[test]
fn what_has_no_effect_or_is_dangerous_is_said() {
    let of = "of `notify_kafka:x`";
    check_warned(
        "sasl_password=p",
        &[&format!("key `sasl_password` {of}: it has no effect while `sasl` is off")],
    );
    check_warned(
        "tls_ca=/ca",
        &[&format!("key `tls_ca` {of} is `/ca`: it has no effect while `tls` is off")],
    );
    check_warned(
        "tls=on tls_skip_verify=on",
        &[&format!(
            "key `tls_skip_verify` {of} is `on`: whoever answers at the address of a broker is taken for one"
        )],
    );
    check_warned(
        "tls_client_auth=4",
        &[&format!(
            "key `tls_client_auth` {of} is `4`: it has no effect: it is for servers, and this is a client"
        )],
    );
    check_warned(
        "sasl=on sasl_username=u sasl_password=p sasl_mechanism=plain",
        &[&format!(
            "key `sasl_mechanism` {of} is `plain`: without TLS the password can be read on the way to the brokers"
        )],
    );
    check_warned("durability=sync queue_dir=/q", &[]);
    check_warned("sasl=on sasl_username=u sasl_password=p sasl_mechanism=sha256", &[]);
    check_warned(
        "compression_level=1",
        &[&format!("key `compression_level` {of} is `1`: it has no effect without `compression_codec`")],
    );
    check_warned(
        "durability=sync",
        &[&format!("key `durability` {of} is `sync`: it has no effect without `queue_dir`")],
    );
}

#[test]
fn no_secret_is_shown() {
    let config = resolve(
        &[
            ("MINIO_NOTIFY_KAFKA_SASL_PASSWORD_X", "hunter2"),
            ("KOLUMN_NOTIFY_KAFKA_SASL_PASSWORD_X", "hunter3"),
        ],
        &line("sasl=on sasl_username=u sasl_mechanism=none brokres=hunter4"),
    );
    let text = format!("{config:?} {}", refusal(kafka(&config, "x")));
    assert!(!text.contains("hunter"), "{text}");
    let sound =
        resolve(&[("MINIO_NOTIFY_KAFKA_SASL_PASSWORD_X", "hunter2")], &line("sasl=on sasl_username=u"));
    assert!(!format!("{sound:?}").contains("hunter2"));
    assert_eq!(enabled(&sound, "x").target.sasl.as_ref().unwrap().password.expose(), "hunter2");
}
