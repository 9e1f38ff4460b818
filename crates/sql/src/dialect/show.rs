//! `SHOW` as queries of the information schema.

use datafusion::catalog::CatalogProviderList;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Ident, ObjectName, ShowStatementFilter, ShowStatementFilterPosition, ShowStatementIn,
    ShowStatementOptions,
};

use super::{Scope, order, parse, syntax};
use crate::error::{QueryError, QueryErrorKind};

/// Where a listing looks: a schema, if it is the schema's tables that are listed.
struct Place {
    catalog: String,
    schema: Option<String>,
}

/// See [`super::look_up`].
pub(super) fn look_up(
    statement: &Statement,
    catalog: &str,
    schema: &str,
    catalogs: &dyn CatalogProviderList,
) -> Result<(), QueryError> {
    let Statement::Statement(statement) = statement else {
        return Ok(());
    };
    let place = match statement.as_ref() {
        ast::Statement::ShowSchemas { show_options, .. } => schemas_place(show_options, catalog)?,
        ast::Statement::ShowTables { show_options, .. } => tables_place(show_options, catalog, schema)?,
        _ => return Ok(()),
    };
    let Some(catalog) = catalogs.catalog(&place.catalog) else {
        return Err(missing("catalog", &place.catalog));
    };
    match place.schema {
        Some(schema) if schema != INFORMATION_SCHEMA && catalog.schema(&schema).is_none() => {
            Err(missing("schema", &schema))
        }
        _ => Ok(()),
    }
}

fn missing(what: &str, name: &str) -> QueryError {
    QueryError::new(QueryErrorKind::NotFound, format!("{what} `{name}` does not exist"))
}

fn schemas_place(options: &ShowStatementOptions, catalog: &str) -> Result<Place, QueryError> {
    let catalog = match place(options)?.as_deref() {
        None => catalog.to_owned(),
        Some([catalog]) => catalog.clone(),
        Some(parts) => return Err(too_many_parts("SHOW SCHEMAS", parts)),
    };
    Ok(Place { catalog, schema: None })
}

fn tables_place(options: &ShowStatementOptions, catalog: &str, schema: &str) -> Result<Place, QueryError> {
    let (catalog, schema) = match place(options)?.as_deref() {
        None => (catalog.to_owned(), schema.to_owned()),
        Some([schema]) => (catalog.to_owned(), schema.clone()),
        Some([catalog, schema]) => (catalog.clone(), schema.clone()),
        Some(parts) => return Err(too_many_parts("SHOW TABLES", parts)),
    };
    Ok(Place { catalog, schema: Some(schema) })
}

/// `SHOW SCHEMAS [IN catalog] [LIKE 'pattern']`: one column `Schema`.
pub(super) fn schemas(options: ShowStatementOptions, scope: Scope<'_>) -> Result<Statement, QueryError> {
    let Place { catalog, .. } = schemas_place(&options, scope.catalog)?;
    let rows = format!(
        r#"SELECT schema_name AS "Schema" FROM {place}.{INFORMATION_SCHEMA}.schemata WHERE catalog_name = {name}
           UNION SELECT '{INFORMATION_SCHEMA}' AS "Schema""#,
        place = quoted(&catalog),
        name = literal(&catalog),
    );
    listing("Schema", &rows, filter(options)?)
}

/// `SHOW TABLES [IN [catalog.]schema] [LIKE 'pattern']`: one column `Table`.
pub(super) fn tables(options: ShowStatementOptions, scope: Scope<'_>) -> Result<Statement, QueryError> {
    let Place { catalog, schema } = tables_place(&options, scope.catalog, scope.schema)?;
    let rows = format!(
        r#"SELECT table_name AS "Table" FROM {place}.{INFORMATION_SCHEMA}.tables
           WHERE table_catalog = {catalog} AND table_schema = {schema}"#,
        place = quoted(&catalog),
        catalog = literal(&catalog),
        schema = literal(&schema.unwrap_or_default()),
    );
    listing("Table", &rows, filter(options)?)
}

/// `SHOW CATALOGS [LIKE 'pattern']`, also called `SHOW DATABASES`.
pub(super) fn catalogs(
    options: ShowStatementOptions,
    column: &str,
    scope: Scope<'_>,
) -> Result<Statement, QueryError> {
    if let Some(parts) = place(&options)? {
        return Err(too_many_parts("SHOW CATALOGS", &parts));
    }
    let names: Vec<String> = scope.catalogs.iter().map(|name| format!("({})", literal(name))).collect();
    let rows = format!("SELECT * FROM (VALUES {}) AS names({})", names.join(", "), quoted(column));
    listing(column, &rows, filter(options)?)
}

