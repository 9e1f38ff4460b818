//! Rewrites a statement about the catalog into one that DataFusion plans: names without `pg_catalog`, casts to PostgreSQL's
//! own types, and functions that answer always the same.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select, Statement,
    TableFactor, Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::super::refusal::Refusal;
use super::super::variables::{Variables, version};
use super::functions::RELATION_NAME;
use super::{Facts, listing, select, types};
use crate::dialect::{self, literal};

/// A statement that can be planned, and what it asks for.
#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) statement: Statement,
    /// Tables of `pg_catalog`.
    pub(super) tables: BTreeSet<String>,
    /// Tables of `information_schema`.
    pub(super) standard_tables: BTreeSet<String>,
    /// Whether it has to be known what there is.
    pub(super) asks: bool,
    /// Variables that it sets.
    pub(super) settings: Vec<(String, String)>,
}

/// Rewrites a statement.
pub(super) fn rewrite(
    statement: &Statement,
    facts: &Facts,
    variables: &Variables,
) -> Result<Rewritten, Refusal> {
    let mut rewriter = Rewriter {
        facts,
        variables,
        tables: BTreeSet::new(),
        standard_tables: BTreeSet::new(),
        asks: false,
        settings: Vec::new(),
    };
    let mut statement = statement.clone();
    if let ControlFlow::Break(refusal) = VisitMut::visit(&mut statement, &mut rewriter) {
        return Err(*refusal);
    }
    let Rewriter { tables, standard_tables, asks, settings, .. } = rewriter;
    let asks = asks || !tables.is_empty() || !standard_tables.is_empty();
    Ok(Rewritten { statement, tables, standard_tables, asks, settings })
}

struct Rewriter<'a> {
    facts: &'a Facts,
    variables: &'a Variables,
    tables: BTreeSet<String>,
    standard_tables: BTreeSet<String>,
    asks: bool,
    settings: Vec<(String, String)>,
}

