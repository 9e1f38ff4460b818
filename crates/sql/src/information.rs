//! `information_schema`, as each catalog has one of its own: it tells of that catalog only. So whoever lists everything sees
//! each topic once, although the catalog has several names.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProviderList, SchemaProvider, TableProvider,
};
use datafusion::datasource::{TableType, provider_as_source};
use datafusion::error::Result;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};

/// The name of the schema.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";
/// The table of DataFusion's that is left out: it tells how the server is set up.
const SETTINGS: &str = "df_settings";

/// The schema, without the settings of the engine.
#[derive(Debug)]
pub(crate) struct InformationSchema {
    whole: InformationSchemaProvider,
}

impl InformationSchema {
    /// That of one catalog. The functions are those of a state.
    pub(crate) fn new(name: &str, catalog: Arc<dyn CatalogProvider>, state: &SessionState) -> Self {
        let catalogs = Arc::new(MemoryCatalogProviderList::new());
        catalogs.register_catalog(name.to_owned(), catalog);
        let functions = state.table_functions().clone();
        Self { whole: InformationSchemaProvider::new(catalogs).with_table_functions(functions) }
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.whole.table_names();
        names.retain(|name| !is_settings(name));
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let table = if is_settings(name) { None } else { self.whole.table(name).await? };
        match table {
            Some(table) if name.eq_ignore_ascii_case("tables") => without_settings(table).map(Some),
            other => Ok(other),
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        if is_settings(name) { Ok(None) } else { self.whole.table_type(name).await }
    }

    fn table_exist(&self, name: &str) -> bool {
        !is_settings(name) && self.whole.table_exist(name)
    }
}

// The names of these tables are looked up whatever their case is.
fn is_settings(name: &str) -> bool {
    name.eq_ignore_ascii_case(SETTINGS)
}

/// The list of tables, without the one that is left out.
fn without_settings(tables: Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
    let is_other =
        col("table_schema").not_eq(lit(INFORMATION_SCHEMA)).or(col("table_name").not_eq(lit(SETTINGS)));
    let plan =
        LogicalPlanBuilder::scan("tables", provider_as_source(tables), None)?.filter(is_other)?.build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}
