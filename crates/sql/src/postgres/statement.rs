//! What a statement is to the session, told by its first words; whatever is not about the session goes to the engine.

use super::pieces::{PieceKind, pieces, unquoted};
use super::refusal::{Refusal, state};

/// What to do with a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Has rows, or an error; the tag is what it ends with.
    Query { tag: &'static str },
    /// Begins, ends or marks a transaction.
    Transaction(Step),
    /// Sets a variable, to `None` for its default.
    Set { name: String, value: Option<String> },
    /// Sets all variables to their defaults.
    ResetAll,
    /// Asks for a variable; `all` for all of them.
    Show(String),
    /// Forgets prepared statements: one or all.
    Deallocate(Option<String>),
    /// Forgets everything that the session has set.
    Discard,
    /// Reads or writes rows in a format of its own, which we do not speak.
    Copy,
    /// Has nothing to do here and is accepted, for the sake of clients that send it.
    Nothing(&'static str),
}

/// A step of a transaction. Everything is read-only, so all that a transaction has is whether it is open and has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Begin,
    Commit,
    Rollback,
    Savepoint,
    Release,
    RollbackTo,
}

impl Kind {
    /// Looks at the first words of a statement.
    pub(crate) fn of(text: &str) -> Self {
        let words = Words::of(text);
        let upper: Vec<String> = words.0.iter().take(5).map(|word| word.to_ascii_uppercase()).collect();
        let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
        match upper.as_slice() {
            ["BEGIN", ..] | ["START", "TRANSACTION", ..] => Self::Transaction(Step::Begin),
            ["COMMIT" | "END", ..] => Self::Transaction(Step::Commit),
            ["ROLLBACK", "TO", ..] | ["ROLLBACK", "WORK" | "TRANSACTION", "TO", ..] => {
                Self::Transaction(Step::RollbackTo)
            }
            ["ROLLBACK" | "ABORT", ..] => Self::Transaction(Step::Rollback),
            ["SAVEPOINT", ..] => Self::Transaction(Step::Savepoint),
            ["RELEASE", ..] => Self::Transaction(Step::Release),
            ["DEALLOCATE", "PREPARE", ..] => words.deallocate(2),
            ["DEALLOCATE", ..] => words.deallocate(1),
            ["DISCARD", ..] => Self::Discard,
            ["COPY", ..] => Self::Copy,
            ["CLOSE", ..] => Self::Nothing("CLOSE CURSOR"),
            ["LISTEN", ..] => Self::Nothing("LISTEN"),
            ["UNLISTEN", ..] => Self::Nothing("UNLISTEN"),
            ["RESET", "ALL"] => Self::ResetAll,
            ["RESET", _, ..] => words.set(1, true),
            ["SET", "TRANSACTION" | "CONSTRAINTS" | "ROLE", ..]
            | ["SET", "SESSION", "CHARACTERISTICS", ..] => Self::Nothing("SET"),
            ["SET", "SESSION" | "LOCAL", _, ..] => words.set(2, false),
            ["SET", _, ..] => words.set(1, false),
            ["SHOW", "TRANSACTION", "ISOLATION", "LEVEL"] => Self::Show("transaction_isolation".to_owned()),
            ["SHOW", "SESSION", "AUTHORIZATION"] => Self::Show("session_authorization".to_owned()),
            ["SHOW", "TIME", "ZONE"] => Self::Show("TimeZone".to_owned()),
            ["SHOW", _] => Self::Show(words.0.get(1).cloned().unwrap_or_default()),
            ["SHOW", ..] => Self::Query { tag: "SHOW" },
            ["EXPLAIN", ..] => Self::Query { tag: "EXPLAIN" },
            ["DESCRIBE" | "DESC", ..] => Self::Query { tag: "DESCRIBE" },
            _ => Self::Query { tag: "SELECT" },
        }
    }

    /// Whether it is allowed in a transaction that has failed.
    pub(crate) const fn ends_failure(&self) -> bool {
        matches!(self, Self::Transaction(Step::Commit | Step::Rollback | Step::RollbackTo))
    }
}

/// The words of a statement, without comments; texts and quoted names are one word each, without their quotes.
struct Words(Vec<String>);

impl Words {
    fn of(text: &str) -> Self {
        let mut words = Vec::new();
        for piece in pieces(text) {
            // What decides is at the beginning; a statement may be long.
            if words.len() >= WORDS_MAX {
                break;
            }
            match piece.kind {
                PieceKind::Quoted => words.push(unquoted(piece.text)),
                PieceKind::Plain => {
                    let separated = |c: char| c.is_whitespace() || matches!(c, '=' | ',' | ';' | '(');
                    let found = piece.text.split(separated).filter(|word| !word.is_empty());
                    words.extend(found.take(WORDS_MAX).map(str::to_owned));
                }
                PieceKind::Comment => {}
            }
        }
        Self(words)
    }

