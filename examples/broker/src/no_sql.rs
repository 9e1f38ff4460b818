//! In place of `sql.rs` in a build without SQL: says so.

use kolumn_broker::{Broker, Settings, SqlSettings};

use crate::arguments::Query;

/// No servers.
#[derive(Debug)]
pub(crate) struct Servers;

impl Servers {
    #[expect(clippy::unused_async, reason = "the servers of a build with SQL are awaited")]
    pub(crate) async fn start(settings: &Settings, _broker: &Broker) -> Result<Self, String> {
        let SqlSettings { listen, postgres_listen, .. } = settings.sql;
        let is_off = listen.is_none() && postgres_listen.is_none();
        if !is_off && settings.sql != SqlSettings::default() {
            tracing::warn!("the settings of SQL have no effect: {NONE}");
        }
        Ok(Self)
    }

    pub(crate) fn places(&self) -> Vec<String> {
        Vec::new()
    }

    pub(crate) fn example(&self) -> Option<String> {
        None
    }

    #[expect(clippy::unused_async, reason = "the servers of a build with SQL are awaited")]
    pub(crate) async fn stop(self) {}
}

pub(crate) fn ask(_query: &Query, _settings: &Settings) -> Result<(), String> {
    Err(format!("{NONE}; build it with the feature `sql`, which is one of the defaults"))
}

const NONE: &str = "this build has no SQL";
