//! The environment variables that configure targets.
//!
//! A variable is `MINIO_` or `KOLUMN_`, the sub-system, the key, and `_` with the identifier, which the default target
//! has not: `MINIO_NOTIFY_KAFKA_BROKERS_PRIMARY`. Of both prefixes `KOLUMN_` counts more. A value is trimmed, and one
//! pair of quotes around it is left out, because the readers of some files leave them there; an empty one is none.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;

use super::error::{ConfigError, ConfigErrorKind, Finding, Place, Warning, shortened};
use super::keys::{Key, Subsystem};
use super::suggest::nearest;
use super::{TargetId, TargetKind};

/// The variables that are of interest here, taken out of an environment.
///
/// ```
/// use kolumn_notify::config::Environment;
///
/// let environment = Environment::new([("MINIO_NOTIFY_KAFKA_ENABLE_PRIMARY", "on"), ("HOME", "/root")]);
/// assert_eq!(environment.names().collect::<Vec<_>>(), ["MINIO_NOTIFY_KAFKA_ENABLE_PRIMARY"]);
/// ```
#[derive(Clone, Default)]
pub struct Environment {
    /// By whole name; the value is `None` if it is not Unicode.
    variables: BTreeMap<String, Option<String>>,
}

impl Environment {
    /// Keeps what this crate reads, for example of `std::env::vars_os()`.
    pub fn new<K: Into<OsString>, V: Into<OsString>>(variables: impl IntoIterator<Item = (K, V)>) -> Self {
        let singles: BTreeSet<String> = [Subsystem::Site, Subsystem::Api]
            .into_iter()
            .flat_map(|subsystem| subsystem.keys().flat_map(move |key| subsystem.variables(key)))
            .collect();
        let mut kept = BTreeMap::new();
        for (name, value) in variables {
            let Ok(name) = name.into().into_string() else { continue };
            let is_read = without_prefix(&name)
                .is_some_and(|(_, stem)| stem.starts_with("NOTIFY_") || singles.contains(stem));
            let value = value.into().into_string().ok().map(|value| cleaned(&value).to_owned());
            if is_read && value.as_deref() != Some("") {
                kept.insert(name, value);
            }
        }
        Self { variables: kept }
    }

    /// The names of what is kept, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// The value of a key of a sub-system without identifiers.
    pub(super) fn single(&self, subsystem: Subsystem) -> EnvironmentValues {
        let mut values = EnvironmentValues::default();
        for key in subsystem.keys() {
            let names: Vec<String> = subsystem.variables(key).collect();
            for name in
                PREFIXES.iter().flat_map(|prefix| names.iter().map(move |name| format!("{prefix}{name}")))
            {
                if let Some(value) = self.variables.get(&name) {
                    values.add(subsystem, &TargetId::default_target(), key, &name, value.as_deref());
                }
            }
        }
        values
    }

    /// What is set of targets of this kind, and what seems to be meant for some but is not read.
    ///
    /// There are the targets for which a variable `ENABLE` is set, and those of `stored`. A name is read in such a way
    /// that it belongs to one of these, by the longest key for which it does.
    pub(super) fn targets(&self, kind: TargetKind, stored: &BTreeSet<TargetId>) -> TargetsInEnvironment {
        let subsystem = Subsystem::Target(kind);
        let stem = subsystem.variable_stem();
        let ends = Ends::of(subsystem, &stem);
        let mut found = TargetsInEnvironment::default();
        let ours: Vec<Variable<'_>> = self
            .variables
            .iter()
            .filter_map(|(name, value)| Variable::new(name, value.as_deref(), &stem))
            .collect();
        for id in stored {
            found.targets.insert(id.clone(), EnvironmentValues::default());
        }
        for variable in &ours {
            if let Some(id) = variable.id_after("ENABLE") {
                match id.parse() {
                    Ok(id) => drop(found.targets.entry(id).or_default()),
                    Err(reason) => found.errors.push(ConfigError::new(
                        ConfigErrorKind::Syntax,
                        Finding::new(format!("in the name of the variable, {reason}")).at(variable.place()),
                    )),
                }
            }
        }
        // In the order in which they count, so that the first value of a key is the one that holds.
        let mut assigned: Vec<Assigned<'_>> = Vec::new();
        for variable in &ours {
            match ends.assign(variable, &found.targets) {
                Some(one) if found.targets.contains_key(&one.id) => assigned.push(one),
                other => {
                    found.warnings.push(unread(variable, subsystem, other.as_ref(), &ends, &found.targets));
                }
            }
        }
        assigned.sort_by_key(|one| (one.variable.rank, one.order));
        for one in assigned {
            if let Some(values) = found.targets.get_mut(&one.id) {
                values.note_spelling(subsystem, &one);
                values.add(subsystem, &one.id, one.key, one.variable.name, one.variable.value);
            }
        }
        found
    }

