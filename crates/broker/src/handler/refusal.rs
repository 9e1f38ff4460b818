//! Why something that was asked for was not done: a code for the client, a text for people.

use kolumn_kafka_wire::{ErrorCode, Str};

#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) code: ErrorCode,
    text: String,
}

impl Refusal {
    pub(super) fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.len() > TEXT_LEN_MAX {
            text.truncate(text.floor_char_boundary(TEXT_LEN_MAX));
            text.push('…');
        }
        Self { code, text }
    }

    pub(super) fn invalid_request(text: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, text)
    }

    pub(super) fn into_text(self) -> Str<'static> {
        Str::from(self.text)
    }
}

/// Texts repeat what the client wrote; the answer's fields take less than a request can hold.
const TEXT_LEN_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Refusal::invalid_request(text).into_text(), *expected);
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        check("short", "short");
        check(&"x".repeat(1_000), &"x".repeat(1_000));
        check(&"x".repeat(1_001), &format!("{}…", "x".repeat(1_000)));
        check(&format!("x{}", "ä".repeat(500)), &format!("x{}…", "ä".repeat(499)));
    }
}
