//! What the server tells about itself and about the types of its columns.

use arrow_flight::error::Result;
use arrow_flight::sql::metadata::{
    SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{
    Nullable, Searchable, SqlInfo, SqlSupportedCaseSensitivity, SqlSupportedTransaction,
    SqlTransactionIsolationLevel, XdbcDataType,
};

/// The answers to `GetSqlInfo`.
pub(super) fn sql_info() -> Result<SqlInfoData> {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Kolumn");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, datafusion::arrow::ARROW_VERSION);
    info.append(SqlInfo::FlightSqlServerReadOnly, true);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerCancel, false);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, false);
    info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    // Nothing is written, and each statement sees what is acknowledged when it begins: that is read committed.
    let transaction = i32::from(SqlSupportedTransaction::Transaction);
    info.append(SqlInfo::FlightSqlServerTransaction, transaction);
    info.append(SqlInfo::SqlTransactionsSupported, true);
    let isolation = i64::from(i32::from(SqlTransactionIsolationLevel::SqlTransactionReadCommitted));
    info.append(SqlInfo::SqlDefaultTransactionIsolation, isolation);
    let lowercase = i64::from(i32::from(SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase));
    info.append(SqlInfo::SqlIdentifierCase, lowercase);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, false);
    info.append(SqlInfo::SqlDdlTable, false);
    info.append(SqlInfo::SqlAllTablesAreSelectable, true);
    info.append(SqlInfo::SqlCatalogTerm, "catalog");
    info.append(SqlInfo::SqlSchemaTerm, "schema");
    info.build()
}

/// The answers to `GetXdbcTypeInfo`: the types that a column of a table can have.
pub(super) fn types() -> Result<XdbcTypeInfoData> {
    let mut types = XdbcTypeInfoDataBuilder::new();
    let number = |name, data_type, bits| XdbcTypeInfo {
        column_size: Some(bits),
        num_prec_radix: Some(2),
        unsigned_attribute: Some(false),
        ..named(name, data_type)
    };
    let quoted = |prefix: &str, info| XdbcTypeInfo {
        literal_prefix: Some(prefix.to_owned()),
        literal_suffix: Some("'".to_owned()),
        ..info
    };
    types.append(named("boolean", XdbcDataType::XdbcBit));
    types.append(number("bigint", XdbcDataType::XdbcBigint, 64));
    types.append(quoted("X'", named("bytea", XdbcDataType::XdbcVarbinary)));
    types.append(number("integer", XdbcDataType::XdbcInteger, 32));
    types.append(number("double", XdbcDataType::XdbcDouble, 53));
    let text = XdbcTypeInfo { case_sensitive: true, ..named("varchar", XdbcDataType::XdbcVarchar) };
    types.append(quoted("'", text));
    types.append(quoted("DATE '", named("date", XdbcDataType::XdbcDate)));
    types.append(quoted("TIMESTAMP '", named("timestamp", XdbcDataType::XdbcTimestamp)));
    types.build()
}

fn named(name: &str, data_type: XdbcDataType) -> XdbcTypeInfo {
    XdbcTypeInfo {
        type_name: name.to_owned(),
        local_type_name: Some(name.to_owned()),
        data_type,
        sql_data_type: data_type,
        nullable: Nullable::NullabilityNullable,
        searchable: Searchable::Full,
        auto_increment: Some(false),
        ..XdbcTypeInfo::default()
    }
}
