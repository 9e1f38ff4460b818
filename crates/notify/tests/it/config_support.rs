//! What the tests of configuration have in common.

use kolumn_notify::config::{
    Config, EnabledTarget, Environment, KafkaConfig, StoredConfig, Target, TargetConfig, TargetKind,
    TargetState,
};

/// What holds with this environment and this stored text.
pub(crate) fn resolve(variables: &[(&str, &str)], stored: &str) -> Config {
    let environment = Environment::new(variables.iter().copied());
    Config::resolve(&environment, &StoredConfig::from_text(stored).unwrap())
}

#[track_caller]
pub(crate) fn kafka<'a>(config: &'a Config, id: &str) -> &'a Target {
    config.target(TargetKind::Kafka, &id.parse().unwrap()).expect("no such target")
}

/// The configuration of a Kafka target that is enabled.
#[track_caller]
pub(crate) fn enabled<'a>(config: &'a Config, id: &str) -> &'a TargetConfig<KafkaConfig> {
    match kafka(config, id).state() {
        TargetState::Enabled(target) => match &**target {
            EnabledTarget::Kafka(config) => config,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// What is wrong with a target, a mistake a line; nothing if it is enabled or disabled.
pub(crate) fn refusal(target: &Target) -> String {
    match target.state() {
        TargetState::Refused(errors) => errors.to_string(),
        _ => String::new(),
    }
}

pub(crate) fn warnings(config: &Config) -> Vec<String> {
    config.warnings().iter().map(ToString::to_string).collect()
}

/// A Kafka target that needs nothing else, with these keys.
pub(crate) fn line(keys: &str) -> String {
    format!("notify_kafka:x brokers=k:1 topic=t {keys}")
}