    /// Variables of targets of no kind that there is.
    pub(super) fn strangers(&self) -> impl Iterator<Item = Warning> {
        let stems: Vec<String> =
            TargetKind::ALL.iter().map(|kind| Subsystem::Target(*kind).variable_stem()).collect();
        self.names().filter_map(move |name| {
            let (_, stem) = without_prefix(name)?;
            let is_stranger =
                stem.starts_with("NOTIFY_") && !stems.iter().any(|known| stem.starts_with(known));
            is_stranger.then(|| {
                let reason = "it is not read: there is no such kind of target";
                Warning::new(Finding::new(reason).at(Place::Variable(shortened(name))))
            })
        })
    }
}

/// Names only.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Environment").field(&self.variables.keys()).finish()
    }
}

/// The targets of one kind that there are, with what the environment sets of them.
#[derive(Debug, Default)]
pub(super) struct TargetsInEnvironment {
    pub(super) targets: BTreeMap<TargetId, EnvironmentValues>,
    pub(super) errors: Vec<ConfigError>,
    pub(super) warnings: Vec<Warning>,
}

/// What the environment sets of one target.
#[derive(Debug, Clone, Default)]
pub(super) struct EnvironmentValues {
    values: BTreeMap<&'static str, EnvironmentValue>,
    pub(super) errors: Vec<ConfigError>,
    pub(super) warnings: Vec<Warning>,
    /// The identifier as the first variable has it, and that variable.
    spelling: Option<(String, String)>,
}

/// A value and the variable that it is of.
#[derive(Clone)]
pub(super) struct EnvironmentValue {
    pub(super) variable: String,
    pub(super) value: String,
}

impl fmt::Debug for EnvironmentValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.variable)
    }
}

impl EnvironmentValues {
    pub(super) fn get(&self, key: &str) -> Option<&EnvironmentValue> {
        self.values.get(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds a value that counts less than those that are there.
    fn add(&mut self, subsystem: Subsystem, id: &TargetId, key: &Key, variable: &str, value: Option<&str>) {
        let place = Place::Variable(variable.into());
        let finding = |reason: String| Finding::new(reason).at(place).of(subsystem, id).key(key.name);
        match (self.values.get(key.name), value) {
            (_, None) => {
                let finding = finding("the value is not Unicode".into());
                self.errors.push(ConfigError::new(ConfigErrorKind::InvalidValue, finding));
            }
            (Some(first), Some(value)) if first.value != value => {
                let reason = format!("it is not used, because `{}` sets the same key", first.variable);
                self.warnings.push(Warning::new(finding(reason)));
            }
            (Some(_), Some(_)) => {}
            (None, Some(value)) => {
                let value = EnvironmentValue { variable: variable.into(), value: value.into() };
                self.values.insert(key.name, value);
            }
        }
    }

    /// Refuses the target if variables write its identifier in different ways: two targets may be meant.
    fn note_spelling(&mut self, subsystem: Subsystem, one: &Assigned<'_>) {
        let name = one.variable.name;
        match &self.spelling {
            None => self.spelling = Some((one.written.into(), name.into())),
            Some((written, _)) if written == one.written => {}
            Some((written, first)) => {
                let reason = format!(
                    "`{first}` writes the identifier as `{written}`; identifiers that differ only in case are one target"
                );
                let finding = Finding::new(reason).at(Place::Variable(name.into())).of(subsystem, &one.id);
                self.errors.push(ConfigError::new(ConfigErrorKind::Conflict, finding));
            }
        }
    }
}

/// A variable of one kind of target.
struct Variable<'a> {
    /// The index of its prefix; the lower one counts more.
    rank: usize,
    name: &'a str,
    /// Key and identifier.
    end: &'a str,
    value: Option<&'a str>,
}

impl<'a> Variable<'a> {
    fn new(name: &'a str, value: Option<&'a str>, stem: &str) -> Option<Self> {
        let (rank, rest) = without_prefix(name)?;
        Some(Self { rank, name, end: rest.strip_prefix(stem)?, value })
    }

