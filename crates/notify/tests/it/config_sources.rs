//! Where values come from, which targets there are, and that each stands for itself.

use kolumn_notify::config::{
    Codec, Compression, Config, Environment, Source, StoredConfig, TargetKind, TargetState,
};

use crate::config_support::{enabled, kafka, line, refusal, resolve, warnings};

#[track_caller]
fn check_arns(variables: &[(&str, &str)], stored: &str, expect: Option<&str>) {
    assert_eq!(resolve(variables, stored).arns_line().as_deref(), expect);
}

#[test]
fn enable_and_the_stored_configuration_make_targets() {
    let brokers = ("MINIO_NOTIFY_KAFKA_BROKERS_A", "k:1");
    check_arns(&[], "", None);
    check_arns(&[brokers], "", None);
    check_arns(&[("MINIO_NOTIFY_KAFKA_ENABLE_A", ""), brokers], "", None);
    check_arns(
        &[("MINIO_NOTIFY_KAFKA_ENABLE_A", "on"), brokers],
        "",
        Some("SQS ARNs: arn:minio:sqs::a:kafka"),
    );
    check_arns(
        &[("MINIO_NOTIFY_KAFKA_ENABLE_A", "\"on\""), brokers],
        "",
        Some("SQS ARNs: arn:minio:sqs::a:kafka"),
    );
    check_arns(&[("MINIO_NOTIFY_KAFKA_ENABLE_A", "off"), brokers], "", None);
    check_arns(&[("MINIO_NOTIFY_KAFKA_ENABLE_A", "off")], "notify_kafka:a brokers=k", None);
    check_arns(&[], "notify_kafka brokers=k", Some("SQS ARNs: arn:minio:sqs::_:kafka"));
    check_arns(&[], "notify_kafka: brokers=k", Some("SQS ARNs: arn:minio:sqs::_:kafka"));
    check_arns(
        &[
            ("MINIO_SITE_REGION", "eu-1"),
            ("MINIO_NOTIFY_KAFKA_ENABLE", "on"),
            ("MINIO_NOTIFY_KAFKA_BROKERS", "k"),
        ],
        "notify_webhook:w endpoint=http://h\nnotify_postgres:p connection_string=host=h user=u table=t\n\
         notify_kafka:B brokers=k enable=on",
        Some(
            "SQS ARNs: arn:minio:sqs:eu-1:_:kafka arn:minio:sqs:eu-1:b:kafka arn:minio:sqs:eu-1:p:postgresql \
              arn:minio:sqs:eu-1:w:webhook",
        ),
    );
}

#[test]
fn a_target_of_every_kind_can_be_enabled_by_variables_alone() {
    for (kind, keys) in [
        ("AMQP", "URL=amqp://u:p@h"),
        ("ELASTICSEARCH", "URL=http://h INDEX=i"),
        ("KAFKA", "BROKERS=k"),
        ("MQTT", "BROKER=tcp://h TOPIC=t"),
        ("MYSQL", "DSN_STRING=u:p@tcp(h)/d TABLE=t"),
        ("NATS", "ADDRESS=h SUBJECT=s"),
        ("NSQ", "NSQD_ADDRESS=h TOPIC=t"),
        ("POSTGRES", "CONNECTION_STRING=host=h TABLE=t"),
        ("REDIS", "ADDRESS=h KEY=k"),
        ("WEBHOOK", "ENDPOINT=http://h"),
    ] {
        let mut variables = vec![(format!("MINIO_NOTIFY_{kind}_ENABLE_EU_1"), "on".to_owned())];
        for pair in keys.split(' ') {
            let (key, value) = pair.split_once('=').unwrap();
            variables.push((format!("MINIO_NOTIFY_{kind}_{key}_EU_1"), value.into()));
        }
        let config = Config::resolve(&Environment::new(variables.clone()), &StoredConfig::default());
        assert_eq!(config.arns().count(), 1, "{kind}: {config:?}");
        assert_eq!(config.arns().next().unwrap().id.as_str(), "eu_1");
        // Each of the variables is needed.
        for i in 1..variables.len() {
            let mut fewer = variables.clone();
            fewer.remove(i);
            let config = Config::resolve(&Environment::new(fewer), &StoredConfig::default());
            assert!(refusal(&config.targets()[0]).ends_with("an enabled target needs it"), "{kind}");
        }
    }
}

