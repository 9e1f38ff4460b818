//! From text to parsed statements.

use datafusion::error::DataFusionError;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::generic::Syntax;
use super::{depth, explain, offset};
use crate::error::QueryError;

/// How deep statements may be nested: parentheses, subqueries, `CASE`.
const NESTING_MAX: usize = 50;

/// Cuts a text into parsed statements; see [`super::parse`].
pub(super) fn parse(text: &str) -> Result<Vec<Statement>, QueryError> {
    let tokens = with_operators(offset::quoted(tokens(text).map_err(|error| explain::explain(error, text))?));
    depth::check(&tokens)?;
    DFParserBuilder::new(tokens)
        .with_dialect(&Syntax)
        .with_recursion_limit(NESTING_MAX)
        .build()
        .and_then(|mut parser| parser.parse_statements())
        .map(Vec::from)
        .map_err(|error| explain::explain(error, text))
}

/// The tokens of a text with their places, blanks and comments included.
pub(super) fn tokens(text: &str) -> Result<Vec<TokenWithSpan>, DataFusionError> {
    Tokenizer::new(&Syntax, text)
        .tokenize_with_location()
        .map_err(|error| DataFusionError::SQL(Box::new(error.into()), None))
}

/// The tokens, with `?` the operator where it stands before a string and after an operand; elsewhere it is a parameter.
fn with_operators(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut after_operand = false;
    let mut question = None;
    let mut operators = Vec::new();
    for (at, TokenWithSpan { token, .. }) in tokens.iter().enumerate() {
        match token {
            Token::Whitespace(_) => continue,
            Token::Placeholder(name) if name == "?" && after_operand => question = Some(at),
            Token::SingleQuotedString(_) => operators.extend(question.take()),
            _ => question = None,
        }
        after_operand =
            matches!(token, Token::Word(_) | Token::RParen | Token::RBracket | Token::SingleQuotedString(_));
    }
    for at in operators {
        if let Some(token) = tokens.get_mut(at) {
            token.token = Token::Question;
        }
    }
    tokens
}
