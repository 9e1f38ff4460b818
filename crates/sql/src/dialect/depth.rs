//! A bound on how deep a parsed statement can become, found before it is parsed.
//!
//! The parser's own limit is on its recursion, but `1 + 1 + 1 …` and `a UNION b UNION …` are parsed in a loop into a tree
//! as deep as they are long; planning, and even dropping, such a tree recurses. Chains of `AND` and `OR` may be longer:
//! [`super::syntax`] balances them.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{QueryError, QueryErrorKind};

/// The deepest that a statement may be, in operators. Planning it must fit a thread's stack of 2 MiB; without optimisation
/// the frames are several times as large.
pub(super) const DEPTH_MAX: usize = if cfg!(debug_assertions) { 60 } else { 300 };

/// How many `AND` and `OR` may follow one another.
pub(super) const LOGIC_MAX: usize = if cfg!(debug_assertions) { 200 } else { 1000 };

/// What a pair of parentheses, a subquery and a join count, in operators.
const PARENTHESES: usize = 4;
const SUBQUERY: usize = 4;
const JOIN: usize = 2;

/// Refuses statements that are deeper.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<(), QueryError> {
    let mut levels = vec![Level::default()];
    let mut depth = 0;
    let mut opened = false;
    for TokenWithSpan { token, .. } in tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::LParen | Token::LBracket | Token::LBrace => {
                levels.push(Level { lasting: PARENTHESES, ..Level::default() });
                depth += PARENTHESES;
            }
            Token::RParen | Token::RBracket | Token::RBrace if levels.len() > 1 => {
                depth -= levels.pop().map_or(0, |level| level.depth());
            }
            _ => {}
        }
        let Some(level) = levels.last_mut() else {
            break;
        };
        depth -= level.depth();
        level.take(token, opened);
        depth += level.depth();
        opened = matches!(token, Token::LParen);
        if depth > DEPTH_MAX || level.logic > LOGIC_MAX {
            let message =
                "the statement is nested too deeply, or has too many operators: write long lists as `IN (…)`";
            return Err(QueryError::new(QueryErrorKind::Unsupported, message));
        }
    }
    Ok(())
}

/// What is open between two parentheses.
#[derive(Default)]
struct Level {
    /// Operators of the expression, which a comma or `AND` and `OR` end.
    operators: usize,
    /// Joins and the like, which the end of the statement ends.
    lasting: usize,
    /// `AND` and `OR`, which a comma ends.
    logic: usize,
    /// In a `FROM` clause, where a comma joins.
    from: bool,
}

impl Level {
    const fn depth(&self) -> usize {
        self.operators + self.lasting
    }

    /// Takes a token that is not a blank; `opened` tells that a parenthesis is just before it.
    fn take(&mut self, token: &Token, opened: bool) {
        match token {
            Token::SemiColon => *self = Self::default(),
            Token::Comma if self.from => self.lasting += JOIN,
            Token::Comma => (self.operators, self.logic) = (0, 0),
            Token::Word(word) if word.quote_style.is_none() => {
                self.take_keyword(word.keyword);
                if opened
                    && matches!(
                        word.keyword,
                        Keyword::SELECT | Keyword::WITH | Keyword::FROM | Keyword::VALUES
                    )
                {
                    self.lasting += SUBQUERY;
                }
            }
            Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Placeholder(_)
            | Token::Period
            | Token::LParen
            | Token::RParen
            | Token::LBrace
            | Token::RBrace
            | Token::LBracket
            | Token::EOF => {}
            // also `]`: one more step into a value
            _ => self.operators += 1,
        }
    }

    fn take_keyword(&mut self, keyword: Keyword) {
        match keyword {
            Keyword::FROM => self.from = true,
            Keyword::SELECT
            | Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::WINDOW => {
                self.from = false;
                (self.operators, self.logic) = (0, 0);
            }
            Keyword::ON => (self.operators, self.logic) = (0, 0),
            Keyword::AND | Keyword::OR => {
                self.operators = 0;
                self.logic += 1;
            }
            Keyword::JOIN
            | Keyword::APPLY
            | Keyword::PIVOT
            | Keyword::UNPIVOT
            | Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT
            | Keyword::MINUS => self.lasting += JOIN,
            // its own `AND` does not end it
            Keyword::BETWEEN => self.lasting += 1,
            // `END` ends a `CASE`, nothing else in a query
            Keyword::EXPLAIN | Keyword::CASE => self.lasting += PARENTHESES,
            Keyword::END => self.lasting = self.lasting.saturating_sub(PARENTHESES),
            Keyword::XOR
            | Keyword::NOT
            | Keyword::IS
            | Keyword::NOTNULL
            | Keyword::IN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::RLIKE
            | Keyword::REGEXP
            | Keyword::SIMILAR
            | Keyword::COLLATE
            | Keyword::AT
            | Keyword::DIV
            | Keyword::MOD => self.operators += 1,
            _ => {}
        }
    }
}
