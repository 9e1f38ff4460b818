//! The variables of a session that PostgreSQL's clients set and ask for. Few of them have an effect here.

use std::collections::BTreeMap;
use std::time::Duration;

use super::refusal::{Refusal, state};
use super::value::ByteaOutput;

/// The variables with the values that they have in this session.
#[derive(Debug)]
pub(crate) struct Variables {
    values: BTreeMap<&'static str, String>,
    defaults: BTreeMap<&'static str, String>,
}

impl Variables {
    /// The variables as a session begins with them.
    pub(crate) fn new(user: &str, search_path: &str) -> Self {
        let mut defaults: BTreeMap<_, _> =
            DEFAULTS.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        defaults.insert("server_version", server_version());
        defaults.insert("session_authorization", user.to_owned());
        defaults.insert("search_path", search_path.to_owned());
        Self { values: defaults.clone(), defaults }
    }

    /// What a client has to be told at the start, and when it changes.
    pub(crate) fn reported(&self) -> impl Iterator<Item = (&'static str, &str)> {
        REPORTED.iter().filter_map(|name| Some((*name, self.values.get(name)?.as_str())))
    }

    /// The value of a variable, if it is known; the name is in any case.
    pub(crate) fn get(&self, name: &str) -> Option<(&'static str, &str)> {
        let (name, value) = self.values.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some((*name, value))
    }

    /// All variables, sorted.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Sets a variable, to `None` for its default. Returns its name and value if the client has to be told; `None` for the
    /// whole if there is no such variable.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Option<Result<Report, Refusal>> {
        let (name, _) = self.get(name)?;
        if FIXED.contains(&name) && value.is_some() {
            let text = format!("parameter `{name}` cannot be changed");
            return Some(Err(Refusal::error("55P02", text)));
        }
        let value = match value {
            Some(value) if name == "search_path" => {
                let default = self.defaults.get(name).map_or("", |path| path.trim_matches('"'));
                if !is_path(value, default) {
                    let text =
                        format!("`search_path` cannot be `{value}`: write the schema before the table");
                    return Some(Err(Refusal::error(state::FEATURE_NOT_SUPPORTED, text)));
                }
                value.to_owned()
            }
            Some(value) => match checked(name, value) {
                Ok(value) => value,
                Err(refusal) => return Some(Err(refusal)),
            },
            None => self.defaults.get(name).cloned().unwrap_or_default(),
        };
        self.values.insert(name, value.clone());
        Some(Ok(REPORTED.contains(&name).then_some((name, value))))
    }

    /// Sets all variables to their defaults.
    pub(crate) fn reset(&mut self) {
        self.values.clone_from(&self.defaults);
    }

    /// Makes the present value of a variable the one that `RESET` goes back to.
    pub(crate) fn keep(&mut self, name: &str, value: &str) {
        if let Some(Ok(_)) = self.set(name, Some(value))
            && let Some((name, value)) = self.get(name)
        {
            self.defaults.insert(name, value.to_owned());
        }
    }

    /// How long a statement may take, if there is a limit.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        let value = self.values.get("statement_timeout")?;
        duration(value).filter(|limit| !limit.is_zero())
    }

    /// How bytes are shown.
    pub(crate) fn bytea_output(&self) -> ByteaOutput {
        match self.values.get("bytea_output").map(String::as_str) {
            Some("escape") => ByteaOutput::Escape,
            _ => ByteaOutput::Hex,
        }
    }
}

/// A time as PostgreSQL's variables have it: milliseconds, or with a unit. `None` if it is not one; zero is one.
fn duration(value: &str) -> Option<Duration> {
    let value = value.trim();
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at_checked(digits)?;
    let millis = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.parse::<u64>().ok()?.saturating_mul(millis)))
}

/// The name and value of a variable that the client has to be told of.
pub(crate) type Report = Option<(&'static str, String)>;

/// What `version()` answers.
pub(crate) fn version() -> String {
    format!("PostgreSQL {} compatible", server_version())
}

/// Clients read the number before the blank.
fn server_version() -> String {
    format!("15.0 (kolumn {})", env!("CARGO_PKG_VERSION"))
}

/// Whether names without a schema mean the same with this search path: schemas that never are here are passed over.
fn is_path(path: &str, default: &str) -> bool {
    path.split(',')
        .map(|schema| schema.trim().trim_matches(['"', '\'']))
        .all(|schema| schema == default || matches!(schema, "$user" | "public" | "pg_catalog"))
}

fn checked(name: &str, value: &str) -> Result<String, Refusal> {
    // some clients quote what they send when they connect
    let lower = value.trim_matches('\'').to_ascii_lowercase();
    let fits = match name {
        "client_encoding" => {
            if matches!(lower.as_str(), "utf8" | "utf-8" | "unicode" | "auto") {
                return Ok("UTF8".to_owned());
            }
            false
        }
        "DateStyle" => {
            let iso = lower.split(',').all(|part| matches!(part.trim(), "iso" | "mdy" | "dmy" | "ymd"));
            if iso {
                return Ok("ISO, MDY".to_owned());
            }
            false
        }
        "statement_timeout" => duration(value).is_some(),
        "IntervalStyle" => lower == "postgres",
        "standard_conforming_strings" => matches!(lower.as_str(), "on" | "true" | "yes" | "1"),
        "bytea_output" => {
            if matches!(lower.as_str(), "hex" | "escape") {
                return Ok(lower);
            }
            false
        }
        _ => true,
    };
    if fits {
        Ok(value.to_owned())
    } else {
        let text = format!("`{name}` cannot be `{value}` here");
        Err(Refusal::error(state::INVALID_PARAMETER_VALUE, text))
    }
}

/// Told to the client, as PostgreSQL does.
const REPORTED: &[&str] = &[
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "application_name",
    "client_encoding",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
];

const FIXED: &[&str] = &[
    "in_hot_standby",
    "integer_datetimes",
    "is_superuser",
    "max_identifier_length",
    "max_index_keys",
    "server_encoding",
    "server_version",
    "server_version_num",
];

const DEFAULTS: &[(&str, &str)] = &[
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("application_name", ""),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("client_min_messages", "notice"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "on"),
    ("extra_float_digits", "1"),
    ("idle_in_transaction_session_timeout", "0"),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("is_superuser", "off"),
    ("jit", "off"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("lc_messages", "C"),
    ("lc_monetary", "C"),
    ("lc_numeric", "C"),
    ("lc_time", "C"),
    ("lock_timeout", "0"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("row_security", "on"),
    ("server_encoding", "UTF8"),
    ("server_version_num", "150000"),
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "0"),
    ("synchronize_seqscans", "on"),
    ("transaction_deferrable", "off"),
    ("transaction_isolation", "read committed"),
    ("transaction_read_only", "on"),
];
