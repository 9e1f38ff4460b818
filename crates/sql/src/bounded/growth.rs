//! How long the result of a function can be, told from its arguments.

use datafusion::logical_expr::ColumnarValue;

use super::lengths::{distinct, leaves, len, longest, text};

/// How a function multiplies what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// By a small factor at most, or not at all.
    Little,
    /// The result has all arguments.
    Sum,
    /// `concat_ws(separator, text, …)`.
    Separated,
    /// `array_to_string(list, separator, null)`.
    Joined,
    /// `replace(text, from, to)`.
    Replaced,
    /// `array_replace_all(list, from, to)`.
    ElementsReplaced,
    /// `regexp_replace(text, pattern, replacement, flags)`.
    MatchesReplaced,
    /// `regexp_match(text, pattern)`: all groups of the first match.
    Captured,
    /// `regexp_like(text, pattern)`: patterns take memory until the call ends.
    Matched,
    /// `translate(text, from, to)`: a byte may become a character of four.
    Translated,
    /// `to_char(time, format)`.
    Formatted,
}

impl Growth {
    /// That of the function of this name.
    pub(super) fn of(function: &str) -> Self {
        match function {
            "||" | "concat" | "overlay" | "make_array" | "array_append" | "array_prepend"
            | "array_concat" | "arrays_zip" | "map" | "flatten" | "array_union" => Self::Sum,
            "concat_ws" => Self::Separated,
            "array_to_string" => Self::Joined,
            "replace" => Self::Replaced,
            "array_replace" | "array_replace_n" | "array_replace_all" => Self::ElementsReplaced,
            "regexp_replace" => Self::MatchesReplaced,
            "regexp_match" => Self::Captured,
            "regexp_like" | "regexp_count" | "regexp_instr" => Self::Matched,
            "translate" => Self::Translated,
            "to_char" => Self::Formatted,
            _ => Self::Little,
        }
    }

    /// What a call takes, at most: bytes of the result, or of single values that are repeated for each row.
    pub(super) fn bound(self, arguments: &[ColumnarValue], rows: usize) -> usize {
        let is_single = |argument: &&ColumnarValue| matches!(argument, ColumnarValue::Scalar(_));
        let repeated = total(arguments.iter().filter(is_single), rows);
        repeated.max(self.result(arguments, rows))
    }

    fn result(self, arguments: &[ColumnarValue], rows: usize) -> usize {
        let all = || total(arguments.iter(), rows);
        match (self, arguments) {
            (Self::Little, _) => 0,
            (Self::Separated, [separator, parts @ ..]) => {
                let separators = len(separator, rows).saturating_mul(parts.len());
                total(parts.iter(), rows).saturating_add(separators)
            }
            (Self::Joined, [list, parameters @ ..]) => {
                let each = parameters.iter().map(longest).fold(NUMBER_LEN, usize::saturating_add);
                len(list, rows).saturating_add(leaves(list, rows).saturating_mul(each))
            }
            (Self::Replaced, [subject, from, to, ..]) => replaced(subject, from, to, rows),
            (Self::ElementsReplaced, [list, _, to, ..]) => {
                all().saturating_add(leaves(list, rows).saturating_mul(longest(to)))
            }
            (Self::MatchesReplaced, [subject, pattern, replacement, flags @ ..]) => {
                let is_global = flags.first().is_some_and(|flags| longest(flags) > 0);
                matches_replaced(subject, replacement, is_global, rows).saturating_add(patterns(pattern))
            }
            (Self::Captured, [subject, pattern, ..]) => {
                let groups = most(pattern, rows, |text| text.matches('(').count().min(GROUPS_MAX));
                len(subject, rows).saturating_mul(groups + 1).saturating_add(patterns(pattern))
            }
            (Self::Matched, [_, pattern, ..]) => patterns(pattern),
            (Self::Translated, [subject, ..]) => len(subject, rows).saturating_mul(CHARACTER_LEN_MAX),
            (Self::Formatted, [_, format, ..]) => {
                longest(format).saturating_mul(FIELD_GROWTH).saturating_mul(rows)
            }
            _ => all(),
        }
    }
}

fn total<'a>(arguments: impl Iterator<Item = &'a ColumnarValue>, rows: usize) -> usize {
    arguments.map(|argument| len(argument, rows)).fold(0, usize::saturating_add)
}

/// By lengths alone where that is little; otherwise matches are counted.
fn replaced(subject: &ColumnarValue, from: &ColumnarValue, to: &ColumnarValue, rows: usize) -> usize {
    let len = len(subject, rows);
    let most = len.saturating_add(rows).saturating_mul(longest(to)).saturating_add(len);
    if most <= COUNTED_LEN {
        return most;
    }
    let row = |row: usize| {
        let (Some(subject), Some(from), Some(to)) = (text(subject, row), text(from, row), text(to, row))
        else {
            return 0;
        };
        let matches = if from.is_empty() { 0 } else { subject.matches(from).count() };
        subject.len().saturating_add(matches.saturating_mul(to.len()))
    };
    (0..rows).map(row).fold(0, usize::saturating_add)
}

/// Matches do not overlap, so that all of them together, and a group of each, are no longer than the subject.
fn matches_replaced(
    subject: &ColumnarValue,
    replacement: &ColumnarValue,
    is_global: bool,
    rows: usize,
) -> usize {
    let len = len(subject, rows);
    let matches = if is_global { len.saturating_add(rows) } else { rows };
    let written = matches.saturating_mul(longest(replacement));
    let references = most(replacement, rows, |text| text.matches(['$', '\\']).count());
    len.saturating_add(written).saturating_add(len.saturating_mul(references))
}

/// The greatest count of all texts of an argument.
fn most(argument: &ColumnarValue, rows: usize, count: impl Fn(&str) -> usize) -> usize {
    let rows = if matches!(argument, ColumnarValue::Scalar(_)) { rows.min(1) } else { rows };
    (0..rows).filter_map(|row| text(argument, row)).map(count).max().unwrap_or(0)
}

/// What the compiled patterns of a column take; a single one is bounded by itself.
fn patterns(pattern: &ColumnarValue) -> usize {
    match pattern {
        ColumnarValue::Array(_) => distinct(pattern).saturating_mul(PATTERN_LEN_MAX),
        ColumnarValue::Scalar(_) => 0,
    }
}

/// About the longest text of a number or a time.
const NUMBER_LEN: usize = 64;
/// The bytes of the longest character.
const CHARACTER_LEN_MAX: usize = 4;
/// How much longer the text of a time is than its format: `%c` is `Sun Jul  8 00:34:60 2001`.
const FIELD_GROWTH: usize = 24;
/// How deep groups can be nested in a pattern, each of which has all of the subject.
const GROUPS_MAX: usize = 256;
/// The most that one compiled pattern takes.
const PATTERN_LEN_MAX: usize = 10 << 20;
/// Below so many bytes matches are not counted.
const COUNTED_LEN: usize = 8 << 20;
