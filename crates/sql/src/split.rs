//! Cutting a text into statements, without changing them.

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};

use crate::dialect;
use crate::error::QueryError;

/// The statements of a text, as they are written in it. What has only blanks and comments is left out.
pub(crate) fn split(text: &str) -> Result<Vec<String>, QueryError> {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location();
    let tokens =
        tokens.map_err(|error| dialect::explain(DataFusionError::SQL(Box::new(error.into()), None), text))?;
    let mut places = Places::new(text);
    let mut statements = Vec::new();
    let (mut begin, mut is_empty) = (0, true);
    for token in tokens {
        match token.token {
            Token::SemiColon => {
                let end = places.byte(token.span.start);
                if !is_empty {
                    statements.extend(text.get(begin..end).map(|statement| statement.trim().to_owned()));
                }
                (begin, is_empty) = (end.saturating_add(1), true);
            }
            Token::Whitespace(_) | Token::EOF => {}
            _ => is_empty = false,
        }
    }
    if !is_empty {
        statements.extend(text.get(begin..).map(|statement| statement.trim().to_owned()));
    }
    Ok(statements)
}

/// Finds the bytes at lines and columns, which are asked for in ascending order.
struct Places<'a> {
    rest: std::str::CharIndices<'a>,
    line: u64,
    column: u64,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text.char_indices(), line: 1, column: 1 }
    }

    fn byte(&mut self, place: Location) -> usize {
        while (self.line, self.column) < (place.line, place.column) {
            match self.rest.next() {
                Some((_, '\n')) => (self.line, self.column) = (self.line + 1, 1),
                Some(_) => self.column += 1,
                None => break,
            }
        }
        self.rest.offset()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn texts_are_cut_at_semicolons_outside_of_quotes_and_comments() {
        check("", &[]);
        check(" ; ;\n-- nothing; here\n;", &[]);
        check("select 1", &["select 1"]);
        check("select 1;select 2 ;\n select 3", &["select 1", "select 2", "select 3"]);
        check(
            "select ';', \";\" /* ; */ from t; select 'ä€;';",
            &["select ';', \";\" /* ; */ from t", "select 'ä€;'"],
        );
        check("select 'a\nb;\nc' ;\r\n\tselect\n2", &["select 'a\nb;\nc'", "select\n2"]);
        check(
            "select 'it''s; fine'; show schemas in vast;",
            &["select 'it''s; fine'", "show schemas in vast"],
        );
    }

    #[test]
    fn a_quote_that_does_not_end_is_an_error() {
        assert_eq!(split("select 'a; select 2").unwrap_err().kind(), crate::QueryErrorKind::Syntax);
    }
}
