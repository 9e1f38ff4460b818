//! What is wrong with a configuration, and where.

use std::fmt;

use super::keys::{Key, Sensitivity, Subsystem};
use super::{Source, TargetId};

/// One thing that is wrong. Its text names the place, the target, the key and the value, but never a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    kind: ConfigErrorKind,
    finding: Box<Finding>,
}

impl ConfigError {
    pub(super) fn new(kind: ConfigErrorKind, finding: Finding) -> Self {
        Self { kind, finding: Box::new(finding) }
    }

    /// The same mistake, as one of this line of a text.
    pub(super) fn at_line(mut self, line: usize) -> Self {
        self.finding.place = Some(Place::Line(line));
        self
    }

    /// What kind of mistake it is.
    #[must_use]
    pub fn kind(&self) -> ConfigErrorKind {
        self.kind
    }

    /// Where the value stands that is wrong, if it stands somewhere.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.finding.place.as_ref()
    }

    /// The key that is meant, as it was written.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.finding.key.as_deref()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.finding.fmt(f)
    }
}

impl std::error::Error for ConfigError {}

/// What kind of mistake a [`ConfigError`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// The text does not follow the grammar.
    Syntax,
    /// There is no such sub-system.
    UnknownSubsystem,
    /// There is no such target.
    UnknownTarget,
    /// The sub-system has no such key.
    UnknownKey,
    /// The value is not one that the key can have.
    InvalidValue,
    /// A key has no value, but needs one.
    Missing,
    /// Two values that cannot stand together.
    Conflict,
    /// More than is accepted.
    TooLarge,
}

/// All that is wrong with one source or one target; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// `Ok` if nothing is wrong.
    pub(super) fn check(errors: Vec<ConfigError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self(errors)) }
    }

    /// Each mistake, in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, ConfigError> {
        self.0.iter()
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl<'a> IntoIterator for &'a ConfigErrors {
    type Item = &'a ConfigError;
    type IntoIter = std::slice::Iter<'a, ConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for ConfigErrors {
    type Item = ConfigError;
    type IntoIter = std::vec::IntoIter<ConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// One mistake a line.
impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Something that is accepted, but is probably not what was meant. Whoever reads the configuration shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning(Finding);

impl Warning {
    pub(super) fn new(finding: Finding) -> Self {
        Self(finding)
    }

    /// The key that is meant.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The name of an environment variable.
    Variable(String),
    /// A line of a text, counted from 1.
    Line(usize),
    /// The stored configuration.
    Stored,
}

impl Place {
    /// The place of a value of this source; a default stands nowhere.
    pub(super) fn of(source: &Source) -> Option<Self> {
        match source {
            Source::Default => None,
            Source::Stored => Some(Self::Stored),
            Source::Variable(name) => Some(Self::Variable(name.clone())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::Line(line) => write!(f, "line {line}"),
            Self::Stored => f.write_str("stored configuration"),
        }
    }
}

/// A reason with all that is known of what it is about: `<place>: key `k` of `target` is `value`: <reason>`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Finding {
    place: Option<Place>,
    target: Option<String>,
    key: Option<String>,
    value: Option<String>,
    reason: String,
}

impl Finding {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }

    pub(super) fn at(mut self, place: impl Into<Option<Place>>) -> Self {
        self.place = place.into();
        self
    }

    pub(super) fn of(mut self, subsystem: Subsystem, id: &TargetId) -> Self {
        self.target = Some(subsystem.with_id(id));
        self
    }

    /// A key as it was written, which may be none that is known.
    pub(super) fn key(mut self, name: &str) -> Self {
        self.key = Some(shortened(name));
        self
    }

    /// A key and its value, which is left out where it is or may hold a secret.
    pub(super) fn setting(mut self, key: &Key, value: &str) -> Self {
        self.key = Some(key.name.into());
        let is_shown = key.sensitivity == Sensitivity::Plain && !value.is_empty() && !value.contains('@');
        self.value = is_shown.then(|| shortened(value));
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        match (&self.key, &self.target) {
            (Some(key), Some(target)) => write!(f, "key `{key}` of `{target}`")?,
            (Some(key), None) => write!(f, "key `{key}`")?,
            (None, Some(target)) => write!(f, "`{target}`")?,
            (None, None) => return f.write_str(&self.reason),
        }
        if let Some(value) = &self.value {
            write!(f, " is `{value}`")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// The beginning of a text that came from outside, without what would break a line of a log.
pub(super) fn shortened(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(SHOWN_CHARS_MAX)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}

const SHOWN_CHARS_MAX: usize = 120;
