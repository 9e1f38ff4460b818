//! `DataFusion`'s errors in our words.

use std::error::Error;

use datafusion::common::utils::datafusion_strsim::normalized_levenshtein;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{offset, parse};
use crate::error::{QueryError, QueryErrorKind};

/// See [`super::explain`].
pub(super) fn explain(error: DataFusionError, text: &str) -> QueryError {
    let Some((kind, message)) = explained(error.find_root(), text) else {
        let error = QueryError::from(error);
        // the words are `DataFusion`'s unless there is a cause, which is for us
        return match error.source() {
            None => QueryError::new(error.kind(), one_line(&error.to_string())),
            Some(_) => error,
        };
    };
    let mut message = one_line(&message);
    if matches!(kind, QueryErrorKind::Syntax | QueryErrorKind::NotFound)
        && parse::tokens(text).is_ok_and(|tokens| offset::ambiguous(&tokens))
    {
        message.push_str("; `offset` is a keyword: write \"offset\" in double quotes for the column");
    }
    if kind == QueryErrorKind::Syntax
        && let Some(name) = parse::tokens(text).ok().and_then(|tokens| dashed(&tokens))
    {
        message = format!("{message}; a name with dashes needs double quotes: \"{name}\"");
    }
    QueryError::new(kind, message)
}

/// Kind and message of an error that the statement's text explains.
fn explained(root: &DataFusionError, text: &str) -> Option<(QueryErrorKind, String)> {
    use QueryErrorKind as Kind;
    match root {
        DataFusionError::SQL(error, _) => Some(match error.as_ref() {
            ParserError::RecursionLimitExceeded => {
                (Kind::Unsupported, "the statement is nested too deeply".to_owned())
            }
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
                (Kind::Syntax, place(message))
            }
        }),
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => {
                Some((Kind::NotFound, missing_column(field, valid_fields, text)))
            }
            SchemaError::AmbiguousReference { field } => {
                let message =
                    format!("column `{}` is in more than one table: name the table too", field.name);
                Some((Kind::Syntax, message))
            }
            SchemaError::DuplicateQualifiedField { .. } | SchemaError::DuplicateUnqualifiedField { .. } => {
                None
            }
        },
        DataFusionError::Plan(message) => Some(planning(message, text)),
        // `DataFusion` rewrites them to `CASE`, whose name differs.
        DataFusionError::Internal(message)
            if message.contains("difference in schemas")
                && (message.contains(" ANY\"") || message.contains(" ALL\"")) =>
        {
            Some((Kind::Unsupported, as_value("a comparison with `ANY` or `ALL` of a subquery")))
        }
        DataFusionError::NotImplemented(message) => Some((Kind::Unsupported, unsupported(message))),
        _ => None,
    }
}

/// `… at Line: 1, Column: 8` in our words.
fn place(message: &str) -> String {
    // the token comes as it is in memory
    let unknown =
        message.strip_prefix("No infix parser for token ").and_then(|rest| rest.split_once(" at Line: "));
    let message = match unknown {
        Some((_, place)) => format!("the operator is not known at Line: {place}"),
        None => message.to_owned(),
    };
    message
        .replace("Expected: ", "expected ")
        .replace(", found: ", ", found ")
        .replace(" at Line: ", " at line ")
        .replace(", Column: ", ", column ")
        .replace("found EOF", "found the end of the text")
}

fn planning(message: &str, text: &str) -> (QueryErrorKind, String) {
    let missing = |what: &str, name: &str| {
        (QueryErrorKind::NotFound, format!("{what} `{name}` does not exist{}", case_hint(name, text)))
    };
    if message.starts_with("In/Exist/SetComparison subquery can only be used") {
        let text = "a condition on a subquery is not supported in this place; use it in `WHERE`";
        return (QueryErrorKind::Unsupported, text.to_owned());
    }
    if let Some(name) = between(message, "table '", "' not found") {
        return missing("table", name);
    }
    if let Some(name) = between(message, "table function '", "' not found") {
        return missing("table function", name);
    }
    if let Some(name) = message.strip_prefix("failed to resolve schema: ") {
        return missing("schema", name);
    }
    if let Some(name) = message.strip_prefix("failed to resolve catalog: ") {
        return missing("catalog", name);
    }
    if let Some(name) = between(message, "Invalid function '", "'") {
        let similar = between(message, "Did you mean '", "'?")
            .filter(|similar| normalized_levenshtein(similar, name) >= 0.5);
        let hint = similar.map(|similar| format!(": did you mean `{similar}`?")).unwrap_or_default();
        return (QueryErrorKind::NotFound, format!("function `{name}` does not exist{hint}"));
    }
    (QueryErrorKind::Syntax, message.to_owned())
}

