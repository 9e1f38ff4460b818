//! Why settings were refused, and where.

use std::fmt;

/// Why settings were refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    place: Place,
    message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Text { line: usize, column: usize },
    Key(&'static str),
    Nowhere,
}

impl SettingsError {
    pub(super) fn from_toml(text: &str, error: &toml::de::Error) -> Self {
        let before = error.span().and_then(|span| text.get(..span.start));
        let place = before.map_or(Place::Nowhere, |before| {
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            let column =
                before.chars().count() - before.get(..line_start).map_or(0, |head| head.chars().count());
            Place::Text { line: before.matches('\n').count() + 1, column: column + 1 }
        });
        Self { place, message: error.message().to_owned() }
    }

    pub(super) fn invalid(key: &'static str, rule: &'static str) -> Self {
        Self { place: Place::Key(key), message: rule.to_owned() }
    }

    /// Line of the text, from 1.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self.place {
            Place::Text { line, .. } => Some(line),
            Place::Key(_) | Place::Nowhere => None,
        }
    }

    /// Column in the line, in characters from 1.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        match self.place {
            Place::Text { column, .. } => Some(column),
            Place::Key(_) | Place::Nowhere => None,
        }
    }

    /// The key whose value cannot work.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        match self.place {
            Place::Key(key) => Some(key),
            Place::Text { .. } | Place::Nowhere => None,
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Text { line, column } => write!(f, "line {line}, column {column}: {}", self.message),
            Place::Key(key) => write!(f, "`{key}`: {}", self.message),
            Place::Nowhere => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for SettingsError {}