    /// The identifier that follows this key, that of the default target if there is none.
    fn id_after(&self, key: &str) -> Option<&'a str> {
        match self.end.strip_prefix(key)? {
            "" => Some("_"),
            rest => rest.strip_prefix('_'),
        }
    }

    fn place(&self) -> Place {
        Place::Variable(shortened(self.name))
    }
}

/// A variable that is read as key and identifier.
struct Assigned<'a> {
    variable: &'a Variable<'a>,
    key: &'static Key,
    /// Which of the variables of the key it is.
    order: usize,
    id: TargetId,
    written: &'a str,
}

/// How variables of one kind of target end: each key, with which of its names it is.
struct Ends(Vec<(String, &'static Key, usize)>);

impl Ends {
    fn of(subsystem: Subsystem, stem: &str) -> Self {
        let mut ends = Vec::new();
        for key in subsystem.keys() {
            for (order, name) in subsystem.variables(key).enumerate() {
                ends.push((name.strip_prefix(stem).unwrap_or(&name).into(), key, order));
            }
        }
        Self(ends)
    }

    /// The reading of a name that belongs to a target that there is, else the one with the longest key.
    fn assign<'a>(
        &self,
        variable: &'a Variable<'a>,
        targets: &BTreeMap<TargetId, EnvironmentValues>,
    ) -> Option<Assigned<'a>> {
        let readings = self.0.iter().filter_map(|(end, key, order)| {
            let written = variable.id_after(end)?;
            let id: TargetId = written.parse().ok()?;
            Some((end.len(), Assigned { variable, key, order: *order, id, written }))
        });
        let best = readings.max_by_key(|(len, one)| (targets.contains_key(&one.id), *len));
        best.map(|(_, one)| one)
    }
}

/// Why a variable is not read.
fn unread(
    variable: &Variable<'_>,
    subsystem: Subsystem,
    reading: Option<&Assigned<'_>>,
    ends: &Ends,
    targets: &BTreeMap<TargetId, EnvironmentValues>,
) -> Warning {
    let finding = if let Some(one) = reading {
        let enable = if one.id.is_default() { "ENABLE".into() } else { format!("ENABLE_{}", one.written) };
        let reason = format!(
            "it is not read: `{enable}` is not set for this target, which is not in the stored configuration either"
        );
        Finding::new(reason).of(subsystem, &one.id).key(one.key.name)
    } else {
        let mut known: Vec<String> = ends.0.iter().map(|(end, ..)| end.clone()).collect();
        let with_ids = |id: &TargetId| {
            let id = id.as_str().to_uppercase();
            ends.0.iter().map(move |(end, ..)| format!("{end}_{id}")).collect::<Vec<_>>()
        };
        known.extend(
            targets.keys().filter(|id| !id.is_default()).take(TARGETS_SUGGESTED_MAX).flat_map(with_ids),
        );
        let meant = nearest(variable.end, known.iter().map(String::as_str));
        let meant = meant.map(|end| format!("; did you mean `…{end}`?")).unwrap_or_default();
        Finding::new(format!("it is not read: `{subsystem}` has no such key{meant}"))
    };
    Warning::new(finding.at(variable.place()))
}

/// The index of the prefix, and the rest of the name.
fn without_prefix(name: &str) -> Option<(usize, &str)> {
    PREFIXES.iter().enumerate().find_map(|(rank, prefix)| Some((rank, name.strip_prefix(prefix)?)))
}

/// Without blanks around it, then without one pair of quotes.
fn cleaned(value: &str) -> &str {
    let value = value.trim();
    let unquoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    unquoted('"').or_else(|| unquoted('\'')).unwrap_or(value)
}