#[test]
fn one_bad_target_takes_no_other_down() {
    let good = "notify_kafka:good brokers=k:1 topic=t";
    for (variables, bad, expect) in [
        (
            &[("MINIO_NOTIFY_NSQ_ENABLE_BAD", "on"), ("MINIO_NOTIFY_NSQ_TLS_BAD", "tls1.2")][..],
            "",
            "notify_nsq:bad` is `tls1.2`: is neither `on` nor `off`",
        ),
        (
            &[("MINIO_NOTIFY_AMQP_ENABLE", "\"on")],
            "",
            "MINIO_NOTIFY_AMQP_ENABLE: key `enable` of `notify_amqp`",
        ),
        (&[], "notify_kafka:bad brokers=k queue-dir=/q", "did you mean `queue_dir`?"),
        (&[], "notify_kafka:bad brokers=\"k", "the quote is not closed"),
        (&[], "notify_kafka:good enable=off", "line 1 is about the same target"),
        (&[], "notify_webhook:bad endpoint=http://h client_cert=/c", "it needs `client_key` beside it"),
        (&[], "notify_redis:bad address=h key=k format=list", "is none of `namespace`, `access`"),
    ] {
        let config = resolve(variables, &format!("notify_kafka:other brokers=k topic=t\n{bad}"));
        let _is_enabled = enabled(&config, "other");
        let config = resolve(variables, &format!("{good}\n{bad}"));
        let refused: Vec<String> =
            config.targets().iter().map(refusal).filter(|text| !text.is_empty()).collect();
        assert_eq!(refused.len(), 1, "{bad}: {config:?}");
        assert!(refused[0].contains(expect), "{}", refused[0]);
        if !bad.contains("good") {
            let _is_enabled = enabled(&config, "good");
        }
    }
}

#[test]
fn all_mistakes_of_a_target_are_told_at_once() {
    let config = resolve(
        &[("MINIO_NOTIFY_KAFKA_TLS_X", "maybe"), ("MINIO_NOTIFY_KAFKA_VERSION_X", "2")],
        &line("queue_dir=here batch_size=5"),
    );
    let refusal = refusal(kafka(&config, "x"));
    let begins: Vec<&str> = refusal.lines().map(|line| line.split(" of ").next().unwrap()).collect();
    assert_eq!(
        begins,
        [
            "MINIO_NOTIFY_KAFKA_TLS_X: key `tls`",
            "stored configuration: key `queue_dir`",
            "MINIO_NOTIFY_KAFKA_VERSION_X: key `version`",
        ]
    );
}

#[test]
fn a_line_that_names_no_sub_system_is_told_and_kept() {
    let text = "notify_kafak:x brokers=k\nnotify_kafka:y brokers=k\n";
    let config = resolve(&[], text);
    let errors: Vec<String> = config.errors().iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["line 1: there is no sub-system `notify_kafak`; did you mean `notify_kafka`?"]);
    assert_eq!(config.arns().count(), 1);
    let stored = StoredConfig::from_text(text).unwrap();
    assert!(stored.to_text().contains("notify_kafak:x brokers=k\n"));
    assert_eq!(StoredConfig::from_text(&stored.to_text()).unwrap(), stored);
}

