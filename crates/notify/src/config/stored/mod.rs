//! The stored configuration: what `set` and `reset` change, and the text that it is kept as.

mod print;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub use self::print::OutputStyle;
use super::error::{ConfigError, ConfigErrorKind, Finding, Place, Warning};
use super::keys::{ENABLE, Key, Subsystem};
use super::settings::TargetSettings;
use super::target::check_target;
use super::text::{self, LINES_MAX, TEXT_LEN_MAX, TargetName, quoted};
use super::{ConfigErrors, Environment, TargetId, TargetKind};

/// The values of one target by key; none of them is empty.
pub(super) type Values = BTreeMap<&'static str, String>;

/// The configuration that commands change and that outlives a restart. Where the text of it is kept is the caller's.
///
/// ```
/// use kolumn_notify::config::{Environment, OutputStyle, StoredConfig};
///
/// let environment = Environment::default();
/// let mut stored = StoredConfig::default();
/// stored.set("notify_kafka:primary brokers=\"kafka1:9092, kafka2:9092\" topic=\"bucket-events\"", &environment)?;
/// stored.set("notify_kafka:primary topic=events", &environment)?; // the brokers stay
/// let again = StoredConfig::from_text(&stored.to_text())?;
/// assert_eq!(again, stored);
///
/// let refused = stored.set("notify_kafka:primary queue-dir=/var/queue", &environment).unwrap_err();
/// assert!(refused.to_string().ends_with("did you mean `queue_dir`?"));
/// # Ok::<(), kolumn_notify::config::ConfigErrors>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct StoredConfig {
    targets: BTreeMap<(Subsystem, TargetId), StoredTarget>,
    refused: Vec<RefusedLine>,
}

/// What is configured is compared, not why a line was refused.
impl PartialEq for StoredConfig {
    fn eq(&self, other: &Self) -> bool {
        let lines = |config: &Self| config.refused.iter().map(|line| line.text.clone()).collect::<Vec<_>>();
        self.targets == other.targets && lines(self) == lines(other)
    }
}

impl Eq for StoredConfig {}

/// The values of a target, which `Debug` does not show.
#[derive(Clone, Default, PartialEq, Eq)]
struct StoredTarget(Values);

impl std::fmt::Debug for StoredTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A line of a stored text that could not be read. It is kept as it is, so that nothing is lost by reading and writing.
#[derive(Clone)]
struct RefusedLine {
    text: String,
    target: Option<(Subsystem, TargetId)>,
    errors: Vec<ConfigError>,
}

impl std::fmt::Debug for RefusedLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.errors).finish()
    }
}

impl StoredConfig {
    /// Reads what [`to_text`](Self::to_text) wrote, or what `MinIO` exports.
    ///
    /// A line that is wrong does not take the others down: it is kept, its target is refused with the reason when the
    /// configuration is resolved, and [`reset`](Self::reset) removes it.
    ///
    /// # Errors
    ///
    /// The text is larger than [`TEXT_LEN_MAX`](super::TEXT_LEN_MAX) or has more lines than
    /// [`LINES_MAX`](super::LINES_MAX).
    pub fn from_text(text: &str) -> Result<Self, ConfigErrors> {
        let mut config = Self::default();
        let mut seen: BTreeMap<(Subsystem, TargetId), usize> = BTreeMap::new();
        for (number, line) in text::lines(text)? {
            let (target, errors) = match text::line(number, &line) {
                Err(refused) => (refused.target, refused.errors),
                // What the environment alone sets is printed as a target without keys.
                Ok(parsed) if parsed.pairs.is_empty() => continue,
                Ok(parsed) => {
                    let target = parsed.target;
                    match seen.insert((target.subsystem, target.id.clone()), number) {
                        None => {
                            config.update(&target, parsed.pairs);
                            continue;
                        }
                        Some(first) => {
                            let reason = format!("line {first} is about the same target");
                            let finding =
                                Finding::new(reason).at(Place::Line(number)).of(target.subsystem, &target.id);
                            (Some(target), vec![ConfigError::new(ConfigErrorKind::Conflict, finding)])
                        }
                    }
                }
            };
            let target = target.map(|target| (target.subsystem, target.id));
            config.refused.push(RefusedLine { text: line.into_owned(), target, errors });
        }
        Ok(config)
    }