/// `SHOW TIME ZONE`, and `SHOW ALL` of the variables that a session has: the time zone. What the engine has besides is
/// nobody's business.
pub(super) fn variable(words: &[Ident], scope: Scope<'_>) -> Result<Statement, QueryError> {
    let words: Vec<String> = words.iter().map(|word| word.value.to_ascii_lowercase()).collect();
    let zone = literal(scope.time_zone.unwrap_or("UTC"));
    let text = match words.join(".").as_str() {
        name if order::is_time_zone(name) => format!("SELECT {zone} AS \"TimeZone\""),
        "all" => format!("SELECT 'TimeZone' AS name, {zone} AS setting"),
        name => {
            let text = format!("`{name}` cannot be shown: the variable of a session is its `TIME ZONE`");
            return Err(QueryError::new(QueryErrorKind::Unsupported, text));
        }
    };
    let statement = parse::parse(&text)?.pop();
    statement.ok_or_else(|| QueryError::new(QueryErrorKind::Internal, "a variable without a query"))
}

/// `SHOW COLUMNS FROM table`: the same as `DESCRIBE table`.
pub(super) fn columns(options: ShowStatementOptions) -> Result<Statement, QueryError> {
    let (Some(parts), None) = (place(&options)?, filter(options)?) else {
        let message = "`SHOW COLUMNS` is written `SHOW COLUMNS FROM table`, without more";
        return Err(QueryError::new(QueryErrorKind::Syntax, message));
    };
    let name: Vec<Ident> = parts.into_iter().map(|part| Ident::with_quote('"', part)).collect();
    Ok(Statement::Statement(Box::new(ast::Statement::ExplainTable {
        describe_alias: ast::DescribeAlias::Describe,
        hive_format: None,
        has_table_keyword: false,
        table_name: ObjectName::from(name),
    })))
}

/// The parts of a name; those without quotes in lower case.
pub(super) fn parts(name: &ObjectName) -> Result<Vec<String>, QueryError> {
    let part = |part: &ast::ObjectNamePart| match part.as_ident() {
        Some(ident) if ident.quote_style.is_some() => Ok(ident.value.clone()),
        Some(ident) => Ok(ident.value.to_ascii_lowercase()),
        None => Err(QueryError::new(QueryErrorKind::Syntax, format!("`{name}` is not a name"))),
    };
    name.0.iter().map(part).collect()
}

/// The name after `IN`.
fn place(options: &ShowStatementOptions) -> Result<Option<Vec<String>>, QueryError> {
    match &options.show_in {
        Some(ShowStatementIn { parent_name: Some(name), .. }) => parts(name).map(Some),
        _ => Ok(None),
    }
}

/// The filter; refuses the rest of what the parser knows.
fn filter(options: ShowStatementOptions) -> Result<Option<ShowStatementFilter>, QueryError> {
    if options.starts_with.is_some() || options.limit.is_some() || options.limit_from.is_some() {
        return Err(QueryError::new(QueryErrorKind::Unsupported, "`SHOW` takes `IN` and `LIKE` only"));
    }
    Ok(options.filter_position.map(|position| match position {
        ShowStatementFilterPosition::Infix(filter) | ShowStatementFilterPosition::Suffix(filter) => filter,
    }))
}

/// The rows of one column that pass the filter, in order.
fn listing(column: &str, rows: &str, filter: Option<ShowStatementFilter>) -> Result<Statement, QueryError> {
    let column = quoted(column);
    let condition = match filter {
        None => "true".to_owned(),
        Some(ShowStatementFilter::Like(pattern) | ShowStatementFilter::NoKeyword(pattern)) => {
            format!("{column} LIKE {}", literal(&pattern))
        }
        Some(ShowStatementFilter::ILike(pattern)) => format!("{column} ILIKE {}", literal(&pattern)),
        Some(ShowStatementFilter::Where(condition)) => condition.to_string(),
    };
    let text = format!("SELECT {column} FROM ({rows}) AS listing WHERE {condition} ORDER BY {column}");
    let Some(Statement::Statement(mut statement)) = parse::parse(&text)?.pop() else {
        return Err(QueryError::new(QueryErrorKind::Internal, "a listing without a query"));
    };
    if let ast::Statement::Query(query) = statement.as_mut() {
        syntax::rewrite(query);
    }
    Ok(Statement::Statement(statement))
}

/// A name in double quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn too_many_parts(statement: &str, parts: &[String]) -> QueryError {
    let name = parts.join(".");
    QueryError::new(QueryErrorKind::Syntax, format!("`{name}` is not a place that `{statement}` lists"))
}

/// A schema that every catalog has.
const INFORMATION_SCHEMA: &str = "information_schema";
