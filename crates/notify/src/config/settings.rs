//! What counts for one target: every key with its value and where that comes from.

use std::fmt;

use super::environment::EnvironmentValues;
use super::error::{ConfigError, ConfigErrorKind, Finding, Place, Warning};
use super::keys::{ENABLE, Key, Sensitivity, Subsystem, pairs};
use super::stored::Values;
use super::value::flag;
use super::{TargetId, TargetKind};

/// The value of every key of a target: from the environment, else stored, else the default.
#[derive(Clone, PartialEq, Eq)]
pub struct TargetSettings {
    kind: TargetKind,
    id: TargetId,
    settings: Vec<Setting>,
}

impl TargetSettings {
    pub(super) fn new(
        kind: TargetKind,
        id: TargetId,
        stored: Option<&Values>,
        environment: Option<&EnvironmentValues>,
    ) -> Self {
        let setting = |key: &'static Key| Setting::new(key, stored, environment);
        Self { kind, id, settings: Subsystem::Target(kind).keys().map(setting).collect() }
    }

    /// What the target is.
    #[must_use]
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// Which one of its kind it is.
    #[must_use]
    pub fn id(&self) -> &TargetId {
        &self.id
    }

    /// The value of a key as text, empty if it has none; `None` if there is no such key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.setting(key).map(Setting::value)
    }

    /// Where the value of a key comes from; `None` if there is no such key.
    #[must_use]
    pub fn source(&self, key: &str) -> Option<&Source> {
        self.setting(key).map(Setting::source)
    }

    /// All keys, in the order of their table.
    pub fn iter(&self) -> std::slice::Iter<'_, Setting> {
        self.settings.iter()
    }

    fn setting(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key.name == key)
    }
}

impl<'a> IntoIterator for &'a TargetSettings {
    type Item = &'a Setting;
    type IntoIter = std::slice::Iter<'a, Setting>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for TargetSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.settings.iter().filter(|setting| setting.source != Source::Default);
        write!(f, "TargetSettings({} ", Subsystem::Target(self.kind).with_id(&self.id))?;
        f.debug_list().entries(set).finish()?;
        f.write_str(")")
    }
}

/// A key, its value, and where that comes from.
#[derive(Clone, PartialEq, Eq)]
pub struct Setting {
    key: &'static Key,
    value: String,
    source: Source,
}

impl Setting {
    pub(super) fn new(
        key: &'static Key,
        stored: Option<&Values>,
        environment: Option<&EnvironmentValues>,
    ) -> Self {
        let stored = || stored.and_then(|values| values.get(key.name)).filter(|value| !value.is_empty());
        if let Some(found) = environment.and_then(|values| values.get(key.name)) {
            Self { key, value: found.value.clone(), source: Source::Variable(found.variable.clone()) }
        } else if let Some(value) = stored() {
            Self { key, value: value.clone(), source: Source::Stored }
        } else {
            Self { key, value: key.default.into(), source: Source::Default }
        }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &'static Key {
        self.key
    }

    /// The value as text; empty if there is none.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Where the value comes from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    pub(super) fn finding(&self, reason: impl Into<String>) -> Finding {
        Finding::new(reason).at(Place::of(&self.source)).setting(self.key, &self.value)
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.key.sensitivity == Sensitivity::Plain { &self.value } else { ".." };
        write!(f, "{}={value:?} from {:?}", self.key.name, self.source)
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The table of keys.
    Default,
    /// The stored configuration.
    Stored,
    /// The environment variable of this name.
    Variable(String),
}

/// Reads the settings of a target, and gathers what is wrong with them.
///
/// What each key alone has to be is checked when it is made; so a value that is no good reads as none, without a second
/// error.
pub(super) struct Reader<'a> {
    settings: &'a TargetSettings,
    pub(super) errors: Vec<ConfigError>,
    pub(super) warnings: Vec<Warning>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(settings: &'a TargetSettings) -> Self {
        let mut reader = Self { settings, errors: Vec::new(), warnings: Vec::new() };
        for setting in &settings.settings {
            if setting.value.is_empty() {
                if setting.key.is_required {
                    reader.refuse(ConfigErrorKind::Missing, setting.key, "an enabled target needs it");
                }
            } else if let Err(reason) = setting.key.value.check(&setting.value) {
                reader.refuse(ConfigErrorKind::InvalidValue, setting.key, reason);
            }
        }
        for (one, other) in pairs(settings.kind) {
            let is_set = |name| settings.value(name).is_some_and(|value| !value.is_empty());
            for (set, missing) in [(one, other), (other, one)] {
                if let (true, false, Some(setting)) = (is_set(set), is_set(missing), settings.setting(set)) {
                    reader.refuse(
                        ConfigErrorKind::Missing,
                        setting.key,
                        format!("it needs `{missing}` beside it"),
                    );
                }
            }
        }
        reader
    }

    pub(super) fn settings(&self) -> &'a TargetSettings {
        self.settings
    }

    /// The value, if there is one and it is good.
    pub(super) fn read<T>(&self, key: &Key, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        read(self.text(key)?).ok()
    }

    /// The value, if it is not empty.
    pub(super) fn text(&self, key: &Key) -> Option<&'a str> {
        self.settings.value(key.name).filter(|value| !value.is_empty())
    }

    pub(super) fn flag(&self, key: &Key) -> bool {
        self.read(key, flag).unwrap_or_default()
    }

    pub(super) fn refuse(&mut self, kind: ConfigErrorKind, key: &Key, reason: impl Into<String>) {
        self.errors.push(ConfigError::new(kind, self.finding(key, reason)));
    }

    pub(super) fn warn(&mut self, key: &Key, reason: impl Into<String>) {
        self.warnings.push(Warning::new(self.finding(key, reason)));
    }

    fn finding(&self, key: &Key, reason: impl Into<String>) -> Finding {
        let reason = reason.into();
        let finding = match self.settings.setting(key.name) {
            Some(setting) => setting.finding(reason),
            None => Finding::new(reason).key(key.name),
        };
        finding.of(Subsystem::Target(self.settings.kind), &self.settings.id)
    }
}

/// Whether a target is enabled, or why that cannot be told.
pub(super) fn is_enabled(settings: &TargetSettings) -> Result<bool, ConfigError> {
    let Some(setting) = settings.setting(ENABLE.name) else { return Ok(false) };
    flag(&setting.value).map_err(|reason| {
        let finding = setting.finding(reason).of(Subsystem::Target(settings.kind), &settings.id);
        ConfigError::new(ConfigErrorKind::InvalidValue, finding)
    })
}
