//! What PostgreSQL means and the engine would read otherwise: literals of `bytea`, patterns of `to_char`, encodings, the
//! types that a client declares for its parameters, and the names of columns.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    SelectItem, Statement, Value, VisitMut, VisitorMut,
};

use super::catalog::{call, cast, first_select, name_of, parse, parts};
use super::parameters::bytea;
use super::pattern;
use super::refusal::{Refusal, state};
use super::types::{array_of, oid};
use crate::dialect::{self, Order, Scope, UNDECIDED};

/// A statement in the engine's words.
#[derive(Debug, Default)]
pub(crate) struct Translated {
    statement: Option<Parsed>,
    changed: bool,
    names: Vec<Name>,
    /// Parameters that are cast to `bytea` and whose type the client leaves open.
    pub(crate) bytes: BTreeSet<usize>,
    /// Parameters that are cast to another type.
    pub(crate) casts: BTreeMap<usize, u32>,
    /// Literals that are bytes if what they are compared with is; they stand as parameters from [`UNDECIDED`] on.
    undecided: Vec<String>,
}

/// The name of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    /// That of the engine.
    Same,
    Given(String),
    /// All columns of a table.
    Wildcard,
}

/// Translates a statement; what cannot be parsed is left for the engine to refuse.
pub(crate) fn translate(text: &str, types: &[u32]) -> Result<Translated, Refusal> {
    let Some(parsed) = dialect::parse(text).ok().and_then(|mut statements| statements.pop()) else {
        return Ok(Translated::default());
    };
    let mut names = Vec::new();
    if let Parsed::Statement(statement) = &parsed
        && let Statement::Query(query) = statement.as_ref()
        && let Some(select) = first_select(&query.body)
    {
        names = select.projection.iter().map(name).collect();
    }
    // this also balances what would be too deep to be visited
    let Ok(Order::Query(statement)) = dialect::understand(parsed, Scope::default()) else {
        return Ok(Translated::default());
    };
    let mut parsed = *statement;
    let Some(statement) = inner(&mut parsed) else { return Ok(Translated::default()) };
    let (bytes, casts) = (BTreeSet::new(), BTreeMap::new());
    let mut translator = Translator { types, changed: false, bytes, casts, own: 0 };
    if let ControlFlow::Break(refusal) = VisitMut::visit(statement, &mut translator) {
        return Err(*refusal);
    }
    let Translator { changed, bytes, casts, own, .. } = translator;
    let mut literals = Literals { found: Vec::new() };
    if text.contains("\\x") && own <= UNDECIDED {
        let _ = VisitMut::visit(statement, &mut literals);
    }
    Ok(Translated { statement: Some(parsed), changed, names, bytes, casts, undecided: literals.found })
}

impl Translated {
    /// The statement by which the engine can tell which literals are bytes, if there are such.
    pub(crate) fn undecided(&self) -> Option<String> {
        self.statement.as_ref().filter(|_| !self.undecided.is_empty()).map(ToString::to_string)
    }

    /// Puts the literals back: as bytes where `is_bytes` says so of a parameter's index.
    pub(crate) fn decide(&mut self, is_bytes: impl Fn(usize) -> bool) {
        let literals = std::mem::take(&mut self.undecided);
        let changed = &mut self.changed;
        let mut change = Placeholders(|number: usize| {
            let text = literals.get(number.checked_sub(UNDECIDED)?.checked_sub(1)?)?;
            let bytes = bytea(text).filter(|_| is_bytes(number.saturating_sub(1)));
            *changed |= bytes.is_some();
            Some(bytes.map_or_else(
                || Expr::value(Value::SingleQuotedString(text.clone())),
                |bytes| bytes_literal(&bytes),
            ))
        });
        if let Some(statement) = self.statement.as_mut().and_then(inner) {
            let _ = VisitMut::visit(statement, &mut change);
        }
    }

    /// The statement by which the engine can tell which of these parameters are compared with bytes: those that are bytes if
    /// [`UNDECIDED`] is added to their indices.
    pub(crate) fn asking(&self, indices: &BTreeSet<usize>) -> Option<String> {
        let mut parsed = self.statement.clone()?;
        let mut change = Placeholders(|number: usize| {
            let index = number.checked_sub(1).filter(|index| indices.contains(index))?;
            let number = index.saturating_add(UNDECIDED).saturating_add(1);
            Some(Expr::value(Value::Placeholder(format!("${number}"))))
        });
        let _ = VisitMut::visit(inner(&mut parsed)?, &mut change);
        Some(parsed.to_string())
    }

    /// Its text, if it is not the one that was given.
    pub(crate) fn text(&self) -> Option<String> {
        self.statement.as_ref().filter(|_| self.changed).map(ToString::to_string)
    }

    /// The statement with its parameters of the types that the client has declared, to be described only.
    pub(crate) fn typed(&self, types: &[u32]) -> Option<String> {
        let mut parsed = self.statement.clone()?;
        let mut found = false;
        let mut change = Placeholders(|number: usize| {
            let name = sql_type(*types.get(number.checked_sub(1)?)?)?;
            found = true;
            Some(parse(&format!("CAST(${number} AS {name})")))
        });
        let _ = VisitMut::visit(inner(&mut parsed)?, &mut change);
        found.then(|| parsed.to_string())
    }

