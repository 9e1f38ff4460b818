//! What holds: the environment, what is stored, and the defaults, taken together.

use std::fmt::Write as _;

use super::error::{ConfigError, ConfigErrorKind, Warning};
use super::kafka::KafkaConfig;
use super::keys::{API_SYNC_EVENTS, Key, SITE_REGION, Subsystem};
use super::settings::{Setting, Source, TargetSettings};
use super::target::{EnabledTarget, TargetConfig, check_target};
use super::value::{flag, region};
use super::{Arn, ConfigErrors, Environment, StoredConfig, TargetId, TargetKind};

/// The whole configuration as it holds now. A key has the value of its variable, else the stored one, else its default.
///
/// There are the targets that are stored, and those for which a variable `…_ENABLE` or `…_ENABLE_<ID>` is set. Each is
/// read for itself: what is wrong with one is told there, and the others are as they would be without it.
///
/// ```
/// use kolumn_notify::config::{Config, Environment, StoredConfig, TargetKind, TargetState};
///
/// let environment = Environment::new([
///     ("MINIO_NOTIFY_KAFKA_ENABLE_PRIMARY", "on"),
///     ("MINIO_NOTIFY_KAFKA_BROKERS_PRIMARY", "kafka1:9092,kafka2:9092"),
///     ("MINIO_NOTIFY_KAFKA_TOPIC_PRIMARY", "bucket-events"),
///     ("MINIO_NOTIFY_NSQ_ENABLE_OTHER", "perhaps"),
/// ]);
/// let config = Config::resolve(&environment, &StoredConfig::default());
/// assert_eq!(config.arns_line().as_deref(), Some("SQS ARNs: arn:minio:sqs::primary:kafka"));
///
/// let other = config.target(TargetKind::Nsq, &"other".parse()?).ok_or("no target")?;
/// let TargetState::Refused(errors) = other.state() else { return Err("it is not refused".into()) };
/// assert_eq!(
///     errors.to_string(),
///     "MINIO_NOTIFY_NSQ_ENABLE_OTHER: key `enable` of `notify_nsq:other` is `perhaps`: is neither `on` nor `off`"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Config {
    region: String,
    region_source: Source,
    sync_events: bool,
    sync_events_source: Source,
    targets: Vec<Target>,
    errors: Vec<ConfigError>,
    warnings: Vec<Warning>,
}

