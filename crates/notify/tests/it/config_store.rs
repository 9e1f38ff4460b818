//! `set`, `get` and `reset`, and the text that outlives a restart.

use kolumn_notify::config::{
    Config, ConfigErrorKind, Environment, LINES_MAX, OutputStyle, StoredConfig, Subsystem, TEXT_LEN_MAX,
    TargetKind, TargetState,
};
use proptest::prelude::*;

use crate::config_support::{enabled, kafka, line};

fn none() -> Environment {
    Environment::default()
}

fn stored(text: &str) -> StoredConfig {
    StoredConfig::from_text(text).unwrap()
}

#[track_caller]
fn check_set(before: &str, text: &str, after: &str) {
    let mut config = stored(before);
    config.set(text, &none()).unwrap();
    assert_eq!(config.to_text(), after);
}

#[track_caller]
fn check_set_refused(before: &str, text: &str, kind: ConfigErrorKind, expect: &str) {
    let mut config = stored(before);
    let errors = config.set(text, &none()).unwrap_err();
    assert_eq!(errors.to_string(), expect, "{text}");
    assert_eq!(errors.iter().next().unwrap().kind(), kind);
    assert_eq!(config, stored(before), "nothing has changed");
}

#[test]
fn a_set_changes_what_it_names_and_enables() {
    let x = "notify_kafka:x enable=\"on\" topic=\"t\" brokers=\"k:1\"\n";
    check_set("", &line(""), x);
    check_set("", &format!("# new\n\n{}\r\n", line("comment=''")), x);
    check_set(
        x,
        "notify_kafka:X tls=on",
        "notify_kafka:x enable=\"on\" topic=\"t\" brokers=\"k:1\" tls=\"on\"\n",
    );
    check_set(x, "notify_kafka:x topic=", "notify_kafka:x enable=\"on\" brokers=\"k:1\"\n");
    check_set(x, "notify_kafka:x enable=off", "notify_kafka:x enable=\"off\" topic=\"t\" brokers=\"k:1\"\n");
    check_set("notify_kafka:x enable=off topic=t", "notify_kafka:x brokers=k:1", x);
    check_set("", "notify_kafka:x enable=off", "notify_kafka:x enable=\"off\"\n");
    check_set("", "site region=eu-1", "site region=\"eu-1\"\n");
    check_set(
        "notify_kafka:b brokers=k",
        "notify_kafka brokers=k\nnotify_amqp:q url=amqp://h\nnotify_kafka:A brokers=k\nnotify_kafka:A topic=t",
        "notify_amqp:q enable=\"on\" url=\"amqp://h\"\nnotify_kafka enable=\"on\" brokers=\"k\"\n\
         notify_kafka:a enable=\"on\" topic=\"t\" brokers=\"k\"\nnotify_kafka:b enable=\"on\" brokers=\"k\"\n",
    );
}

#[test]
fn a_set_that_is_wrong_changes_nothing_and_says_all() {
    use ConfigErrorKind::{Conflict, InvalidValue, Missing, Syntax, UnknownKey, UnknownSubsystem};
    check_set_refused("", "", Syntax, "the text names no target");
    check_set_refused("", "notify_x a=b", UnknownSubsystem, "line 1: there is no sub-system `notify_x`");
    check_set_refused("", "notify_kafka:x", Missing, "line 1: `notify_kafka:x`: the line sets no key");
    check_set_refused(
        "",
        "notify_kafka:x topic=t",
        Missing,
        "line 1: key `brokers` of `notify_kafka:x`: an enabled target needs it",
    );
    check_set_refused(
        &line(""),
        "notify_kafka:x brokers=",
        Missing,
        "line 1: key `brokers` of `notify_kafka:x`: an enabled target needs it",
    );
    check_set_refused(
        "",
        "notify_kafka:y brokers=k\nnotify_kafka:x brokers=k queue-dir=/q tls=on\nnotify_kafka:z tls=si brokers=a/b",
        UnknownKey,
        "line 2: key `queue-dir` of `notify_kafka:x`: there is no such key; did you mean `queue_dir`?\n\
         line 3: key `tls` of `notify_kafka:z` is `si`: is neither `on` nor `off`\n\
         line 3: key `brokers` of `notify_kafka:z` is `a/b`: in `a/b`, an address has no path: it ends after the port",
    );
    check_set_refused(
        "",
        "notify_kafka:X brokers=k\nnotify_kafka:x brokers=k",
        Conflict,
        "line 2: `notify_kafka:x`: line 1 writes the identifier as `X`; both are one target",
    );
    check_set_refused(
        "",
        "site region=1",
        InvalidValue,
        "line 1: key `region` of `site` is `1`: is no region: two or \
        more letters, digits, `-` and `_`, beginning with a letter",
    );
    check_set_refused(
        "notify_kafka:x brokers=k oops=1",
        "notify_kafka:x topic=t",
        Conflict,
        "line 1: `notify_kafka:x`: what is stored of it cannot be read: reset it first",
    );
}

