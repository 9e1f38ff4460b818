//! The language in which configuration is written, line by line.
//!
//! ```text
//! text    => (blank-line | comment | line)*     a line that ends with a blank and `\` goes on in the next
//! comment => "#" anything
//! line    => target (blanks pair)*
//! target  => subsystem [":" [id]]
//! pair    => name "=" (quoted | bare)           name => one or more of [A-Za-z0-9_.-]
//! quoted  => `"` (anything but `"` | `""`)* `"` | "'" (anything but "'" | "''")* "'"
//! bare    => anything up to the end or to blanks that `name "="` follows
//! ```
//!
//! A bare value may have blanks, because a shell has eaten the quotes of what `mc` sends. It ends before whatever looks
//! like a key, known or not, so that a misspelled key is refused and not swallowed; only the connection strings of
//! databases go on over words of theirs. Within quotes nothing looks like a key. A quote that stands alone within
//! quotes, as `MinIO` prints it, is taken for itself unless it could be the closing one.

use std::borrow::Cow;

use super::error::{ConfigError, ConfigErrorKind, Finding, Place, shortened};
use super::keys::{Key, Subsystem};
use super::suggest::{is_same_word, nearest};
use super::value::ValueType;
use super::{ConfigErrors, TargetId};

/// The most bytes that a text of configuration has.
pub const TEXT_LEN_MAX: usize = 1 << 20;
/// The most lines that a text of configuration has, without blank ones and comments.
pub const LINES_MAX: usize = 1_000;

/// A target and values for some of its keys, as they were written.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) target: TargetName,
    pub(super) pairs: Vec<(&'static Key, String)>,
}

/// The first word of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TargetName {
    pub(super) subsystem: Subsystem,
    pub(super) id: TargetId,
    /// The identifier in the case in which it was written; nothing for the default.
    pub(super) written: String,
}

/// What a line could not be read for, and which target it is about if that could be read.
#[derive(Debug)]
pub(super) struct LineErrors {
    pub(super) target: Option<TargetName>,
    pub(super) errors: Vec<ConfigError>,
}

/// The lines that say something, with their numbers.
pub(super) fn lines(text: &str) -> Result<Vec<(usize, Cow<'_, str>)>, ConfigErrors> {
    let too_large = |reason: String| ConfigError::new(ConfigErrorKind::TooLarge, Finding::new(reason));
    if text.len() > TEXT_LEN_MAX {
        return Err(too_large(format!("the text has more than {TEXT_LEN_MAX} bytes")).into());
    }
    let mut lines: Vec<(usize, Cow<'_, str>)> = Vec::new();
    let mut is_continued = false;
    for (i, physical) in text.split('\n').enumerate() {
        let content = physical.trim();
        let head =
            content.strip_suffix('\\').filter(|head| head.is_empty() || head.ends_with(char::is_whitespace));
        let content = head.unwrap_or(content);
        if let Some((_, line)) = lines.last_mut().filter(|_| is_continued) {
            line.to_mut().push(' ');
            line.to_mut().push_str(content);
        } else if (content.is_empty() && head.is_none()) || content.starts_with('#') {
            continue;
        } else if lines.len() == LINES_MAX {
            return Err(too_large(format!("the text has more than {LINES_MAX} lines")).into());
        } else {
            lines.push((i + 1, content.into()));
        }
        is_continued = head.is_some();
    }
    Ok(lines)
}

/// Reads one line, or says all that is wrong with it.
pub(super) fn line(number: usize, text: &str) -> Result<Line, LineErrors> {
    let (word, rest) = first_word(text);
    let target =
        target(word).map_err(|error| LineErrors { target: None, errors: vec![error.at_line(number)] })?;
    let mut reader = PairReader { target: &target, number, pairs: Vec::new(), errors: Vec::new() };
    reader.read(rest);
    let PairReader { pairs, errors, .. } = reader;
    if errors.is_empty() {
        Ok(Line { number, target, pairs })
    } else {
        Err(LineErrors { target: Some(target), errors })
    }
}

/// `subsystem[:[id]]`.
pub(super) fn target(word: &str) -> Result<TargetName, ConfigError> {
    let (name, id) = word.split_once(':').map_or((word, None), |(name, id)| (name, Some(id)));
    let Some(subsystem) = Subsystem::by_name(name) else {
        let mut reason = format!("there is no sub-system `{}`", shortened(name));
        if let Some(meant) = nearest(name, Subsystem::all().map(Subsystem::name)) {
            reason = format!("{reason}; did you mean `{meant}`?");
        }
        return Err(ConfigError::new(ConfigErrorKind::UnknownSubsystem, Finding::new(reason)));
    };
    let written = id.unwrap_or_default();
    let syntax = |reason: String| ConfigError::new(ConfigErrorKind::Syntax, Finding::new(reason));
    let is_target = matches!(subsystem, Subsystem::Target(_));
    let id = match written {
        "" => TargetId::default_target(),
        _ if !is_target => return Err(syntax(format!("`{subsystem}` has no identifiers"))),
        _ => written.parse().map_err(|reason| syntax(format!("in `{}`, {reason}", shortened(word))))?,
    };
    Ok(TargetName { subsystem, id, written: written.into() })
}

/// A text up to its first blanks, and what follows them.
pub(super) fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

/// An error for a key that the sub-system does not have.
pub(super) fn unknown_key(target: &TargetName, name: &str) -> ConfigError {
    let subsystem = target.subsystem;
    let reason = match nearest(name, subsystem.keys().map(|key| key.name)) {
        Some(meant) => format!("there is no such key; did you mean `{meant}`?"),
        None => "there is no such key; if it is a part of the value before it, put that in quotes".into(),
    };
    ConfigError::new(ConfigErrorKind::UnknownKey, Finding::new(reason).of(subsystem, &target.id).key(name))
}

/// A value in quotes, as every reader of this language takes it.
pub(super) fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('"', "\"\""))
}