    /// Everything, secrets included, as text that [`from_text`](Self::from_text) reads as the same.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for ((subsystem, id), target) in &self.targets {
            text.push_str(&subsystem.with_id(id));
            for key in subsystem.keys() {
                if let Some(value) = target.0.get(key.name) {
                    // Writing to a string cannot fail.
                    let _ = write!(text, " {}={}", key.name, quoted(value));
                }
            }
            text.push('\n');
        }
        for line in &self.refused {
            text.push_str(&line.text);
            text.push('\n');
        }
        text
    }

    /// Changes what lines of the form `notify_kafka:id key=value …` name, and nothing else.
    ///
    /// A key with an empty value is set back to its default. A target is enabled unless the line says `enable=off`. All
    /// lines are taken, or none: every target that is named has to be sound afterwards, together with what the
    /// environment sets of it. That it can be reached is not asked. What the environment has wrong is not held against
    /// a line, but told when the configuration is resolved.
    ///
    /// # Errors
    ///
    /// All that is wrong with the text, and with the targets that it names; or the configuration would be larger than
    /// [`from_text`](Self::from_text) reads.
    pub fn set(&mut self, text: &str, environment: &Environment) -> Result<Vec<Warning>, ConfigErrors> {
        let mut next = self.clone();
        let mut errors = Vec::new();
        let mut touched: BTreeMap<(Subsystem, TargetId), (usize, String)> = BTreeMap::new();
        for (number, line) in text::lines(text)? {
            match text::line(number, &line) {
                Err(refused) => errors.extend(refused.errors),
                Ok(line) => {
                    errors.extend(line_errors(&line, self, &touched));
                    let name = (line.target.subsystem, line.target.id.clone());
                    touched.insert(name, (number, line.target.written.clone()));
                    next.update(&line.target, line.pairs);
                }
            }
        }
        if errors.is_empty() && touched.is_empty() {
            let nothing = Finding::new("the text names no target");
            return Err(ConfigError::new(ConfigErrorKind::Syntax, nothing).into());
        }
        let mut warnings = Vec::new();
        if errors.is_empty() {
            for ((subsystem, id), (number, _)) in &touched {
                let (wrong, odd) = next.check(*subsystem, id, environment);
                errors.extend(wrong.into_iter().map(|error| error.at_line(*number)));
                warnings.extend(odd);
            }
        }
        ConfigErrors::check(errors)?;
        next.check_len()?;
        *self = next;
        Ok(warnings)
    }

    /// Removes a target, `notify_kafka:id`, or sets keys of it back to their defaults, `notify_kafka:id key key`.
    ///
    /// Whether bucket rules still name the target is for the caller to ask.
    ///
    /// # Errors
    ///
    /// There is no such target or key, or the target would be sound no more.
    pub fn reset(&mut self, text: &str, environment: &Environment) -> Result<(), ConfigErrors> {
        let (word, keys) = text::first_word(text);
        let target = text::target(word)?;
        let name = (target.subsystem, target.id.clone());
        let mut next = self.clone();
        if keys.is_empty() {
            next.refused.retain(|line| line.target.as_ref() != Some(&name));
            let had_refused = next.refused.len() < self.refused.len();
            if next.targets.remove(&name).is_none() && !had_refused {
                return Err(no_target(&target).into());
            }
            *self = next;
            return Ok(());
        }
        let (before, _) = self.check(name.0, &name.1, environment);
        let stored = next.targets.get_mut(&name).ok_or_else(|| no_target(&target))?;
        let mut errors = Vec::new();
        for word in keys.split_whitespace() {
            match target.subsystem.key(word) {
                None => errors.push(text::unknown_key(&target, word)),
                Some(key) if key.name == ENABLE.name => {
                    drop(stored.0.insert(key.name, ENABLE.default.into()));
                }
                Some(key) => drop(stored.0.remove(key.name)),
            }
        }
        // What was wrong before need not be mended by one command.
        if errors.is_empty() && before.is_empty() {
            errors = next.check(name.0, &name.1, environment).0;
        }
        ConfigErrors::check(errors)?;
        *self = next;
        Ok(())
    }

    /// The identifiers of the stored targets of a kind, also of those whose line could not be read.
    pub(super) fn ids(&self, kind: TargetKind) -> BTreeSet<TargetId> {
        let subsystem = Subsystem::Target(kind);
        let refused = self.refused.iter().filter_map(|line| line.target.as_ref());
        let names = self.targets.keys().chain(refused);
        names.filter(|(of, _)| *of == subsystem).map(|(_, id)| id.clone()).collect()
    }

    pub(super) fn values(&self, subsystem: Subsystem, id: &TargetId) -> Option<&Values> {
        self.targets.get(&(subsystem, id.clone())).map(|target| &target.0)
    }

    /// What could not be read of this target; of none, with `None`.
    pub(super) fn refused(
        &self,
        target: Option<(Subsystem, &TargetId)>,
    ) -> impl Iterator<Item = &ConfigError> {
        let is_of = move |line: &&RefusedLine| line.target.as_ref().map(|(of, id)| (*of, id)) == target;
        self.refused.iter().filter(is_of).flat_map(|line| &line.errors)
    }

    /// Takes over values; a target is enabled if they do not say otherwise.
    fn update(&mut self, target: &TargetName, pairs: Vec<(&'static Key, String)>) {
        let values = &mut self.targets.entry((target.subsystem, target.id.clone())).or_default().0;
        let mut is_told = false;
        for (key, value) in pairs {
            let is_enable = key.name == ENABLE.name;
            is_told |= is_enable;
            match (value.is_empty(), is_enable) {
                (false, _) => drop(values.insert(key.name, value)),
                (true, true) => drop(values.insert(key.name, ENABLE.default.into())),
                (true, false) => drop(values.remove(key.name)),
            }
        }
        if !is_told && matches!(target.subsystem, Subsystem::Target(_)) {
            values.insert(ENABLE.name, "on".into());
        }
    }

    /// Whether the text of it can be read again.
    fn check_len(&self) -> Result<(), ConfigErrors> {
        if self.targets.len() + self.refused.len() <= LINES_MAX && self.to_text().len() <= TEXT_LEN_MAX {
            return Ok(());
        }
        let reason =
            format!("the configuration would have more than {LINES_MAX} targets, or {TEXT_LEN_MAX} bytes");
        Err(ConfigError::new(ConfigErrorKind::TooLarge, Finding::new(reason)).into())
    }

    /// What is wrong and what is odd with a target, apart from what the environment has wrong.
    fn check(
        &self,
        subsystem: Subsystem,
        id: &TargetId,
        environment: &Environment,
    ) -> (Vec<ConfigError>, Vec<Warning>) {
        let Subsystem::Target(kind) = subsystem else { return (Vec::new(), Vec::new()) };
        let found = environment.targets(kind, &self.ids(kind));
        let settings =
            TargetSettings::new(kind, id.clone(), self.values(subsystem, id), found.targets.get(id));
        match check_target(&settings) {
            Ok((_, warnings)) => (Vec::new(), warnings),
            Err(errors) => {
                let is_stored = |error: &ConfigError| !matches!(error.place(), Some(Place::Variable(_)));
                (errors.into_iter().filter(is_stored).collect(), Vec::new())
            }
        }
    }
}