#[test]
fn what_the_environment_sets_counts_for_a_set_and_its_mistakes_do_not() {
    let environment =
        Environment::new([("MINIO_NOTIFY_KAFKA_BROKERS_X", "k:1"), ("MINIO_NOTIFY_KAFKA_TLS_X", "perhaps")]);
    let mut config = StoredConfig::default();
    config.set("notify_kafka:x topic=t", &environment).unwrap();
    assert!(config.set("notify_kafka:x topic=t", &none()).is_err());
    let resolved = Config::resolve(&environment, &config);
    assert!(matches!(kafka(&resolved, "x").state(), TargetState::Refused(_)));
}

#[test]
fn a_reset_removes_targets_and_keys_that_there_are() {
    let text =
        "notify_kafka enable=\"on\" brokers=\"k\"\nnotify_kafka:x enable=\"on\" topic=\"t\" brokers=\"k\"\n";
    let check = |reset: &str, after: &str| {
        let mut config = stored(text);
        config.reset(reset, &none()).unwrap();
        assert_eq!(config.to_text(), after, "{reset}");
    };
    check("notify_kafka:X", "notify_kafka enable=\"on\" brokers=\"k\"\n");
    check("notify_kafka", "notify_kafka:x enable=\"on\" topic=\"t\" brokers=\"k\"\n");
    check(
        "notify_kafka:x topic",
        "notify_kafka enable=\"on\" brokers=\"k\"\nnotify_kafka:x enable=\"on\" brokers=\"k\"\n",
    );
    check(
        "notify_kafka:x enable brokers  topic",
        "notify_kafka enable=\"on\" brokers=\"k\"\nnotify_kafka:x enable=\"off\"\n",
    );
    let check_refused = |reset: &str, expect: &str| {
        let mut config = stored(text);
        assert_eq!(config.reset(reset, &none()).unwrap_err().to_string(), expect);
        assert_eq!(config, stored(text));
    };
    check_refused("notify_kafka:y", "`notify_kafka:y`: there is no target of this name");
    check_refused("notify_kafka:y topic", "`notify_kafka:y`: there is no target of this name");
    check_refused("notify_nsq", "`notify_nsq`: there is no target of this name");
    check_refused(
        "notify_kafka:x topics",
        "key `topics` of `notify_kafka:x`: there is no such key; did you mean `topic`?",
    );
    check_refused(
        "notify_kafka:x brokers",
        "stored configuration: key `brokers` of `notify_kafka:x`: an enabled target needs it"
            .strip_prefix("stored configuration: ")
            .unwrap(),
    );
}

#[test]
fn a_reset_mends_what_cannot_be_read_or_is_wrong() {
    let mut config = stored("notify_kafka:x brokers=k oops=1\nnotify_kafka:y brokers=k tls=si version=2\n");
    assert!(matches!(kafka(&Config::resolve(&none(), &config), "x").state(), TargetState::Refused(_)));
    config.reset("notify_kafka:x", &none()).unwrap();
    assert!(Config::resolve(&none(), &config).target(TargetKind::Kafka, &"x".parse().unwrap()).is_none());
    config.reset("notify_kafka:y tls", &none()).unwrap();
    config.reset("notify_kafka:y version", &none()).unwrap();
    let _is_enabled = enabled(&Config::resolve(&none(), &config), "y");
}

#[test]
fn what_is_stored_stays_small_enough_to_be_read_again() {
    let lines = |from: usize, to: usize| {
        (from..to).fold(String::new(), |text, i| text + &format!("notify_kafka:t{i} brokers=k\n"))
    };
    let mut config = StoredConfig::default();
    config.set(&lines(0, LINES_MAX), &none()).unwrap();
    for more in [
        lines(LINES_MAX, LINES_MAX + 1),
        format!("notify_kafka:t0 comment={}", "x\"".repeat(TEXT_LEN_MAX / 3)),
    ] {
        let errors = config.set(&more, &none()).unwrap_err();
        assert_eq!(errors.iter().next().unwrap().kind(), ConfigErrorKind::TooLarge);
    }
    assert_eq!(stored(&config.to_text()), config);
}

