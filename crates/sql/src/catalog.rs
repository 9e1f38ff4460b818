//! What names mean in a statement: catalogs, schemas and tables of the store, as one principal sees them.
//!
//! ```text
//! catalog   = "kolumn" / alias                       ; all the same
//! schema    = bucket "/kafka_topics" / "system" / "information_schema"
//! table     = topic name                             ; with regard to case
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::ResolvedTableReference;
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use kolumn_topic_store::{TopicId, View};

use crate::counters::StatementCounters;
use crate::engine::Shared;
use crate::information::{INFORMATION_SCHEMA, InformationSchema};
use crate::policy::{Principal, TableName};
use crate::system;
use crate::table::TopicTable;

/// The schema of the topics of a view.
pub(crate) fn topics_schema(bucket: &str) -> String {
    format!("{bucket}{TOPICS_SUFFIX}")
}

/// The schema of the tables about the broker itself.
pub(crate) const SYSTEM_SCHEMA: &str = "system";
const TOPICS_SUFFIX: &str = "/kafka_topics";

/// The catalogs as one statement sees them.
#[derive(Clone, Debug)]
pub(crate) struct Catalogs {
    shared: Arc<Shared>,
    principal: Principal,
    /// The topics that the statement reads, by schema and table.
    topics: Arc<HashMap<(String, String), Arc<TopicTable>>>,
}

impl Catalogs {
    /// The catalogs for a statement that is only planned: its topics cannot be read.
    pub(crate) fn listed(shared: &Arc<Shared>, principal: &Principal) -> Self {
        Self { shared: Arc::clone(shared), principal: principal.clone(), topics: Arc::default() }
    }

    /// The catalogs for a statement that refers to these tables: its topics are as of one moment, now.
    pub(crate) fn snapshot(
        shared: &Arc<Shared>,
        principal: &Principal,
        references: &[ResolvedTableReference],
        counters: &StatementCounters,
    ) -> Result<Self> {
        let mut catalogs = Self::listed(shared, principal);
        let mut found: Vec<(TopicId, (String, String))> = Vec::new();
        for reference in references {
            let name = (reference.schema.to_string(), reference.table.to_string());
            let is_new = found.iter().all(|(_, other)| *other != name);
            if is_new && shared.has_catalog(&reference.catalog) {
                let topic =
                    catalogs.view(&reference.schema).and_then(|view| catalogs.topic(&view, &reference.table));
                found.extend(topic.map(|topic| (topic, name)));
            }
        }
        if found.is_empty() {
            return Ok(catalogs);
        }
        let ids: Vec<TopicId> = found.iter().map(|(topic, _)| *topic).collect();
        let snapshot =
            shared.store.snapshot(&ids).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let tables = found.into_iter().filter_map(|(topic, name)| {
            let table = TopicTable::new(Arc::clone(snapshot.table(topic)?), counters.clone());
            Some((name, Arc::new(table)))
        });
        catalogs.topics = Arc::new(tables.collect());
        Ok(catalogs)
    }

    /// Says of the first of these tables that does not exist what is missing, if one is.
    pub(crate) fn missing(&self, references: &[ResolvedTableReference]) -> Option<String> {
        references.iter().find_map(|reference| {
            if !self.shared.has_catalog(&reference.catalog) {
                let hint = self.dotted(reference);
                return Some(format!("catalog `{}` does not exist{hint}", reference.catalog));
            }
            if &*reference.schema == INFORMATION_SCHEMA {
                return None;
            }
            let Some(schema) = self.schema(&reference.schema) else {
                return Some(format!("schema `{}` does not exist{}", reference.schema, self.dotted(reference)));
            };
            if schema.table_exist(&reference.table) {
                return None;
            }
            let missing = format!("table `{}` does not exist", reference.table);
            let names = schema.table_names();
            let alike = names.iter().find(|name| name.eq_ignore_ascii_case(&reference.table));
            Some(match alike {
                Some(name) => {
                    format!("{missing}; there is `{name}`: names keep their case in double quotes only: \"{name}\"")
                }
                None => missing,
            })
        })
    }