    /// The columns of an answer with PostgreSQL's names.
    pub(crate) fn named(&self, schema: &Schema) -> SchemaRef {
        let wildcards = self.names.iter().filter(|name| **name == Name::Wildcard).count();
        let listed = self.names.len().saturating_sub(wildcards);
        let rest = schema.fields().len().checked_sub(listed);
        let mut names: Vec<&Name> = Vec::new();
        if let Some(rest) = rest.filter(|rest| wildcards == 1 || (wildcards == 0 && *rest == 0)) {
            for name in &self.names {
                let times = if *name == Name::Wildcard { rest } else { 1 };
                names.extend(std::iter::repeat_n(name, times));
            }
        }
        let field = |(index, field): (usize, &Arc<Field>)| {
            let name = match names.get(index) {
                Some(Name::Given(name)) => name.clone(),
                _ => field.name().clone(),
            };
            field.as_ref().clone().with_name(name)
        };
        Arc::new(Schema::new(schema.fields().iter().enumerate().map(field).collect::<Vec<_>>()))
    }
}

/// The statement that is explained, or itself.
fn inner(parsed: &mut Parsed) -> Option<&mut Statement> {
    match parsed {
        Parsed::Statement(statement) => Some(statement),
        Parsed::Explain(explain) => inner(&mut explain.statement),
        _ => None,
    }
}

fn name(item: &SelectItem) -> Name {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => Name::Same,
        SelectItem::UnnamedExpr(expr) => name_of(expr).map_or(Name::Same, Name::Given),
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => Name::Wildcard,
        _ => Name::Same,
    }
}

struct Translator<'a> {
    types: &'a [u32],
    changed: bool,
    bytes: BTreeSet<usize>,
    casts: BTreeMap<usize, u32>,
    own: usize,
}

impl VisitorMut for Translator<'_> {
    type Break = Box<Refusal>;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Some(number) = placeholder(expr) {
            self.own = self.own.max(number);
        }
        if let Expr::Cast { expr: inner, data_type, .. } = expr
            && let Some(index) = placeholder(inner).and_then(|number| number.checked_sub(1))
            && let Some(number) = oid_of_name(data_type)
        {
            self.casts.insert(index, number);
        }
        let new = match expr {
            Expr::Cast { expr: inner, data_type: DataType::Bytea, .. } => self.bytea(inner),
            Expr::Function(function) => {
                let name = parts(&function.name).pop().unwrap_or_default();
                match &function.args {
                    FunctionArguments::List(list) => match list.args.as_slice() {
                        [
                            FunctionArg::Unnamed(FunctionArgExpr::Expr(first)),
                            FunctionArg::Unnamed(FunctionArgExpr::Expr(second)),
                        ] => function_of_two(&name, first, second),
                        _ => Ok(None),
                    },
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        };
        match new {
            Ok(Some(new)) => {
                *expr = new;
                self.changed = true;
                ControlFlow::Continue(())
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(refusal) => ControlFlow::Break(Box::new(refusal)),
        }
    }
}

impl Translator<'_> {
    /// What is cast to `bytea`.
    fn bytea(&mut self, inner: &Expr) -> Result<Option<Expr>, Refusal> {
        if let Some(index) = placeholder(inner).and_then(|number| number.checked_sub(1)) {
            let declared = self.types.get(index).copied().unwrap_or_default();
            if matches!(declared, 0 | oid::UNKNOWN | oid::TEXT | oid::VARCHAR) {
                self.bytes.insert(index);
            }
        }
        let Some(text) = text_of(inner) else { return Ok(None) };
        let bytes = bytea(text).ok_or_else(|| {
            Refusal::error(state::INVALID_TEXT, format!("invalid input for type bytea: `{text}`"))
        })?;
        Ok(Some(bytes_literal(&bytes)))
    }
}