#[test]
fn identifiers_are_matched_in_any_case_but_written_in_one() {
    let config = resolve(
        &[("MINIO_NOTIFY_KAFKA_ENABLE_PRIMARY", "on"), ("KOLUMN_NOTIFY_KAFKA_TOPIC_PRIMARY", "u")],
        "notify_kafka:Primary brokers=k topic=t enable=off",
    );
    assert_eq!(config.targets().len(), 1);
    assert_eq!(enabled(&config, "primarY").target.topic.as_deref(), Some("u"));

    let config = resolve(
        &[
            ("MINIO_NOTIFY_KAFKA_ENABLE_PRIMARY", "on"),
            ("MINIO_NOTIFY_KAFKA_BROKERS_primary", "k"),
            ("MINIO_NOTIFY_KAFKA_ENABLE_OTHER", "on"),
            ("MINIO_NOTIFY_KAFKA_BROKERS_OTHER", "k"),
        ],
        "",
    );
    let refusal = refusal(kafka(&config, "primary"));
    assert_eq!(
        refusal,
        "MINIO_NOTIFY_KAFKA_ENABLE_PRIMARY: `notify_kafka:primary`: `MINIO_NOTIFY_KAFKA_BROKERS_primary` writes the \
         identifier as `primary`; identifiers that differ only in case are one target"
    );
    let _is_enabled = enabled(&config, "other");

    let stored = "notify_kafka:PRIMARY brokers=k topic=t\nnotify_kafka:primary brokers=l topic=t";
    let refused = resolve(&[], stored);
    assert!(matches!(kafka(&refused, "primary").state(), TargetState::Refused(_)));
}

#[test]
fn an_identifier_of_a_variable_has_to_be_one() {
    let config =
        resolve(&[("MINIO_NOTIFY_KAFKA_ENABLE_A/B", "on"), ("MINIO_NOTIFY_KAFKA_ENABLE_", "on")], "");
    let errors: Vec<String> = config.errors().iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "MINIO_NOTIFY_KAFKA_ENABLE_: in the name of the variable, the identifier of a target is empty",
            "MINIO_NOTIFY_KAFKA_ENABLE_A/B: in the name of the variable, the identifier of a target cannot have '/'",
        ]
    );
    assert!(config.targets().is_empty());
}

#[test]
fn our_prefix_counts_more_and_the_loser_is_named() {
    let config = resolve(
        &[
            ("MINIO_NOTIFY_KAFKA_TOPIC_X", "minio"),
            ("KOLUMN_NOTIFY_KAFKA_TOPIC_X", "kolumn"),
            ("MINIO_NOTIFY_KAFKA_TLS_X", "on"),
            ("KOLUMN_NOTIFY_KAFKA_TLS_X", "on"),
        ],
        &line(""),
    );
    assert_eq!(enabled(&config, "x").target.topic.as_deref(), Some("kolumn"));
    assert_eq!(
        warnings(&config),
        ["MINIO_NOTIFY_KAFKA_TOPIC_X: key `topic` of `notify_kafka:x`: it is not used, because \
          `KOLUMN_NOTIFY_KAFKA_TOPIC_X` sets the same key"]
    );
}

#[test]
fn both_spellings_of_the_compression_are_read() {
    let zstd = |level| Some((Codec::Zstd, level));
    let read = |config: &Config| {
        enabled(config, "x").target.compression.map(|Compression { codec, level, .. }| (codec, level))
    };
    for infix in ["PRODUCER_COMPRESSION", "COMPRESSION"] {
        let names =
            [format!("MINIO_NOTIFY_KAFKA_{infix}_CODEC_X"), format!("MINIO_NOTIFY_KAFKA_{infix}_LEVEL_X")];
        let config = resolve(&[(&names[0], "zstd"), (&names[1], "3")], &line(""));
        assert_eq!(read(&config), zstd(Some(3)), "{infix}");
    }
    let both = [
        ("MINIO_NOTIFY_KAFKA_COMPRESSION_CODEC_X", "gzip"),
        ("MINIO_NOTIFY_KAFKA_PRODUCER_COMPRESSION_CODEC_X", "zstd"),
    ];
    let config = resolve(&both, &line(""));
    assert_eq!((read(&config), config.warnings().len()), (zstd(None), 1));
    let ours = [
        ("KOLUMN_NOTIFY_KAFKA_COMPRESSION_CODEC_X", "zstd"),
        ("MINIO_NOTIFY_KAFKA_PRODUCER_COMPRESSION_CODEC_X", "gzip"),
    ];
    assert_eq!(read(&resolve(&ours, &line(""))), zstd(None));
}