    /// `name [TO] value`, from this word on.
    fn set(&self, from: usize, reset: bool) -> Kind {
        let mut words = self.0.get(from..).unwrap_or_default().iter().map(String::as_str);
        let mut name = words.next().unwrap_or_default().to_owned();
        let mut words: Vec<&str> = words.collect();
        if name.eq_ignore_ascii_case("time")
            && words.first().is_some_and(|word| word.eq_ignore_ascii_case("zone"))
        {
            "TimeZone".clone_into(&mut name);
            words.remove(0);
        } else if name.eq_ignore_ascii_case("names") {
            "client_encoding".clone_into(&mut name);
        }
        if words.first().is_some_and(|word| word.eq_ignore_ascii_case("to")) {
            words.remove(0);
        }
        let value = words.join(", ");
        let default = reset || words.is_empty() || value.eq_ignore_ascii_case("default");
        Kind::Set { name, value: (!default).then_some(value) }
    }

    fn deallocate(&self, from: usize) -> Kind {
        let name = self.0.get(from).cloned().unwrap_or_default();
        Kind::Deallocate((!name.eq_ignore_ascii_case("all")).then_some(name))
    }
}

const WORDS_MAX: usize = 64;

/// Cuts a text at the semicolons that are not in a text, a quoted name or a comment. Empty statements are left out.
pub(crate) fn split(text: &str) -> Result<Vec<&str>, Refusal> {
    let mut statements = Vec::new();
    let (mut begin, mut at, mut filled) = (0_usize, 0_usize, false);
    for piece in pieces(text) {
        let piece_at = at;
        at = at.saturating_add(piece.text.len());
        match piece.kind {
            PieceKind::Comment => {}
            PieceKind::Quoted => filled = true,
            PieceKind::Plain => {
                let mut from = 0_usize;
                for (index, _) in piece.text.match_indices(';') {
                    filled |= piece.text.get(from..index).is_some_and(|part| !part.trim().is_empty());
                    keep(text.get(begin..piece_at.saturating_add(index)), filled, &mut statements)?;
                    from = index.saturating_add(1);
                    (begin, filled) = (piece_at.saturating_add(from), false);
                }
                filled |= piece.text.get(from..).is_some_and(|part| !part.trim().is_empty());
            }
        }
    }
    keep(text.get(begin..), filled, &mut statements)?;
    Ok(statements)
}

fn keep<'a>(statement: Option<&'a str>, filled: bool, statements: &mut Vec<&'a str>) -> Result<(), Refusal> {
    if statements.len() >= STATEMENTS_MAX {
        return Err(Refusal::error(state::LIMIT_EXCEEDED, "too many statements in one text"));
    }
    statements.extend(statement.filter(|_| filled).map(str::trim));
    Ok(())
}

const STATEMENTS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &Kind) {
        assert_eq!(&Kind::of(text), expect, "{text}");
    }

    fn set(name: &str, value: Option<&str>) -> Kind {
        Kind::Set { name: name.to_owned(), value: value.map(str::to_owned) }
    }

    #[test]
    fn statements_are_cut_at_semicolons_that_are_not_quoted() {
        let text = " SELECT ';' ; ; -- a;b\n SELECT 2; /* ; */ ; SELECT \"a;b\", $$;$$";
        assert_eq!(
            split(text).expect("statements"),
            ["SELECT ';'", "-- a;b\n SELECT 2", "SELECT \"a;b\", $$;$$"]
        );
        assert!(split(&"x;".repeat(STATEMENTS_MAX + 1)).is_err());
        assert!(split(&";".repeat(5)).expect("none").is_empty());
    }

    #[test]
    fn the_first_words_tell_what_a_statement_is() {
        check("begin", &Kind::Transaction(Step::Begin));
        check("/* c */ START TRANSACTION READ ONLY", &Kind::Transaction(Step::Begin));
        check("ROLLBACK TO SAVEPOINT s", &Kind::Transaction(Step::RollbackTo));
        check("end", &Kind::Transaction(Step::Commit));
        check("SET extra_float_digits = 3", &set("extra_float_digits", Some("3")));
        check("SET SESSION a TO 'b c'", &set("a", Some("b c")));
        check("set local a=default", &set("a", None));
        check("SET search_path TO a, \"b/c\"", &set("search_path", Some("a, b/c")));
        check("SET TIME ZONE 'Europe/Berlin'", &set("TimeZone", Some("Europe/Berlin")));
        check("SET NAMES 'UTF8'", &set("client_encoding", Some("UTF8")));
        check("RESET a", &set("a", None));
        check("RESET ALL", &Kind::ResetAll);
        check("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", &Kind::Nothing("SET"));
        check("SHOW server_version", &Kind::Show("server_version".into()));
        check("SHOW TRANSACTION ISOLATION LEVEL", &Kind::Show("transaction_isolation".into()));
        check("SHOW TABLES IN x", &Kind::Query { tag: "SHOW" });
        check("DEALLOCATE ALL", &Kind::Deallocate(None));
        check("DEALLOCATE PREPARE p", &Kind::Deallocate(Some("p".into())));
        check("COPY (SELECT 1) TO STDOUT", &Kind::Copy);
        check("(SELECT 1)", &Kind::Query { tag: "SELECT" });
        check("insert into t values (1)", &Kind::Query { tag: "SELECT" });
    }
}
