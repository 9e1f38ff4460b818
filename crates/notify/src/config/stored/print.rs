//! The answer to `get`, in the two forms that `MinIO`'s documents have.

use std::fmt::Write as _;

use super::super::environment::EnvironmentValues;
use super::super::keys::{ENABLE, Key, Sensitivity, Subsystem};
use super::super::text::{self, quoted, quoted_if_needed};
use super::super::{ConfigErrors, Environment, TargetId};
use super::{StoredConfig, Values, no_target};

/// How [`StoredConfig::get`] prints. Both forms are lines that `set` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OutputStyle {
    /// As `MinIO`'s last release prints: quotes only where there are blanks, no `enable=on`, the default target always.
    #[default]
    Current,
    /// As `MinIO`'s documents show it: every value in quotes, the keys of Kafka in the order that stands there.
    Documented,
}

impl StoredConfig {
    /// What is configured of `notify_kafka` (all targets), `notify_kafka:` (the default one) or `notify_kafka:id`.
    ///
    /// Variables that are set stand in comments before the line of their target, because they count more. A secret that
    /// is set is left out.
    ///
    /// # Errors
    ///
    /// There is no such sub-system, or no such target.
    pub fn get(
        &self,
        selector: &str,
        environment: &Environment,
        style: OutputStyle,
    ) -> Result<String, ConfigErrors> {
        let selector = selector.trim();
        let target = text::target(selector)?;
        let subsystem = target.subsystem;
        let mut out = String::new();
        let Subsystem::Target(kind) = subsystem else {
            let id = TargetId::default_target();
            self.print(&mut out, subsystem, &id, Some(&environment.single(subsystem)), style);
            return Ok(out);
        };
        let found = environment.targets(kind, &self.ids(kind));
        let print =
            |out: &mut String, id: &TargetId| self.print(out, subsystem, id, found.targets.get(id), style);
        if selector.contains(':') {
            if !target.id.is_default() && !found.targets.contains_key(&target.id) {
                return Err(no_target(&target).into());
            }
            print(&mut out, &target.id);
            return Ok(out);
        }
        let default = TargetId::default_target();
        if style == OutputStyle::Current && !found.targets.contains_key(&default) {
            print(&mut out, &default);
        }
        for id in found.targets.keys() {
            print(&mut out, id);
        }
        Ok(out)
    }

    /// One target: its variables, why its line is refused, and its line.
    fn print(
        &self,
        out: &mut String,
        subsystem: Subsystem,
        id: &TargetId,
        variables: Option<&EnvironmentValues>,
        style: OutputStyle,
    ) {
        for key in subsystem.keys() {
            if let Some(found) = variables.and_then(|variables| variables.get(key.name)) {
                let value = if key.sensitivity == Sensitivity::Secret { "*redacted*" } else { &found.value };
                comment(out, &format!("{}={value}", found.variable));
            }
        }
        let mut is_refused = false;
        for error in self.refused(Some((subsystem, id))) {
            is_refused = true;
            comment(out, &format!("refused: {error}"));
        }
        if is_refused {
            return;
        }
        out.push_str(&subsystem.with_id(id));
        out.push(' ');
        let stored = self.values(subsystem, id);
        let is_printed = stored.is_some() || variables.is_none_or(EnvironmentValues::is_empty);
        if is_printed {
            let none = Values::new();
            let values = stored.unwrap_or(&none);
            match style {
                OutputStyle::Current => current(out, subsystem, values),
                OutputStyle::Documented => documented(out, subsystem, values),
            }
        }
        out.push('\n');
    }
}

/// `key=value ` for each key that is `MinIO`'s, and for those of the others that are set.
fn current(out: &mut String, subsystem: Subsystem, values: &Values) {
    for key in subsystem.keys() {
        let value = values.get(key.name).map_or(key.default, String::as_str);
        let is_seldom = key.is_own || key.name == "comment";
        let is_left_out = is_hidden(key, value)
            || (is_seldom && !values.contains_key(key.name))
            || (key.name == ENABLE.name && matches!(subsystem, Subsystem::Target(_)) && value == "on");
        if !is_left_out {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}={} ", key.name, quoted_if_needed(value));
        }
    }
}

/// `key="value"` for each key that stands in `MinIO`'s documents, and for those of the others that are set.
fn documented(out: &mut String, subsystem: Subsystem, values: &Values) {
    let is_kafka = subsystem.keys().any(|key| key.name == "brokers");
    let shown: Vec<&Key> = if is_kafka {
        DOCUMENTED.iter().filter_map(|name| subsystem.key(name)).collect()
    } else {
        subsystem
            .keys()
            .filter(|key| !key.is_own && key.name != "comment" && key.name != ENABLE.name)
            .collect()
    };
    let set = subsystem.keys().filter(|key| {
        let is_default = values.get(key.name).is_none_or(|value| key.name == ENABLE.name && value == "on");
        !is_default && !shown.iter().any(|other| other.name == key.name)
    });
    let mut blank = "";
    for key in shown.iter().copied().chain(set) {
        let value = values.get(key.name).map_or(key.default, String::as_str);
        if !is_hidden(key, value) {
            let _ = write!(out, "{blank}{}={}", key.name, quoted(value));
            blank = " ";
        }
    }
}

fn is_hidden(key: &Key, value: &str) -> bool {
    key.sensitivity == Sensitivity::Secret && !value.is_empty()
}

/// A line that no reader takes for more than a comment, whatever a variable has in it.
fn comment(out: &mut String, text: &str) {
    out.push_str("# ");
    out.extend(text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }));
    out.push('\n');
}

const DOCUMENTED: &[&str] = &[
    "tls_skip_verify",
    "queue_dir",
    "queue_limit",
    "sasl",
    "sasl_password",
    "sasl_username",
    "tls_client_auth",
    "tls",
    "brokers",
    "topic",
    "client_tls_cert",
    "client_tls_key",
    "version",
];
