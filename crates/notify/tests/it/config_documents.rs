//! The procedures of `MinIO`'s documents, with the texts that stand there.

use kolumn_notify::config::{
    ClientAuth, Config, Environment, HostPort, Mechanism, OutputStyle, QueueConfig, StoredConfig,
};

use crate::config_support::{enabled, kafka, refusal, resolve, warnings};

const ENVIRONMENT: &str = r#"
   export MINIO_NOTIFY_KAFKA_ENABLE_<IDENTIFIER>="on"
   export MINIO_NOTIFY_KAFKA_BROKERS_<IDENTIFIER>="<ENDPOINT>"
   export MINIO_NOTIFY_KAFKA_TOPIC_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_SASL_USERNAME_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_SASL_PASSWORD_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_SASL_MECHANISM_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_TLS_CLIENT_AUTH_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_SASL_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_TLS_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_TLS_SKIP_VERIFY_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_CLIENT_TLS_CERT_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_CLIENT_TLS_KEY_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_QUEUE_DIR_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_QUEUE_LIMIT_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_VERSION_<IDENTIFIER>="<string>"
   export MINIO_NOTIFY_KAFKA_COMMENT_<IDENTIFIER>="<string>"
"#;

const SET: &str = r#"
   mc admin config set ALIAS notify_kafka:IDENTIFIER \
      brokers="<ENDPOINT>" \
      topic="<string>" \
      sasl_username="<string>" \
      sasl_password="<string>" \
      sasl_mechanism="<string>" \
      tls_client_auth="<string>" \
      tls="<string>" \
      tls_skip_verify="<string>" \
      client_tls_cert="<string>" \
      client_tls_key="<string>" \
      version="<string>" \
      queue_dir="<string>" \
      queue_limit="<string>" \
      comment="<string>"
"#;

const UPDATE_BROKERS: &str = r#"brokers="https://kafka1.example.net:9200, https://kafka2.example.net:9200""#;

const GET: &str = r#"
   notify_kafka:primary tls_skip_verify="off"  queue_dir="" queue_limit="0" sasl="off" sasl_password="" sasl_username="" tls_client_auth="0" tls="off" brokers="" topic="" client_tls_cert="" client_tls_key="" version=""
   notify_kafka:secondary tls_skip_verify="off"  queue_dir="" queue_limit="0" sasl="off" sasl_password="" sasl_username="" tls_client_auth="0" tls="off" brokers="" topic="" client_tls_cert="" client_tls_key="" version=""
"#;

const ENDPOINT: &str = "kafka1.example.com:2021,kafka2.example.com:2021";

/// What the reader of the documents puts in place of `<string>`.
const VALUES: [(&str, &str); 14] = [
    ("topic", "bucket-events"),
    ("sasl_username", "minio"),
    ("sasl_password", "correct horse"),
    ("sasl_mechanism", "sha512"),
    ("tls_client_auth", "0"),
    ("sasl", "on"),
    ("tls", "on"),
    ("tls_skip_verify", "off"),
    ("client_tls_cert", "/etc/certs/client.pem"),
    ("client_tls_key", "/etc/certs/client.key"),
    ("queue_dir", "/var/lib/events"),
    ("queue_limit", "5000"),
    ("version", "2.8.0"),
    ("comment", "the first cluster"),
];

/// The environment of a shell that has run the documents' lines.
fn environment(identifier: &str) -> Vec<(String, String)> {
    let text = ENVIRONMENT.replace("<IDENTIFIER>", identifier).replace("<ENDPOINT>", ENDPOINT);
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("export "));
    let variables = lines.map(|line| {
        let (name, value) = line.split_once('=').unwrap();
        let key = name
            .strip_prefix("MINIO_NOTIFY_KAFKA_")
            .unwrap()
            .strip_suffix(&format!("_{identifier}"))
            .unwrap();
        let value = match VALUES.iter().find(|(name, _)| *name == key.to_lowercase()) {
            Some((_, own)) => value.replace("<string>", own),
            None => value.into(),
        };
        (name.to_owned(), value.trim_matches('"').to_owned())
    });
    variables.collect()
}

/// The documents' command with values, from its target on.
fn set_line() -> String {
    let text = SET.replace("IDENTIFIER", "PRIMARY").replace("<ENDPOINT>", ENDPOINT);
    let (_, text) = text.split_once("mc admin config set ALIAS ").unwrap();
    let mut text = text.to_owned();
    for (key, value) in VALUES {
        text = text.replace(&format!(" {key}=\"<string>\""), &format!(" {key}=\"{value}\""));
    }
    assert!(!text.contains("<string>"), "{text}");
    text
}

/// What a shell makes of the command: `mc` sends its arguments with blanks between them.
fn as_mc_sends_it(line: &str) -> String {
    let joined = line.replace("\\\n", " ");
    joined.replace('"', "")
}