#[test]
fn a_variable_that_is_not_unicode_refuses_its_target_only() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    let bytes = OsString::from_vec(b"t\xff".to_vec());
    let environment = Environment::new([("MINIO_NOTIFY_KAFKA_TOPIC_X", bytes)]);
    let stored = StoredConfig::from_text(&format!("{}\nnotify_kafka:y brokers=k", line(""))).unwrap();
    let config = Config::resolve(&environment, &stored);
    assert_eq!(
        refusal(kafka(&config, "x")),
        "MINIO_NOTIFY_KAFKA_TOPIC_X: key `topic` of `notify_kafka:x`: the value is not Unicode"
    );
    let _is_enabled = enabled(&config, "y");
}

#[test]
fn variables_that_are_not_read_are_named() {
    let config = resolve(
        &[
            ("MINIO_NOTIFY_KAFAK_ENABLE", "on"),
            ("MINIO_NOTIFY_KAFKA_QUEUEDIR_X", "/q"),
            ("MINIO_BROWSER", "off"),
        ],
        &line(""),
    );
    assert_eq!(
        warnings(&config),
        [
            "MINIO_NOTIFY_KAFAK_ENABLE: it is not read: there is no such kind of target",
            "MINIO_NOTIFY_KAFKA_QUEUEDIR_X: it is not read: `notify_kafka` has no such key; did you mean `…QUEUE_DIR_X`?",
        ]
    );
}

#[track_caller]
fn check_region(variables: &[(&str, &str)], stored: &str, region: &str, source: &Source) {
    let config = resolve(variables, stored);
    assert_eq!((config.region(), config.region_source()), (region, source));
}

#[test]
fn the_region_has_four_variables_and_a_stored_value() {
    let variable = |name: &str| Source::Variable(name.into());
    let all = [
        ("MINIO_REGION", "r-1"),
        ("MINIO_SITE_REGION", "r-2"),
        ("KOLUMN_REGION", "r-3"),
        ("KOLUMN_SITE_REGION", "r-4"),
    ];
    check_region(&[], "", "", &Source::Default);
    check_region(&[], "site name=s region=\"r-0\"", "r-0", &Source::Stored);
    for i in 0..all.len() {
        check_region(&all[..=i], "site region=r-0", all[i].1, &variable(all[i].0));
        assert_eq!(resolve(&all[..=i], "").warnings().len(), i);
    }
    check_region(&[("MINIO_REGION", " ")], "site region=r-0", "r-0", &Source::Stored);
    for wrong in ["1st", "a", "a:b"] {
        let config = resolve(&[("MINIO_REGION", wrong)], &line(""));
        assert_eq!((config.region(), config.errors().len()), ("", 1), "{wrong}");
        assert!(config.errors()[0].to_string().starts_with("MINIO_REGION: key `region` of `site` is"));
        assert_eq!(config.arns().count(), 1);
    }
    let config = resolve(&[], "site region=eu-1 regoin=x");
    let errors: Vec<String> = config.errors().iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["line 1: key `regoin` of `site`: there is no such key; did you mean `region`?"]);
}

#[test]
fn waiting_for_delivery_is_a_flag_like_others() {
    assert!(!resolve(&[], "").sync_events());
    assert!(resolve(&[], "api sync_events=on").sync_events());
    let config = resolve(&[("MINIO_API_SYNC_EVENTS", "True")], "api sync_events=off");
    assert!(config.sync_events());
    assert_eq!(config.sync_events_source(), &Source::Variable("MINIO_API_SYNC_EVENTS".into()));
    let config = resolve(&[("KOLUMN_API_SYNC_EVENTS", "sometimes")], "");
    assert!(!config.sync_events() && config.errors().len() == 1);
}

#[test]
fn a_disabled_target_may_be_unfinished() {
    let config = resolve(&[], "notify_kafka:x enable=off version=2");
    assert_eq!(kafka(&config, "x").state(), &TargetState::Disabled);
    assert!(config.target(TargetKind::Kafka, &"y".parse().unwrap()).is_none());
}