impl VisitorMut for Rewriter<'_> {
    type Break = Box<Refusal>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        select::prune(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        select::name(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Table { name, args: Some(_), .. } = factor
            && let Some(function) = parts(name).pop()
        {
            *name = ObjectName::from(vec![Ident::new(function.clone())]);
            if super::layout::is_table(&function)
                && let TableFactor::Table { args, .. } = factor
            {
                *args = None;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Self::Break> {
        let names = parts(relation);
        let (schema, name) = match names.as_slice() {
            [.., schema, name] => (schema.as_str(), name),
            [name] => ("pg_catalog", name),
            [] => return ControlFlow::Continue(()),
        };
        if schema == "information_schema" {
            self.standard_tables.insert(name.clone());
            *relation = ObjectName::from(vec![Ident::with_quote('"', schema), Ident::with_quote('"', name)]);
        } else if super::layout::is_table(name) {
            self.tables.insert(name.clone());
            *relation = ObjectName::from(vec![Ident::with_quote('"', name)]);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        select::prune_expr(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Like { .. } | Expr::ILike { .. } => dialect::escape_with_backslash(expr),
            Expr::Collate { expr: inner, .. } => *expr = std::mem::replace(inner, null()),
            Expr::BinaryOp { op: operator @ BinaryOperator::PGCustomBinaryOperator(_), .. } => {
                if let BinaryOperator::PGCustomBinaryOperator(names) = &*operator
                    && let Some(plain) = names.last().and_then(|name| operator_of(name))
                {
                    *operator = plain;
                }
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => {
                if let Expr::Array(array) = right.as_mut() {
                    let list = std::mem::take(&mut array.elem);
                    *expr = Expr::InList {
                        expr: std::mem::replace(left, Box::new(null())),
                        list,
                        negated: false,
                    };
                }
            }
            Expr::Cast { expr: inner, data_type, .. } => {
                let inner = std::mem::replace(inner.as_mut(), null());
                let data_type = data_type.clone();
                *expr = self.cast(inner, data_type);
            }
            Expr::Function(function) => {
                let function = function.clone();
                if let Some(value) = self.function(function) {
                    *expr = value;
                }
            }
            Expr::Subquery(query) => select::aggregate(query),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Rewriter<'_> {
    fn cast(&mut self, inner: Expr, data_type: DataType) -> Expr {
        let name = match &data_type {
            DataType::Regclass => "regclass".to_owned(),
            DataType::Custom(name, _) => parts(name).pop().unwrap_or_default(),
            // a parameter of numbers of objects, as asyncpg asks for types
            DataType::Array(ArrayElemTypeDef::SquareBracket(element, None))
                if element.to_string().eq_ignore_ascii_case("oid") && is_placeholder(&inner) =>
            {
                let number = Box::new(DataType::IntUnsigned(None));
                return cast(inner, DataType::Array(ArrayElemTypeDef::SquareBracket(number, None)));
            }
            DataType::Array(_) => return cast(inner, DataType::Text),
            _ => return cast(inner, data_type),
        };
        let constant = matches!(&inner, Expr::Value(value) if !matches!(value.value, Value::Number(..)));
        match name.as_str() {
            "regclass" => {
                self.asks = true;
                call(if constant { "to_regclass" } else { RELATION_NAME }, vec![inner])
            }
            "regtype" if constant => {
                let number = text_of(&inner).and_then(|name| types::by_name(&name));
                number.map_or_else(null, |number| parse(&number.to_string()))
            }
            "regtype" => {
                self.asks = true;
                call("format_type", vec![inner, null()])
            }
            "oid" | "xid" => cast(inner, DataType::IntUnsigned(None)),
            "int2" => cast(inner, DataType::SmallInt(None)),
            "int4" => cast(inner, DataType::Int(None)),
            "int8" => cast(inner, DataType::BigInt(None)),
            "bool" => cast(inner, DataType::Boolean),
            "float4" => cast(inner, DataType::Real),
            "float8" => cast(inner, DataType::Double(ExactNumberInfo::None)),
            _ => cast(inner, DataType::Text),
        }
    }

    fn function(&mut self, mut function: Function) -> Option<Expr> {
        let name = parts(&function.name).pop()?;
        if let Some(value) = constant(&name, self.facts) {
            return Some(value);
        }
        match (name.as_str(), arguments(&function).as_slice()) {
            ("set_config", [variable, value, ..]) => {
                if let (Some(variable), Some(value)) = (text_of(variable), text_of(value)) {
                    self.settings.push((variable, value));
                }
                return Some((*value).clone());
            }
            ("current_setting", [variable, ..]) => {
                let name = text_of(variable).unwrap_or_default();
                let value = self.variables.get(&name).map(|(_, value)| literal(value));
                return Some(value.map_or_else(null, |value| parse(&value)));
            }
            ("array", []) => {
                // The query gathers its rows itself.
                if let FunctionArguments::Subquery(query) = &mut function.args {
                    select::gather(query);
                    return Some(Expr::Subquery(query.clone()));
                }
            }
            (
                "pg_table_is_visible"
                | "format_type"
                | "quote_ident"
                | "to_regclass"
                | "to_regtype"
                | "array_to_string"
                | "pg_size_pretty",
                _,
            ) => {
                self.asks = true;
            }
            _ => {}
        }
        // Functions have no schema; those of PostgreSQL that DataFusion has, too, have the same names.
        function.name = ObjectName::from(vec![Ident::new(name)]);
        Some(Expr::Function(function))
    }
}

/// The names of an object as they are looked up: in lower case where they are not quoted.
pub(crate) fn parts(name: &ObjectName) -> Vec<String> {
    let ident = |ident: &Ident| {
        if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
    };
    name.0.iter().filter_map(ObjectNamePart::as_ident).map(ident).collect()
}

/// Whether a function answers always the same in a session.
pub(super) fn is_constant(name: &str) -> bool {
    CONSTANTS.iter().any(|(known, _)| *known == name)
}

/// The answer of a function that answers always the same in a session.
pub(super) fn constant(name: &str, facts: &Facts) -> Option<Expr> {
    let text = match name {
        "version" => literal(&version()),
        "current_database" | "current_catalog" => literal(&facts.database),
        "current_schema" => literal(&facts.schema),
        "current_schemas" => format!("make_array({})", literal(&facts.schema)),
        "current_user" | "session_user" | "current_role" | "user" => literal(&facts.user),
        "pg_backend_pid" => facts.process.to_string(),
        "pg_get_userbyid" => literal(listing::OWNER_NAME),
        name if name.starts_with("has_") && name.ends_with("_privilege") => "TRUE".to_owned(),
        name if name.starts_with("pg_") && name.ends_with("_is_visible") && name != "pg_table_is_visible" => {
            "TRUE".to_owned()
        }
        _ => CONSTANTS.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())?,
    };
    Some(parse(&text))
}

/// An expression that we wrote ourselves.
pub(crate) fn parse(text: &str) -> Expr {
    let parsed =
        Parser::new(&PostgreSqlDialect {}).try_with_sql(text).and_then(|mut parser| parser.parse_expr());
    parsed.unwrap_or_else(|_| null())
}

pub(super) fn null() -> Expr {
    Expr::value(Value::Null)
}

pub(crate) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// A call of a function of ours.
pub(crate) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let mut call = parse(&format!("{name}()"));
    if let Expr::Function(function) = &mut call
        && let FunctionArguments::List(list) = &mut function.args
    {
        list.args =
            arguments.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    }
    call
}

fn arguments(function: &Function) -> Vec<&Expr> {
    match &function.args {
        FunctionArguments::List(list) => {
            let expr = |argument| match argument {
                &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
                _ => None,
            };
            list.args.iter().filter_map(expr).collect()
        }
        _ => Vec::new(),
    }
}

fn is_placeholder(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Placeholder(_)))
}

/// The text of a literal.
fn text_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text.clone()),
            _ => None,
        },
        Expr::Cast { expr, .. } => text_of(expr),
        _ => None,
    }
}