#[track_caller]
fn check_primary(config: &Config) {
    assert_eq!(config.arns_line().as_deref(), Some("SQS ARNs: arn:minio:sqs::primary:kafka"));
    let target = enabled(config, "PRIMARY");
    let brokers: Vec<String> = target.target.brokers.iter().map(HostPort::to_string).collect();
    assert_eq!(brokers, ["kafka1.example.com:2021", "kafka2.example.com:2021"]);
    assert_eq!(target.target.topic.as_deref(), Some("bucket-events"));
    let tls = target.target.tls.as_ref().unwrap();
    assert!(tls.verify && tls.ca.is_none());
    assert_eq!(tls.client.as_ref().unwrap().cert.to_str(), Some("/etc/certs/client.pem"));
    assert_eq!(tls.client.as_ref().unwrap().key.to_str(), Some("/etc/certs/client.key"));
    assert_eq!(target.target.client_auth, ClientAuth::NoClientCert);
    assert_eq!(target.target.version.unwrap().to_string(), "2.8.0");
    assert_eq!(target.queue.dir.as_ref().unwrap().to_str(), Some("/var/lib/events"));
    assert_eq!(target.queue.limit, 5000);
    assert_eq!(target.comment, "the first cluster");
}

#[test]
fn the_documented_variables_configure_a_target() {
    let config = Config::resolve(&Environment::new(environment("PRIMARY")), &StoredConfig::default());
    check_primary(&config);
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    let sasl = enabled(&config, "primary").target.sasl.clone().unwrap();
    assert_eq!((sasl.mechanism, sasl.user.as_str()), (Mechanism::ScramSha512, "minio"));
    assert_eq!(sasl.password.expose(), "correct horse");
}

#[test]
fn the_least_that_is_documented_is_enough() {
    let config = resolve(
        &[("MINIO_NOTIFY_KAFKA_ENABLE", "on"), ("MINIO_NOTIFY_KAFKA_BROKERS", "\"kafka1.example.com:2021\"")],
        "",
    );
    assert_eq!(config.arns_line().as_deref(), Some("SQS ARNs: arn:minio:sqs::_:kafka"));
    assert_eq!(enabled(&config, "_").queue.limit, QueueConfig::LIMIT);
    assert_eq!(
        warnings(&config),
        ["key `topic` of `notify_kafka`: without a topic only events of rules that name one can be sent"]
    );
}

#[test]
fn the_documented_command_configures_a_target_pasted_or_through_mc() {
    for text in [set_line(), as_mc_sends_it(&set_line())] {
        let environment = Environment::default();
        let mut stored = StoredConfig::default();
        let warnings = stored.set(&text, &environment).unwrap();
        check_primary(&Config::resolve(&environment, &stored));
        // The documented command gives a user, but leaves `sasl` off.
        let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "stored configuration: key `sasl_username` of `notify_kafka:primary`: it has no effect while `sasl` is off"
            ]
        );
        stored.set("notify_kafka:primary sasl=on", &environment).unwrap();
        let config = Config::resolve(&environment, &stored);
        check_primary(&config);
        assert_eq!(
            enabled(&config, "primary").target.sasl.as_ref().unwrap().password.expose(),
            "correct horse"
        );
        assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    }
}

#[test]
fn the_documented_update_takes_https_and_a_blank_and_warns() {
    let environment = Environment::default();
    let update = set_line()
        .replace(&format!("brokers=\"{ENDPOINT}\""), UPDATE_BROKERS)
        .replace("tls=\"on\"", "tls=\"off\"");
    for text in [update.clone(), as_mc_sends_it(&update)] {
        let mut stored = StoredConfig::default();
        stored.set(&set_line(), &environment).unwrap();
        let warnings = stored.set(&text, &environment).unwrap();
        let config = Config::resolve(&environment, &stored);
        let target = &enabled(&config, "primary").target;
        let brokers: Vec<String> = target.brokers.iter().map(HostPort::to_string).collect();
        assert_eq!(brokers, ["kafka1.example.net:9200", "kafka2.example.net:9200"]);
        assert!(target.tls.is_none(), "a scheme switches nothing on");
        let warning = warnings.iter().find(|warning| warning.key() == Some("brokers")).unwrap().to_string();
        assert!(warning.contains("`https://` is left out") && warning.contains("`tls` is off"), "{warning}");
    }
}

#[test]
fn the_documented_output_is_read_and_is_what_an_empty_target_prints() {
    let stored = StoredConfig::from_text(GET).unwrap();
    let config = Config::resolve(&Environment::default(), &stored);
    // It shows targets without brokers, which cannot be enabled.
    for id in ["primary", "secondary"] {
        let expect = format!("key `brokers` of `notify_kafka:{id}`: an enabled target needs it");
        assert_eq!(refusal(kafka(&config, id)), expect);
    }
    let printed = stored.get("notify_kafka", &Environment::default(), OutputStyle::Documented).unwrap();
    let documented: Vec<String> = GET.trim().lines().map(|line| line.trim().replace("  ", " ")).collect();
    assert_eq!(printed.lines().collect::<Vec<_>>(), documented);
}

#[test]
fn variables_override_what_is_stored_key_by_key() {
    let config = resolve(
        &[("MINIO_NOTIFY_KAFKA_TOPIC_PRIMARY", "other"), ("MINIO_NOTIFY_KAFKA_QUEUE_LIMIT_PRIMARY", "  ")],
        "notify_kafka:primary brokers=k:1 topic=t queue_limit=7",
    );
    let target = enabled(&config, "primary");
    assert_eq!((target.target.topic.as_deref(), target.queue.limit), (Some("other"), 7));
    let sources = ["topic", "queue_limit", "tls"]
        .map(|key| format!("{:?}", kafka(&config, "primary").settings().source(key).unwrap()));
    assert_eq!(sources, ["Variable(\"MINIO_NOTIFY_KAFKA_TOPIC_PRIMARY\")", "Stored", "Default"]);
}