/// A function of two arguments that PostgreSQL has and the engine has not, or with another meaning.
fn function_of_two(name: &str, first: &Expr, second: &Expr) -> Result<Option<Expr>, Refusal> {
    let refuse = |text: String| Err(Refusal::error(state::FEATURE_NOT_SUPPORTED, text));
    let text = text_of(second);
    let lower = text.map(str::to_ascii_lowercase);
    let utf8 = matches!(lower.as_deref(), Some("utf8" | "utf-8" | "unicode"));
    match (name, lower.as_deref()) {
        ("convert_from", _) if utf8 => Ok(Some(cast(first.clone(), DataType::Text))),
        ("convert_to", _) if utf8 => Ok(Some(cast(call("concat", vec![first.clone()]), DataType::Bytea))),
        ("convert_from" | "convert_to", _) => refuse(format!("`{name}` knows the encoding UTF8 only")),
        ("encode" | "decode", Some("escape")) => refuse(format!("`{name}` of the format `escape`")),
        ("encode", Some("base64")) => {
            let padded = call(
                "encode",
                vec![first.clone(), Expr::value(Value::SingleQuotedString("base64pad".into()))],
            );
            // PostgreSQL breaks lines after each 76 letters, unless the last ones are padding.
            let mut lines = parse("regexp_replace(NULL, '([^=]{76})', E'\\\\1\\n', 'g')");
            if let Expr::Function(function) = &mut lines
                && let FunctionArguments::List(list) = &mut function.args
                && let Some(subject) = list.args.first_mut()
            {
                *subject = FunctionArg::Unnamed(FunctionArgExpr::Expr(padded));
            }
            Ok(Some(lines))
        }
        ("to_char", Some(_)) => {
            let given = text.unwrap_or_default();
            // A pattern with percents is one of the engine's own.
            if given.contains('%') {
                return Ok(None);
            }
            match pattern::translated(given) {
                Some(pattern) => Ok(Some(call(
                    "to_char",
                    vec![first.clone(), Expr::value(Value::SingleQuotedString(pattern))],
                ))),
                None => refuse(format!("`to_char` with the pattern `{given}`")),
            }
        }
        ("to_char", None) => refuse("`to_char` with a pattern that is not a literal".to_owned()),
        _ => Ok(None),
    }
}

/// Finds literals in PostgreSQL's hex form of bytes that are compared with something.
struct Literals {
    found: Vec<String>,
}

impl Literals {
    fn take(&mut self, expr: &mut Expr) {
        if let Some(text) = text_of(expr)
            && text.starts_with("\\x")
            && bytea(text).is_some()
        {
            self.found.push(text.to_owned());
            let number = UNDECIDED.saturating_add(self.found.len());
            *expr = Expr::value(Value::Placeholder(format!("${number}")));
        }
    }
}

impl VisitorMut for Literals {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::BinaryOp {
                left,
                op:
                    BinaryOperator::Eq
                    | BinaryOperator::NotEq
                    | BinaryOperator::Lt
                    | BinaryOperator::LtEq
                    | BinaryOperator::Gt
                    | BinaryOperator::GtEq,
                right,
            }
            | Expr::IsDistinctFrom(left, right)
            | Expr::IsNotDistinctFrom(left, right) => {
                self.take(left);
                self.take(right);
            }
            Expr::InList { list, .. } => list.iter_mut().for_each(|item| self.take(item)),
            Expr::Between { low, high, .. } => {
                self.take(low);
                self.take(high);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Replaces parameters by what is given for their numbers.
struct Placeholders<F>(F);

impl<F: FnMut(usize) -> Option<Expr>> VisitorMut for Placeholders<F> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(new) = placeholder(expr).and_then(&mut self.0) {
            *expr = new;
        }
        ControlFlow::Continue(())
    }
}

fn placeholder(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Placeholder(name) = &value.value else { return None };
    name.strip_prefix('$')?.parse().ok()
}

fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
        Expr::Nested(expr) => text_of(expr),
        _ => None,
    }
}

fn bytes_literal(bytes: &[u8]) -> Expr {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
    let digits: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    if digits.is_empty() {
        cast(Expr::value(Value::SingleQuotedString(String::new())), DataType::Bytea)
    } else {
        Expr::value(Value::HexStringLiteral(digits))
    }
}

/// The type that a parameter has because it is cast to it. A time in a zone is not among them: it is read in the zone of the
/// session, by the engine.
fn oid_of_name(data_type: &DataType) -> Option<u32> {
    if let DataType::Array(ArrayElemTypeDef::SquareBracket(element, None)) = data_type {
        return oid_of_name(element).map(array_of);
    }
    Some(match data_type.to_string().to_ascii_lowercase().as_str() {
        "bool" | "boolean" => oid::BOOL,
        "int2" | "smallint" => oid::INT2,
        "int" | "int4" | "integer" => oid::INT4,
        "int8" | "bigint" => oid::INT8,
        "float4" | "real" => oid::FLOAT4,
        "float8" | "double" | "double precision" => oid::FLOAT8,
        "date" => oid::DATE,
        "timestamp" | "timestamp without time zone" => oid::TIMESTAMP,
        "text" | "varchar" => oid::TEXT,
        "oid" => oid::OID,
        _ => return None,
    })
}

/// The name of a type that decides what an answer is; texts are what a parameter is taken for anyhow.
const fn sql_type(number: u32) -> Option<&'static str> {
    Some(match number {
        oid::BOOL => "BOOLEAN",
        oid::BYTEA => "BYTEA",
        oid::INT2 => "SMALLINT",
        oid::INT4 => "INT",
        oid::INT8 => "BIGINT",
        oid::OID => "INT UNSIGNED",
        oid::FLOAT4 => "REAL",
        oid::FLOAT8 => "DOUBLE PRECISION",
        oid::NUMERIC => "DECIMAL(38, 10)",
        oid::DATE => "DATE",
        oid::TIME => "TIME",
        oid::TIMESTAMP => "TIMESTAMP",
        oid::TIMESTAMPTZ => "TIMESTAMP WITH TIME ZONE",
        _ => return None,
    })
}