/// What is wrong with a line that can be read: alone, beside what is stored, and beside the lines before it.
fn line_errors(
    line: &text::Line,
    stored: &StoredConfig,
    before: &BTreeMap<(Subsystem, TargetId), (usize, String)>,
) -> Vec<ConfigError> {
    let (subsystem, id) = (line.target.subsystem, &line.target.id);
    let at = |finding: Finding| finding.at(Place::Line(line.number)).of(subsystem, id);
    let mut errors = Vec::new();
    if line.pairs.is_empty() {
        errors.push(ConfigError::new(ConfigErrorKind::Missing, at(Finding::new("the line sets no key"))));
    }
    if stored.refused(Some((subsystem, id))).next().is_some() {
        let reason = "what is stored of it cannot be read: reset it first";
        errors.push(ConfigError::new(ConfigErrorKind::Conflict, at(Finding::new(reason))));
    }
    if let Some((first, written)) = before.get(&(subsystem, id.clone()))
        && *written != line.target.written
    {
        let reason = format!("line {first} writes the identifier as `{written}`; both are one target");
        errors.push(ConfigError::new(ConfigErrorKind::Conflict, at(Finding::new(reason))));
    }
    for (key, value) in line.pairs.iter().filter(|(_, value)| !value.is_empty()) {
        if let Err(reason) = key.value.check(value) {
            let finding = at(Finding::new(reason).setting(key, value));
            errors.push(ConfigError::new(ConfigErrorKind::InvalidValue, finding));
        }
    }
    errors
}

fn no_target(target: &TargetName) -> ConfigError {
    let finding = Finding::new("there is no target of this name").of(target.subsystem, &target.id);
    ConfigError::new(ConfigErrorKind::UnknownTarget, finding)
}
