//! What a region's name may be.

/// `[a-zA-Z][a-zA-Z0-9_-]+`, at most [`REGION_LEN_MAX`] bytes.
pub(super) fn is_region(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && (2..=REGION_LEN_MAX).contains(&text.len())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

pub(super) const REGION_LEN_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_begins_with_a_letter_and_has_another_character() {
        for region in ["us-east-1", "EU", "a_", "x9"] {
            assert!(is_region(region), "{region}");
        }
        for text in ["", "a", "1a", "-a", "a b", "a:b", "é1", &"x".repeat(REGION_LEN_MAX + 1)] {
            assert!(!is_region(text), "{text}");
        }
    }
}