fn operator_of(name: &str) -> Option<BinaryOperator> {
    Some(match name {
        "~" => BinaryOperator::PGRegexMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        ">" => BinaryOperator::Gt,
        "<=" => BinaryOperator::LtEq,
        ">=" => BinaryOperator::GtEq,
        "||" => BinaryOperator::StringConcat,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        _ => return None,
    })
}

/// Functions with one answer, as SQL. We have no comments, constraints, indexes, views or
/// sequences to tell of; sizes we do not know.
const CONSTANTS: &[(&str, &str)] = &[
    ("col_description", "CAST(NULL AS TEXT)"),
    ("current_catalog", "NULL"),
    ("current_database", "NULL"),
    ("current_role", "NULL"),
    ("current_schema", "NULL"),
    ("current_user", "NULL"),
    ("inet_client_addr", "CAST(NULL AS TEXT)"),
    ("inet_client_port", "CAST(NULL AS INT)"),
    ("inet_server_addr", "CAST(NULL AS TEXT)"),
    ("inet_server_port", "CAST(NULL AS INT)"),
    ("obj_description", "CAST(NULL AS TEXT)"),
    ("pg_advisory_unlock_all", "CAST(NULL AS TEXT)"),
    ("pg_char_to_encoding", "6"),
    ("pg_client_encoding", "'UTF8'"),
    ("pg_database_size", "CAST(NULL AS BIGINT)"),
    ("pg_encoding_to_char", "'UTF8'"),
    ("pg_get_constraintdef", "CAST(NULL AS TEXT)"),
    ("pg_get_expr", "CAST(NULL AS TEXT)"),
    ("pg_get_function_arguments", "CAST(NULL AS TEXT)"),
    ("pg_get_function_identity_arguments", "CAST(NULL AS TEXT)"),
    ("pg_get_function_result", "CAST(NULL AS TEXT)"),
    ("pg_get_functiondef", "CAST(NULL AS TEXT)"),
    ("pg_get_indexdef", "CAST(NULL AS TEXT)"),
    ("pg_get_partkeydef", "CAST(NULL AS TEXT)"),
    ("pg_get_ruledef", "CAST(NULL AS TEXT)"),
    ("pg_get_serial_sequence", "CAST(NULL AS TEXT)"),
    ("pg_get_statisticsobjdef_columns", "CAST(NULL AS TEXT)"),
    ("pg_get_triggerdef", "CAST(NULL AS TEXT)"),
    ("pg_get_viewdef", "CAST(NULL AS TEXT)"),
    ("pg_indexes_size", "CAST(NULL AS BIGINT)"),
    ("pg_is_in_recovery", "FALSE"),
    ("pg_is_other_temp_schema", "FALSE"),
    ("pg_my_temp_schema", "0"),
    ("pg_relation_is_publishable", "FALSE"),
    ("pg_relation_size", "CAST(NULL AS BIGINT)"),
    ("pg_table_size", "CAST(NULL AS BIGINT)"),
    ("pg_tablespace_location", "''"),
    ("pg_tablespace_size", "CAST(NULL AS BIGINT)"),
    ("pg_total_relation_size", "CAST(NULL AS BIGINT)"),
    ("session_user", "NULL"),
    ("shobj_description", "CAST(NULL AS TEXT)"),
    ("txid_current", "CAST(1 AS BIGINT)"),
    ("user", "NULL"),
];