#[test]
fn get_prints_the_form_of_the_last_release() {
    let environment = Environment::new([
        ("MINIO_NOTIFY_KAFKA_ENABLE_PRIMARY", "on"),
        ("MINIO_NOTIFY_KAFKA_BROKERS_PRIMARY", "k1:9092"),
        ("MINIO_NOTIFY_KAFKA_SASL_PASSWORD_PRIMARY", "hunter2"),
        ("MINIO_NOTIFY_KAFKA_COMMENT_PRIMARY", "a\nnotify_kafka:evil brokers=k"),
    ]);
    let config = stored(
        "notify_kafka:secondary topic=t brokers=k1:9092,k2:9092 sasl_password=hunter2 comment=\"two words\"",
    );
    let printed = config.get("notify_kafka", &environment, OutputStyle::Current).unwrap();
    let rest = "sasl_mechanism=plain client_tls_cert= client_tls_key= tls_client_auth=0 sasl=off tls=off \
                tls_skip_verify=off queue_limit=0 queue_dir= version= batch_size=0 batch_commit_timeout=0s \
                compression_codec= compression_level= ";
    let expect = [
        format!("notify_kafka enable=off topic= brokers= sasl_username= sasl_password= {rest}"),
        "# MINIO_NOTIFY_KAFKA_ENABLE_PRIMARY=on".into(),
        "# MINIO_NOTIFY_KAFKA_BROKERS_PRIMARY=k1:9092".into(),
        "# MINIO_NOTIFY_KAFKA_SASL_PASSWORD_PRIMARY=*redacted*".into(),
        "# MINIO_NOTIFY_KAFKA_COMMENT_PRIMARY=a\u{fffd}notify_kafka:evil brokers=k".into(),
        "notify_kafka:primary ".into(),
        format!(
            "notify_kafka:secondary topic=t brokers=k1:9092,k2:9092 sasl_username= {rest}comment=\"two words\" "
        ),
    ];
    assert_eq!(printed.lines().collect::<Vec<_>>(), expect);
    let one = config.get("notify_kafka:SECONDARY", &environment, OutputStyle::Current).unwrap();
    assert_eq!(one.lines().collect::<Vec<_>>(), expect[6..]);
    let default = config.get("notify_kafka:", &environment, OutputStyle::Current).unwrap();
    assert_eq!(default.lines().collect::<Vec<_>>(), expect[..1]);
}

#[test]
fn get_answers_for_what_there_is_only() {
    let get = |text: &str| {
        stored(&line("oops=1")).get(text, &none(), OutputStyle::Current).map_err(|e| e.to_string())
    };
    assert_eq!(get("notify_kafka:y"), Err("`notify_kafka:y`: there is no target of this name".into()));
    assert_eq!(get("notify"), Err("there is no sub-system `notify`".into()));
    assert!(get("notify_kafka:x").unwrap().starts_with("# refused: line 1: key `oops`"));
    let environment = Environment::new([("MINIO_REGION", "eu-2")]);
    let site = stored("site region=eu-1").get("site", &environment, OutputStyle::Current).unwrap();
    assert_eq!(site, "# MINIO_REGION=eu-2\nsite name= region=eu-1 \n");
}

#[test]
fn get_in_the_documents_form_adds_what_they_leave_out() {
    let config = stored(
        "notify_kafka:x brokers=k enable=off sasl_mechanism=sha256 style=aws comment='it\"s'\n\
                         notify_webhook:w endpoint=http://h auth_token=s",
    );
    assert_eq!(
        config.get("notify_kafka", &none(), OutputStyle::Documented).unwrap(),
        "notify_kafka:x tls_skip_verify=\"off\" queue_dir=\"\" queue_limit=\"0\" sasl=\"off\" sasl_password=\"\" \
         sasl_username=\"\" tls_client_auth=\"0\" tls=\"off\" brokers=\"k\" topic=\"\" client_tls_cert=\"\" \
         client_tls_key=\"\" version=\"\" enable=\"off\" sasl_mechanism=\"sha256\" comment=\"it\"\"s\" style=\"aws\"\n"
    );
    assert_eq!(
        config.get("notify_webhook:w", &none(), OutputStyle::Documented).unwrap(),
        "notify_webhook:w endpoint=\"http://h\" queue_limit=\"0\" queue_dir=\"\" client_cert=\"\" client_key=\"\"\n"
    );
}

