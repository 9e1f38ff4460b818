//! Text that is not shown.

use std::fmt;

/// A password, token or the like. `Debug` does not show it, and there is no `Display`.
#[derive(Clone, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Takes charge of a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for whom it is meant.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Takes the same time wherever the two differ; only their lengths show.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.0.as_bytes(), other.0.as_bytes());
        let difference = a.iter().zip(b).fold(0, |all, (x, y)| all | (x ^ y));
        a.len() == b.len() && std::hint::black_box(difference) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_compared_but_not_shown() {
        let secret = Secret::new("correct horse");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_eq!(secret, Secret::new("correct horse"));
        for other in ["", "correct", "correct hors!", "correct horse!"] {
            assert_ne!(secret, Secret::new(other));
        }
    }
}