    /// A hint, if a name with dots was written without quotes.
    fn dotted(&self, reference: &ResolvedTableReference) -> String {
        let ResolvedTableReference { catalog, schema, table } = reference;
        let default = topics_schema(&self.shared.default_view);
        let written = if **catalog == *self.shared.default_catalog() {
            format!("{schema}.{table}")
        } else {
            format!("{catalog}.{schema}.{table}")
        };
        let names = self.schema(&default).map(|schema| schema.table_names()).unwrap_or_default();
        match names.iter().find(|name| name.eq_ignore_ascii_case(&written)) {
            Some(name) => {
                format!("; there is a table `{name}`: a name with dots needs double quotes: \"{name}\"")
            }
            None => String::new(),
        }
    }

    /// A schema of topics, or that of the system.
    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == SYSTEM_SCHEMA {
            return Some(Arc::new(SystemSchema(self.clone())));
        }
        let view = self.view(name)?;
        Some(Arc::new(TopicsSchema { catalogs: self.clone(), view, name: name.to_owned() }))
    }

    fn view(&self, schema: &str) -> Option<View> {
        self.shared.store.view(schema.strip_suffix(TOPICS_SUFFIX)?)
    }

    /// A topic that may be read.
    fn topic(&self, view: &View, table: &str) -> Option<TopicId> {
        let topic = self.shared.store.topic(view.id, table)?;
        self.may_read(&topics_schema(&view.bucket), table).then_some(topic.id)
    }

    fn may_read(&self, schema: &str, table: &str) -> bool {
        self.shared.policy.may_read(&self.principal, TableName { schema, table })
    }
}

impl CatalogProviderList for Catalogs {
    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        self.shared.catalogs.clone()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let catalog = || Catalog { catalogs: self.clone(), name: name.to_owned() };
        self.shared.has_catalog(name).then(|| Arc::new(catalog()) as Arc<dyn CatalogProvider>)
    }
}

/// The catalog by one of its names.
#[derive(Clone, Debug)]
struct Catalog {
    catalogs: Catalogs,
    name: String,
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let views = self.catalogs.shared.store.views();
        let mut names: Vec<String> = views.iter().map(|view| topics_schema(&view.bucket)).collect();
        names.push(SYSTEM_SCHEMA.to_owned());
        names.sort_unstable();
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == INFORMATION_SCHEMA {
            let state = &self.catalogs.shared.state;
            return Some(Arc::new(InformationSchema::new(&self.name, Arc::new(self.clone()), state)));
        }
        self.catalogs.schema(name)
    }
}

/// The topics of a view.
#[derive(Debug)]
struct TopicsSchema {
    catalogs: Catalogs,
    view: View,
    name: String,
}

#[async_trait]
impl SchemaProvider for TopicsSchema {
    fn table_names(&self) -> Vec<String> {
        let topics = self.catalogs.shared.store.topics(self.view.id);
        let mut names: Vec<String> = topics.iter().map(|topic| topic.name.to_string()).collect();
        names.retain(|name| self.catalogs.may_read(&self.name, name));
        names.sort_unstable();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.catalogs.topics.get(&(self.name.clone(), name.to_owned())) {
            return Ok(Some(Arc::clone(table) as Arc<dyn TableProvider>));
        }
        let listed = || Arc::new(TopicTable::listed()) as Arc<dyn TableProvider>;
        Ok(self.table_exist(name).then(listed))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.catalogs.topic(&self.view, name).is_some()
    }
}

/// The tables about the broker itself.
#[derive(Debug)]
struct SystemSchema(Catalogs);

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        let names = system::TABLES.iter().filter(|name| self.0.may_read(SYSTEM_SCHEMA, name));
        names.map(|name| (*name).to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.table_exist(name) { system::table(name, &self.0.shared, &self.0.principal) } else { Ok(None) }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::View))
    }

    fn table_exist(&self, name: &str) -> bool {
        system::TABLES.contains(&name) && self.0.may_read(SYSTEM_SCHEMA, name)
    }
}