/// A value as `MinIO` prints it: in quotes only if it has to be.
pub(super) fn quoted_if_needed(value: &str) -> Cow<'_, str> {
    if value.starts_with(['"', '\'']) || value.contains(char::is_whitespace) {
        quoted(value).into()
    } else {
        value.into()
    }
}

struct PairReader<'a> {
    target: &'a TargetName,
    number: usize,
    pairs: Vec<(&'static Key, String)>,
    errors: Vec<ConfigError>,
}

impl PairReader<'_> {
    fn read(&mut self, mut rest: &str) {
        while !rest.is_empty() && self.errors.len() < ERRORS_MAX {
            let Some((name, after)) = leading_name(rest) else {
                let reason = if rest.starts_with('=') {
                    "a value stands without a key".into()
                } else {
                    format!("`{}` is not of the form `key=value`", shortened(first_word(rest).0))
                };
                return self.refuse(ConfigErrorKind::Syntax, Finding::new(reason));
            };
            let key = self.target.subsystem.key(name);
            let (value, next) = match after.chars().next().filter(|c| matches!(c, '"' | '\'')) {
                None => bare_value(after, |word| self.ends_value(key, word)),
                Some(quote) => match quoted_value(after, quote) {
                    Some(found) => found,
                    None => {
                        return self.refuse(
                            ConfigErrorKind::Syntax,
                            Finding::new("the quote is not closed").key(name),
                        );
                    }
                },
            };
            self.add(name, key, value);
            rest = next;
        }
    }

    fn add(&mut self, name: &str, key: Option<&'static Key>, value: String) {
        match key {
            None => self.errors.push(unknown_key(self.target, name).at_line(self.number)),
            Some(key) if self.pairs.iter().any(|(other, _)| other.name == key.name) => {
                self.refuse(ConfigErrorKind::Conflict, Finding::new("the line sets it twice").key(name));
            }
            Some(key) => self.pairs.push((key, value)),
        }
    }

    /// Whether a word that looks like a key ends the bare value of this one.
    fn ends_value(&self, key: Option<&Key>, word: &str) -> bool {
        let is_nested = key.is_some_and(|key| key.value == ValueType::NestedText);
        !is_nested || self.target.subsystem.keys().any(|key| is_same_word(key.name, word))
    }

    fn refuse(&mut self, kind: ConfigErrorKind, finding: Finding) {
        let finding = finding.of(self.target.subsystem, &self.target.id).at(Place::Line(self.number));
        self.errors.push(ConfigError::new(kind, finding));
    }
}

/// `name "="`, and what follows it.
fn leading_name(text: &str) -> Option<(&str, &str)> {
    let (name, after) = text.split_once('=')?;
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    (!name.is_empty() && name.len() <= NAME_LEN_MAX && name.bytes().all(is_name)).then_some((name, after))
}

/// A value up to the end or to blanks before a name that ends it, and the text from that name on.
fn bare_value(text: &str, ends_value: impl Fn(&str) -> bool) -> (String, &str) {
    let mut rest = text;
    loop {
        // The value may be empty, so that a name may follow at once.
        let blanks = rest.len() - rest.trim_start().len();
        let word = rest.trim_start();
        if blanks > 0 && leading_name(word).is_some_and(|(name, _)| ends_value(name)) {
            let value = text.strip_suffix(rest).unwrap_or(text);
            return (value.trim().into(), word);
        }
        match word.find(char::is_whitespace) {
            Some(end) => rest = word.split_at(end).1,
            None => return (text.trim().into(), ""),
        }
    }
}

