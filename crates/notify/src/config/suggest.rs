//! Which known word was probably meant.

/// The known word that is nearest to `word`, if one is near enough to be a slip of the fingers.
///
/// Words that differ only in case, or in `-` and `_`, are the same word here.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = normal(word);
    if word.len() > WORD_LEN_MAX {
        return None;
    }
    let distance_max = (word.len() / 3).min(DISTANCE_MAX);
    known
        .into_iter()
        .map(|candidate| (distance(&word, &normal(candidate)), candidate))
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether the two are one word but for case and the kind of dash.
pub(super) fn is_same_word(a: &str, b: &str) -> bool {
    normal(a) == normal(b)
}

fn normal(word: &str) -> Vec<u8> {
    word.bytes().filter(|b| *b != b'-' && *b != b'_').map(|b| b.to_ascii_lowercase()).collect()
}

/// The least number of bytes to insert, remove or replace (Levenshtein), by rows of the usual table.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b) {
            let replaced = diagonal + usize::from(x != y);
            diagonal = *cell;
            *cell = replaced.min(left + 1).min(*cell + 1);
            left = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(a.len())
}

const DISTANCE_MAX: usize = 3;
const WORD_LEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expect: Option<&str>) {
        let known = ["brokers", "topic", "tls", "queue_dir", "queue_limit", "sasl_username"];
        assert_eq!(nearest(word, known), expect, "{word}");
    }

    #[test]
    fn a_slip_of_the_fingers_finds_its_word() {
        check("queue-dir", Some("queue_dir"));
        check("queuedir", Some("queue_dir"));
        check("QUEUE_DIR", Some("queue_dir"));
        check("broker", Some("brokers"));
        check("bootstrap", None);
        check("sasl_user", None);
        check("sasl_usernaem", Some("sasl_username"));
        check("tsl", None);
        check("", None);
        check(&"x".repeat(100_000), None);
    }

    #[test]
    fn the_distance_counts_single_changes() {
        for (a, b, expect) in
            [("", "", 0), ("abc", "", 3), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), expect, "{a} {b}");
        }
    }
}