#[test]
fn an_export_of_minio_is_read() {
    let export = "notify_kafka enable=off topic= brokers= sasl_username= sasl_password= sasl_mechanism=plain \
                  client_tls_cert= client_tls_key= tls_client_auth=0 sasl=off tls=off tls_skip_verify=off queue_limit=0 \
                  queue_dir= version= batch_size=0 batch_commit_timeout=0s compression_codec= compression_level= \n\
                  # MINIO_NOTIFY_KAFKA_ENABLE_PRIMARY=on\n\
                  notify_kafka:PRIMARY \n\
                  notify_kafka:secondary topic=t brokers=k1:9092,k2:9092 comment=\"say \"hi\" now\" \n";
    let resolved = Config::resolve(&none(), &stored(export));
    assert_eq!(resolved.targets().len(), 2);
    assert_eq!(kafka(&resolved, "_").state(), &TargetState::Disabled);
    assert_eq!(enabled(&resolved, "secondary").comment, "say \"hi\" now");
    assert!(resolved.warnings().is_empty());
}

/// Values of Kafka's keys that are accepted together.
fn sound_values() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let text = "[^\n\0]{0,10}";
    let optional = |key: &'static str, value: BoxedStrategy<String>| {
        proptest::option::of(value).prop_map(move |value| value.map(|value| (key, value)))
    };
    let words =
        |words: &'static [&'static str]| proptest::sample::select(words).prop_map(String::from).boxed();
    let keys = vec![
        Just(Some(("brokers", "k1:9092, k2".to_owned()))).boxed(),
        optional("topic", "[a-z._-]{3,6}".boxed()).boxed(),
        optional("sasl_username", text.boxed()).boxed(),
        optional("sasl_password", text.boxed()).boxed(),
        optional("sasl_mechanism", words(&["plain", "SHA256", "scram-sha-512"])).boxed(),
        optional("tls", words(&["on", "Off", "true", "0"])).boxed(),
        optional("tls_ca", text.boxed()).boxed(),
        optional("queue_dir", "/[^\n\0]{0,10}".boxed()).boxed(),
        optional("queue_limit", (0..u64::MAX).prop_map(|n| n.to_string()).boxed()).boxed(),
        optional("comment", text.boxed()).boxed(),
        optional("enable", words(&["on", "off"])).boxed(),
    ];
    (keys, any::<u64>()).prop_map(|(keys, seed)| {
        let mut keys: Vec<_> = keys.into_iter().flatten().collect();
        let len = keys.len();
        keys.rotate_left(usize::try_from(seed % 97).unwrap() % len);
        keys
    })
}

proptest! {
    #[test]
    fn what_is_set_is_printed_and_read_as_the_same(values in sound_values()) {
        let quote = |value: &str| format!("\"{}\"", value.replace('"', "\"\""));
        let pairs: Vec<String> = values.iter().map(|(key, value)| format!("{key}={}", quote(value))).collect();
        let mut config = StoredConfig::default();
        config.set(&format!("notify_kafka:x {}", pairs.join(" ")), &none()).unwrap();

        let settings = kafka(&Config::resolve(&none(), &config), "x").settings().clone();
        for (key, value) in &values {
            let default = Subsystem::Target(TargetKind::Kafka).key(key).unwrap().default;
            let expect = if value.is_empty() { default } else { value };
            prop_assert_eq!(settings.value(key), Some(expect));
        }

        prop_assert_eq!(&stored(&config.to_text()), &config);
        // What `get` prints has all but the password, and can be set again.
        for style in [OutputStyle::Current, OutputStyle::Documented] {
            let printed = config.get("notify_kafka:x", &none(), style).unwrap();
            let mut again = StoredConfig::default();
            again.set(&printed, &none()).unwrap();
            let again = kafka(&Config::resolve(&none(), &again), "x").settings().clone();
            for setting in &settings {
                if setting.key().name != "sasl_password" {
                    prop_assert_eq!(again.value(setting.key().name), Some(setting.value()), "{}", printed);
                }
            }
        }
    }

    #[test]
    fn a_stored_text_never_loses_a_line(text in "(notify_kafka:[a-c]( (topic|tls|x)=[\"a ]{0,3}){0,3}\n|[a-z:= \"]{0,9}\n){0,5}") {
        let config = stored(&text);
        let again = stored(&config.to_text());
        prop_assert_eq!(&again, &config);
        prop_assert_eq!(again.to_text(), config.to_text());
    }
}