/// A value in quotes and the text after it; `None` if the quote is not closed.
fn quoted_value(text: &str, quote: char) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix(quote)?;
    let mut value = String::new();
    loop {
        let (part, after) = rest.split_once(quote)?;
        value.push_str(part);
        if let Some(doubled) = after.strip_prefix(quote) {
            value.push(quote);
            rest = doubled;
            continue;
        }
        let next = after.trim_start();
        let is_closed = next.is_empty() || (next.len() < after.len() && leading_name(next).is_some());
        if is_closed {
            return Some((value, next));
        }
        value.push(quote);
        rest = after;
    }
}

/// No key is nearly as long.
const NAME_LEN_MAX: usize = 64;
/// After so many mistakes the rest of a line is not looked at.
const ERRORS_MAX: usize = 50;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[(&str, &str)]) {
        let line = line(1, text).unwrap();
        let pairs: Vec<_> = line.pairs.iter().map(|(key, value)| (key.name, value.as_str())).collect();
        assert_eq!(pairs, expect, "{text}");
    }

    #[track_caller]
    fn check_refused(text: &str, expect: &[&str]) {
        let errors: Vec<_> = line(7, text).unwrap_err().errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, expect, "{text}");
    }

    #[test]
    fn values_stand_in_quotes_or_not() {
        check("notify_kafka", &[]);
        check("notify_kafka:a topic=t", &[("topic", "t")]);
        check("notify_kafka:a topic= brokers=k:1 ", &[("topic", ""), ("brokers", "k:1")]);
        check("notify_kafka:a topic=\"\"  brokers=\"k:1\"", &[("topic", ""), ("brokers", "k:1")]);
        check("notify_kafka:a\ttopic='t' comment='two words'", &[("topic", "t"), ("comment", "two words")]);
        check("notify_kafka brokers=k1:1, k2:1 topic=t", &[("brokers", "k1:1, k2:1"), ("topic", "t")]);
        check("notify_kafka comment=  two   words  topic=t", &[("comment", "two   words"), ("topic", "t")]);
        check("notify_kafka comment=\" two \"", &[("comment", " two ")]);
        check("notify_kafka sasl_password=a=b==&c#d", &[("sasl_password", "a=b==&c#d")]);
        check("notify_kafka comment=see http://x/?a=b", &[("comment", "see http://x/?a=b")]);
    }

    #[test]
    fn a_name_within_quotes_is_a_part_of_the_value() {
        check(
            "notify_kafka comment=\"set topic=x here\" topic=t",
            &[("comment", "set topic=x here"), ("topic", "t")],
        );
        check("notify_kafka comment=\"a \"\"b\"\" topic=x\"", &[("comment", "a \"b\" topic=x")]);
        check(
            "notify_kafka comment=\"say \"hi\" now\" topic=t",
            &[("comment", "say \"hi\" now"), ("topic", "t")],
        );
        check("notify_kafka comment='it''s topic=x'", &[("comment", "it's topic=x")]);
        check("notify_kafka comment=\"it's\" topic=t", &[("comment", "it's"), ("topic", "t")]);
        check("notify_kafka comment=it's \"so\"", &[("comment", "it's \"so\"")]);
    }

    #[test]
    fn connection_strings_have_names_of_their_own() {
        check(
            "notify_postgres connection_string=host=localhost port=5432 user=a password=b dbname=c table=t",
            &[("connection_string", "host=localhost port=5432 user=a password=b dbname=c"), ("table", "t")],
        );
        check_refused(
            "notify_postgres connection_string=host=x port=1 queue-dir=/q",
            &[
                "line 7: key `queue-dir` of `notify_postgres`: there is no such key; did you mean `queue_dir`?",
            ],
        );
    }

    #[test]
    fn what_does_not_follow_the_grammar_is_refused_at_its_line() {
        let of = "of `notify_kafka:a`";
        check_refused(
            "notify_kafak:a",
            &["line 7: there is no sub-system `notify_kafak`; did you mean `notify_kafka`?"],
        );
        check_refused(
            "notify_kafka:a/b x=y",
            &["line 7: in `notify_kafka:a/b`, the identifier of a target cannot have '/'"],
        );
        check_refused("site:a region=x", &["line 7: `site` has no identifiers"]);
        check_refused(
            "notify_kafka:a topic",
            &["line 7: `notify_kafka:a`: `topic` is not of the form `key=value`"],
        );
        check_refused("notify_kafka:a =x", &["line 7: `notify_kafka:a`: a value stands without a key"]);
        check_refused(
            "notify_kafka:a topic=\"x",
            &[&format!("line 7: key `topic` {of}: the quote is not closed")],
        );
        check_refused(
            "notify_kafka:a topic=\"x\" y",
            &[&format!("line 7: key `topic` {of}: the quote is not closed")],
        );
        check_refused(
            "notify_kafka:a topic=\"x\"tls=on",
            &[&format!("line 7: key `topic` {of}: the quote is not closed")],
        );
        check_refused(
            "notify_kafka:a topic=x topic=y",
            &[&format!("line 7: key `topic` {of}: the line sets it twice")],
        );
        check_refused(
            "notify_kafka:a queue-dir=/q brokres=k bootstrap_servers=k",
            &[
                &format!("line 7: key `queue-dir` {of}: there is no such key; did you mean `queue_dir`?"),
                &format!("line 7: key `brokres` {of}: there is no such key; did you mean `brokers`?"),
                &format!(
                    "line 7: key `bootstrap_servers` {of}: there is no such key; if it is a part of the value before \
                     it, put that in quotes"
                ),
            ],
        );
    }

    #[test]
    fn lines_are_joined_and_comments_left_out() {
        let text =
            "# a comment \\\n\nnotify_kafka:a \\\n  topic=t \\\r\n brokers=k\r\n  # more\nsite region=eu\\";
        let lines: Vec<_> = lines(text).unwrap();
        assert_eq!(lines, [(3, "notify_kafka:a  topic=t  brokers=k".into()), (7, "site region=eu\\".into())]);
    }

    #[test]
    fn a_text_has_bounds() {
        assert!(lines(&"\n".repeat(TEXT_LEN_MAX)).unwrap().is_empty());
        assert!(lines(&" ".repeat(TEXT_LEN_MAX + 1)).is_err());
        assert_eq!(lines(&"site\n".repeat(LINES_MAX)).unwrap().len(), LINES_MAX);
        assert!(lines(&"site\n".repeat(LINES_MAX + 1)).is_err());
        let mistakes = format!("notify_kafka {}", "x=y ".repeat(10_000));
        assert_eq!(line(1, &mistakes).unwrap_err().errors.len(), ERRORS_MAX);
    }

    /// Splits at every known name, one after the other: what the grammar says of bare values without quotes.
    fn naive_bare(text: &str) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for word in text.split_whitespace() {
            let name = |(name, _): &(&str, &str)| matches!(*name, "topic" | "comment" | "tls");
            if let Some((name, value)) = word.split_once('=').filter(name) {
                pairs.push((name.into(), value.into()));
            } else {
                let value = &mut pairs.last_mut().unwrap().1;
                let blank = if value.is_empty() { "" } else { " " };
                *value = format!("{value}{blank}{word}");
            }
        }
        pairs
    }

    proptest! {
        #[test]
        fn every_value_is_read_as_it_was_quoted(a in "[^\n\0]{0,12}", b in "[ \"'=a\\\\]{0,12}", c in "[ \"a=]{0,8}") {
            let values = [("comment", &a), ("sasl_password", &b), ("sasl_username", &c)];
            let mut text = String::from("notify_kafka:x");
            for (name, value) in values {
                text = format!("{text} {name}={}", quoted(value));
            }
            let lines = lines(&text).unwrap();
            prop_assert_eq!(lines.len(), 1);
            let line = line(1, &lines[0].1).unwrap();
            let read: Vec<_> = line.pairs.iter().map(|(key, value)| (key.name, value)).collect();
            prop_assert_eq!(read, values);
        }

        #[test]
        fn bare_values_are_split_like_by_the_naive_reader(
            words in prop::collection::vec("[a-c:/,]{1,4}(=[a-c]{0,2})?", 0..4),
            names in Just(["topic", "comment", "tls"]).prop_shuffle(),
        ) {
            // Words of one letter before `=` would be names; the others cannot be.
            let words: Vec<_> = words.iter().map(|word| word.replacen('=', ":=", 1)).collect();
            let value = words.join(" ");
            let text = format!("{}={value} {}= {}={value}", names[0], names[1], names[2]);
            let line = line(1, &format!("notify_kafka {text}")).unwrap();
            let read: Vec<_> = line.pairs.iter().map(|(key, value)| (key.name.into(), value.clone())).collect();
            prop_assert_eq!(read, naive_bare(&text));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(notify_kafka|site)?[:a-z=\"' \\\\#\n]{0,40}") {
            for (number, text) in lines(&text).unwrap() {
                line(number, &text).ok();
            }
        }
    }
}
