//! Which keys a rule is about: those with a prefix and a suffix.

use super::error::{RuleError, RuleErrorKind, quoted};

/// A prefix and a suffix that a key has to have, each of which may be empty. Both are literal: `*` and `?` are themselves.
///
/// They may overlap in the key, as in AWS: prefix `abc` and suffix `bc` match the key `abc`.
///
/// ```
/// use kolumn_notify::rules::KeyFilter;
///
/// let filter = KeyFilter::new("images/", ".jpg")?;
/// assert!(filter.matches("images/a b.jpg"));
/// assert!(!filter.matches("images%2Fa+b.jpg"), "keys are compared raw, not as events write them");
/// # Ok::<(), kolumn_notify::rules::RuleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeyFilter {
    prefix: String,
    suffix: String,
}

impl KeyFilter {
    /// The most bytes of a prefix or suffix, which are also the most of a key.
    pub const VALUE_LEN_MAX: usize = 1024;

    /// The filter of keys that start with `prefix` and end with `suffix`.
    ///
    /// # Errors
    ///
    /// [`RuleErrorKind::FilterValue`] if either has more than [`VALUE_LEN_MAX`](Self::VALUE_LEN_MAX) bytes, a
    /// backslash, a segment `.` or `..`, or a character that XML cannot carry.
    pub fn new(prefix: impl Into<String>, suffix: impl Into<String>) -> Result<Self, RuleError> {
        let filter = Self { prefix: prefix.into(), suffix: suffix.into() };
        check_value(&filter.prefix)?;
        check_value(&filter.suffix)?;
        Ok(filter)
    }

    /// What keys start with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What keys end with.
    #[must_use]
    pub fn suffix(&self) -> &str {
        &self.suffix
    }

    /// Whether every key passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prefix.is_empty() && self.suffix.is_empty()
    }

    /// Whether the key, as it was stored and not as events encode it, has the prefix and the suffix.
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        key.starts_with(&self.prefix) && key.ends_with(&self.suffix)
    }

    /// Whether there is a key that passes both filters: one prefix begins with the other, and one suffix ends with
    /// the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        (self.prefix.starts_with(&other.prefix) || other.prefix.starts_with(&self.prefix))
            && (self.suffix.ends_with(&other.suffix) || other.suffix.ends_with(&self.suffix))
    }

    /// The values that are not empty, under the names that both dialects take.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("prefix", &*self.prefix), ("suffix", &*self.suffix)]
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
    }
}

/// Refuses what no key has, rather than to keep a rule that never matches.
fn check_value(value: &str) -> Result<(), RuleError> {
    let refuse = |why: String| Err(RuleError::new(RuleErrorKind::FilterValue, why));
    if value.len() > KeyFilter::VALUE_LEN_MAX {
        let len = value.len();
        return refuse(format!(
            "Size of filter rule value cannot exceed 1024 bytes in UTF-8 representation: {len}"
        ));
    }
    if value.contains('\\') {
        return refuse(format!("it has a backslash: {}", quoted(value)));
    }
    if value.split('/').any(|segment| segment == "." || segment == "..") {
        return refuse(format!("it has a segment `.` or `..`: {}", quoted(value)));
    }
    if let Some(c) = forbidden_in_xml(value) {
        return refuse(format!("XML cannot carry the character {c:?}: {}", quoted(value)));
    }
    Ok(())
}

/// A character that XML 1.0 has no way to write: it could be taken in JSON, but never be given back to an S3 client.
///
/// `Char ::= #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF]`
pub(super) fn forbidden_in_xml(text: &str) -> Option<char> {
    text.chars().find(
        |c| matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}'),
    )
}
