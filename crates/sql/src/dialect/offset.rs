//! The column `offset`, whose name is a keyword.
//!
//! Where only an expression or a name can stand, an unquoted `offset` is the column, and is quoted for the parser. Where
//! an `OFFSET` clause could stand as well it is left alone; [`ambiguous`] finds it again for a hint.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The tokens, with each unquoted `offset` quoted that cannot begin an `OFFSET` clause.
pub(super) fn quoted(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let columns: Vec<usize> = occurrences(&tokens)
        .filter(|(_, before, after)| is_name(*before, *after))
        .map(|(at, ..)| at)
        .collect();
    for at in columns {
        if let Some(token) = tokens.get_mut(at) {
            token.token = Token::Word(Word {
                value: "offset".to_owned(),
                quote_style: Some('"'),
                keyword: Keyword::NoKeyword,
            });
        }
    }
    tokens
}

/// Whether there is an unquoted `offset` that is neither surely the column nor surely a clause.
pub(super) fn ambiguous(tokens: &[TokenWithSpan]) -> bool {
    occurrences(tokens).any(|(_, before, after)| !is_name(before, after) && !is_clause(after))
}

/// Where the word is, with the tokens before and after it.
fn occurrences(tokens: &[TokenWithSpan]) -> impl Iterator<Item = (usize, Option<&Token>, Option<&Token>)> {
    let mut significant = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)))
        .peekable();
    let mut before = None;
    std::iter::from_fn(move || {
        let (at, token) = significant.next()?;
        let after = significant.peek().map(|(_, token)| &token.token);
        let found = (at, before.replace(&token.token), after);
        Some(is_offset(&token.token).then_some(found))
    })
    .flatten()
}

fn is_offset(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.keyword == Keyword::OFFSET && word.quote_style.is_none())
}

/// Whether an `offset` between these two can only be a name: after an operator, a comma, or a keyword that an expression
/// or a name follows. `offset(` is left to the parser.
fn is_name(before: Option<&Token>, after: Option<&Token>) -> bool {
    if matches!(after, Some(Token::LParen)) {
        return false;
    }
    match before {
        Some(Token::Word(word)) if word.quote_style.is_none() => matches!(
            word.keyword,
            Keyword::SELECT
                | Keyword::DISTINCT
                | Keyword::WHERE
                | Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::ON
                | Keyword::BY
                | Keyword::HAVING
                | Keyword::QUALIFY
                | Keyword::CASE
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::BETWEEN
                | Keyword::AS
                | Keyword::FROM
                | Keyword::JOIN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::DESCRIBE
        ),
        Some(
            Token::Comma
            | Token::LParen
            | Token::Period
            | Token::Eq
            | Token::DoubleEq
            | Token::Neq
            | Token::Lt
            | Token::Gt
            | Token::LtEq
            | Token::GtEq
            | Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::Mod
            | Token::StringConcat,
        ) => !matches!((before, after), (Some(Token::Mul), Some(Token::Number(..)))),
        _ => false,
    }
}

/// Whether what follows is what an `OFFSET` clause takes.
fn is_clause(after: Option<&Token>) -> bool {
    matches!(after, Some(Token::Number(..) | Token::Placeholder(_) | Token::LParen))
}