/// What is not supported, without the inside of a plan or a syntax tree that `DataFusion` prints.
fn unsupported(message: &str) -> String {
    match message.strip_prefix("Physical plan does not support logical expression ") {
        Some(expr) if expr.starts_with("Exists") => as_value("`EXISTS (SELECT …)`"),
        Some(expr) if expr.starts_with("InSubquery") => as_value("`IN (SELECT …)`"),
        Some(expr) if expr.starts_with("ScalarSubquery") || expr.starts_with("OuterReferenceColumn") => {
            "a subquery that uses columns of the query around it, or `LATERAL`, is not supported here; use a join".to_owned()
        }
        Some(_) => "an expression of this kind is not supported here".to_owned(),
        None => match message.split_once(['{', '[']) {
            Some((before, _)) => before.trim_end().to_owned(),
            None => message.to_owned(),
        },
    }
}

fn as_value(what: &str) -> String {
    format!("{what} as a value is not supported; use it as a condition in `WHERE`")
}

fn missing_column(field: &Column, valid: &[Column], text: &str) -> String {
    let name = &field.name;
    let in_other_case = valid.iter().find(|column| column.name.eq_ignore_ascii_case(name));
    let similar = valid
        .iter()
        .map(|column| (normalized_levenshtein(&column.name, name), column))
        .filter(|(similarity, _)| *similarity >= 0.5)
        .max_by(|left, right| left.0.total_cmp(&right.0));
    let hint = match (in_other_case, similar) {
        (Some(column), _) => quoting_hint(&column.name),
        (None, Some((_, column))) => format!(": did you mean `{}`?", column.name),
        (None, None) => case_hint(name, text),
    };
    format!("column `{name}` does not exist{hint}")
}

/// A hint, if the name was written with capitals and without quotes.
fn case_hint(name: &str, text: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    let tokens = parse::tokens(text).unwrap_or_default();
    let written = tokens.iter().find_map(|token| match &token.token {
        Token::Word(word)
            if word.quote_style.is_none() && word.value != last && word.value.eq_ignore_ascii_case(last) =>
        {
            Some(word.value.as_str())
        }
        _ => None,
    });
    written.map(quoting_hint).unwrap_or_default()
}

fn quoting_hint(name: &str) -> String {
    format!(": names without quotes are read in lower case, write \"{name}\" in double quotes")
}

/// A table's name with dashes that was written without quotes.
fn dashed(tokens: &[TokenWithSpan]) -> Option<String> {
    let is_before_name = |token: &Token| {
        matches!(token, Token::Word(word) if word.quote_style.is_none()
            && matches!(word.keyword, Keyword::FROM | Keyword::JOIN | Keyword::DESCRIBE | Keyword::TABLE))
    };
    let mut befores = tokens.iter().enumerate().filter(|(_, token)| is_before_name(&token.token));
    befores.find_map(|(before, _)| {
        let rest = tokens.get(before + 1..)?.iter();
        let name = rest.skip_while(|token| matches!(token.token, Token::Whitespace(_)));
        let name = name.take_while(|token| match &token.token {
            Token::Word(word) => word.quote_style.is_none(),
            token => matches!(token, Token::Minus | Token::Period | Token::Number(..)),
        });
        let name: String = name.map(|token| token.token.to_string()).collect();
        let name = name.trim_end_matches(['-', '.']);
        (name.contains('-') && !name.starts_with('-')).then(|| name.to_owned())
    })
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(inside, _)| inside)
}

/// The first line, beginning in lower case unless with an abbreviation or a name in quotes.
fn one_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default().trim().trim_end_matches('.');
    let mut characters = line.chars();
    match (characters.next(), characters.next()) {
        (Some(first), Some(second)) if first.is_ascii_uppercase() && !second.is_ascii_uppercase() => {
            let rest: String = line.chars().skip(1).collect();
            format!("{}{rest}", first.to_ascii_lowercase())
        }
        _ => line.to_owned(),
    }
}