/// The first counts most.
const PREFIXES: [&str; 2] = ["KOLUMN_", "MINIO_"];
const TARGETS_SUGGESTED_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_cleaned(value: &str, expect: &str) {
        assert_eq!(cleaned(value), expect, "{value:?}");
    }

    #[test]
    fn a_value_loses_blanks_and_one_pair_of_quotes() {
        check_cleaned(" on\r\n", "on");
        check_cleaned("\"on\"", "on");
        check_cleaned("'on'", "on");
        check_cleaned("\"\"on\"\"", "\"on\"");
        check_cleaned("\"on'", "\"on'");
        check_cleaned("\"", "\"");
        check_cleaned("\" on \"", " on ");
        check_cleaned("\"\"", "");
    }

    #[test]
    fn only_what_is_read_is_kept_and_no_value_is_shown() {
        let environment = Environment::new([
            ("MINIO_ROOT_PASSWORD", "hunter2"),
            ("MINIO_NOTIFY_KAFKA_SASL_PASSWORD", "hunter2"),
            ("MINIO_NOTIFY_KAFKA_TOPIC", " "),
            ("KOLUMN_REGION", "eu"),
            ("MINIO_API_SYNC_EVENTS", "on"),
            ("XMINIO_NOTIFY_KAFKA_TOPIC", "t"),
            ("minio_notify_kafka_topic", "t"),
        ]);
        assert_eq!(
            format!("{environment:?}"),
            "Environment([\"KOLUMN_REGION\", \"MINIO_API_SYNC_EVENTS\", \"MINIO_NOTIFY_KAFKA_SASL_PASSWORD\"])"
        );
    }

    #[track_caller]
    fn check(names: &[&str], stored: &[&str], expect: &[(&str, &[&str])], warnings: usize) {
        let environment = Environment::new(names.iter().map(|name| (*name, "x")));
        let stored = stored.iter().map(|id| id.parse().unwrap()).collect();
        let found = environment.targets(TargetKind::Kafka, &stored);
        let keys = |values: &EnvironmentValues| values.values.keys().copied().collect::<Vec<_>>();
        let read: Vec<_> = found.targets.iter().map(|(id, values)| (id.as_str(), keys(values))).collect();
        let expect: Vec<_> = expect.iter().map(|(id, keys)| (*id, keys.to_vec())).collect();
        assert_eq!(read, expect);
        assert_eq!(found.warnings.len(), warnings, "{:?}", found.warnings);
    }

    #[test]
    fn a_name_is_read_by_the_longest_key_that_fits_a_target() {
        let skip = "MINIO_NOTIFY_KAFKA_TLS_SKIP_VERIFY_X";
        check(&["MINIO_NOTIFY_KAFKA_ENABLE_X", skip], &[], &[("x", &["enable", "tls_skip_verify"])], 0);
        check(
            &["MINIO_NOTIFY_KAFKA_ENABLE_SKIP_VERIFY_X", skip],
            &[],
            &[("skip_verify_x", &["enable", "tls"])],
            0,
        );
        check(
            &["MINIO_NOTIFY_KAFKA_ENABLE_SKIP_VERIFY_X", "MINIO_NOTIFY_KAFKA_ENABLE_X", skip],
            &[],
            &[("skip_verify_x", &["enable"]), ("x", &["enable", "tls_skip_verify"])],
            0,
        );
        check(
            &["MINIO_NOTIFY_KAFKA_ENABLE", "MINIO_NOTIFY_KAFKA_TOPIC"],
            &[],
            &[("_", &["enable", "topic"])],
            0,
        );
    }

    #[test]
    fn only_enable_and_the_stored_configuration_make_targets() {
        check(&["MINIO_NOTIFY_KAFKA_BROKERS_X", "MINIO_NOTIFY_KAFKA_TOPIC"], &[], &[], 2);
        check(&["MINIO_NOTIFY_KAFKA_BROKERS_X"], &["x"], &[("x", &["brokers"])], 0);
        check(&["MINIO_NOTIFY_KAFKA_ENABLED"], &[], &[], 1);
    }

    #[test]
    fn a_misspelled_variable_is_not_read_and_the_right_one_suggested() {
        let environment = Environment::new([
            ("MINIO_NOTIFY_KAFKA_ENABLE_PRIMARY", "on"),
            ("MINIO_NOTIFY_KAFKA_QUEUEDIR_PRIMARY", "/q"),
            ("MINIO_NOTIFY_KAFKA_TOPIC_OTHER", "t"),
        ]);
        let found = environment.targets(TargetKind::Kafka, &BTreeSet::new());
        let warnings: Vec<_> = found.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "MINIO_NOTIFY_KAFKA_QUEUEDIR_PRIMARY: it is not read: `notify_kafka` has no such key; did you mean \
                 `…QUEUE_DIR_PRIMARY`?",
                "MINIO_NOTIFY_KAFKA_TOPIC_OTHER: key `topic` of `notify_kafka:other`: it is not read: `ENABLE_OTHER` is \
                 not set for this target, which is not in the stored configuration either",
            ]
        );
    }
}