impl Config {
    /// Takes environment and stored configuration together. Nothing of it fails as a whole.
    #[must_use]
    pub fn resolve(environment: &Environment, stored: &StoredConfig) -> Self {
        let mut errors: Vec<ConfigError> = stored.refused(None).cloned().collect();
        let mut warnings: Vec<Warning> = environment.strangers().collect();
        let mut single = |subsystem: Subsystem, key: &'static Key| {
            let id = TargetId::default_target();
            let values = environment.single(subsystem);
            let setting = Setting::new(key, stored.values(subsystem, &id), Some(&values));
            errors.extend(values.errors);
            errors.extend(stored.refused(Some((subsystem, &id))).cloned());
            warnings.extend(values.warnings);
            if let (false, Err(reason)) = (setting.value().is_empty(), key.value.check(setting.value())) {
                let finding = setting.finding(reason).of(subsystem, &id);
                errors.push(ConfigError::new(ConfigErrorKind::InvalidValue, finding));
            }
            setting
        };
        let site = single(Subsystem::Site, &SITE_REGION);
        let api = single(Subsystem::Api, &API_SYNC_EVENTS);
        let mut targets = Vec::new();
        for &kind in TargetKind::ALL {
            let found = environment.targets(kind, &stored.ids(kind));
            errors.extend(found.errors);
            warnings.extend(found.warnings);
            for (id, values) in found.targets {
                let subsystem = Subsystem::Target(kind);
                let settings =
                    TargetSettings::new(kind, id.clone(), stored.values(subsystem, &id), Some(&values));
                let mut wrong: Vec<ConfigError> = stored.refused(Some((subsystem, &id))).cloned().collect();
                wrong.extend(values.errors);
                warnings.extend(values.warnings);
                targets.push(Target::new(settings, wrong, &mut warnings));
            }
        }
        Self {
            region: region(site.value()).unwrap_or_default(),
            region_source: site.source().clone(),
            sync_events: flag(api.value()).unwrap_or_default(),
            sync_events_source: api.source().clone(),
            targets,
            errors,
            warnings,
        }
    }

    /// The region, a part of every ARN: `KOLUMN_SITE_REGION`, `KOLUMN_REGION`, `MINIO_SITE_REGION`, `MINIO_REGION` or
    /// the stored `site region=`. Empty if there is none or if it is wrong, which then is one of the
    /// [errors](Self::errors).
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Where the region comes from.
    #[must_use]
    pub fn region_source(&self) -> &Source {
        &self.region_source
    }

    /// Whether a request waits until its events are delivered: `KOLUMN_API_SYNC_EVENTS`, `MINIO_API_SYNC_EVENTS` or the
    /// stored `api sync_events=`.
    #[must_use]
    pub fn sync_events(&self) -> bool {
        self.sync_events
    }

    /// Where that comes from.
    #[must_use]
    pub fn sync_events_source(&self) -> &Source {
        &self.sync_events_source
    }

    /// All targets, by kind and identifier, whatever their state.
    #[must_use]
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// A target by its name.
    #[must_use]
    pub fn target(&self, kind: TargetKind, id: &TargetId) -> Option<&Target> {
        self.targets.iter().find(|target| target.settings.kind() == kind && target.settings.id() == id)
    }

    /// The Kafka targets that are enabled.
    pub fn kafka_targets(&self) -> impl Iterator<Item = &TargetConfig<KafkaConfig>> {
        self.targets.iter().filter_map(|target| match &target.state {
            TargetState::Enabled(enabled) => match &**enabled {
                EnabledTarget::Kafka(config) => Some(config),
                EnabledTarget::Other(_) => None,
            },
            _ => None,
        })
    }

    /// The ARNs of the targets that are enabled.
    pub fn arns(&self) -> impl Iterator<Item = Arn> {
        let enabled = self.targets.iter().filter(|target| matches!(target.state, TargetState::Enabled(_)));
        enabled.map(|target| Arn::new(&*self.region, target.settings.id().clone(), target.settings.kind()))
    }

    /// The line that a server prints at its start, `SQS ARNs: <arn> <arn>`; nothing if no target is enabled.
    #[must_use]
    pub fn arns_line(&self) -> Option<String> {
        let mut line = String::from("SQS ARNs:");
        let mut is_any = false;
        for arn in self.arns() {
            is_any = true;
            // Writing to a string cannot fail.
            let _ = write!(line, " {arn}");
        }
        is_any.then_some(line)
    }

    /// What is wrong outside of any target; what is wrong with one is in its [state](Target::state).
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }

    /// What is accepted, but is probably not what was meant.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// A target that is configured, whatever its state.
#[derive(Debug, Clone)]
pub struct Target {
    settings: TargetSettings,
    state: TargetState,
}

impl Target {
    fn new(settings: TargetSettings, mut wrong: Vec<ConfigError>, warnings: &mut Vec<Warning>) -> Self {
        let state = match check_target(&settings) {
            Ok((found, odd)) => {
                warnings.extend(odd);
                found.map_or(TargetState::Disabled, |enabled| TargetState::Enabled(Box::new(enabled)))
            }
            Err(errors) => {
                wrong.extend(errors);
                TargetState::Disabled
            }
        };
        let state = ConfigErrors::check(wrong).map_or_else(TargetState::Refused, |()| state);
        Self { settings, state }
    }

    /// Every key with its value, and where that comes from.
    #[must_use]
    pub fn settings(&self) -> &TargetSettings {
        &self.settings
    }

    /// Whether events can be sent to it.
    #[must_use]
    pub fn state(&self) -> &TargetState {
        &self.state
    }
}

/// Whether events can be sent to a target.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TargetState {
    /// It is configured well.
    Enabled(Box<EnabledTarget>),
    /// It is switched off.
    Disabled,
    /// It is configured wrongly: all that is wrong.
    Refused(ConfigErrors),
}
