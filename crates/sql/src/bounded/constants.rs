//! The constants that functions make while a statement is planned, and single values while it runs.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::{config_err, resources_err};
use datafusion::error::Result;

/// Counts, for one statement. It travels to the functions with the options, which every call is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constants(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    is_planned: AtomicBool,
    /// Bytes of all constants that were made while the statement was planned.
    len: AtomicUsize,
    /// How many functions the plan calls.
    calls: AtomicUsize,
}

impl Constants {
    /// Takes a single value of so many bytes. While the statement is planned it stays, afterwards there is one for each call.
    pub(super) fn add(&self, len: usize) -> Result<()> {
        let Counts { is_planned, len: all, calls } = &*self.0;
        if is_planned.load(Ordering::Relaxed) {
            return check(len, CONSTANTS_LEN_MAX / calls.load(Ordering::Relaxed).max(1));
        }
        let before = all.fetch_add(len, Ordering::Relaxed);
        check(before.saturating_add(len), CONSTANTS_LEN_MAX)
    }

    /// Ends the planning: the plan has so many calls. An error if its constants are too long, which the optimiser ignores
    /// when it happens.
    pub(crate) fn planned(&self, calls: usize) -> Result<()> {
        self.0.calls.store(calls, Ordering::Relaxed);
        self.0.is_planned.store(true, Ordering::Relaxed);
        check(self.0.len.load(Ordering::Relaxed), CONSTANTS_LEN_MAX)
    }
}

fn check(len: usize, len_max: usize) -> Result<()> {
    if len > len_max {
        return resources_err!("the constants of a statement are longer than {len_max} bytes");
    }
    Ok(())
}

impl ConfigExtension for Constants {
    const PREFIX: &'static str = "kolumn_constants";
}

impl ExtensionOptions for Constants {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _value: &str) -> Result<()> {
        config_err!("`{key}` cannot be set")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// Bytes of all constants of a statement.
const CONSTANTS_LEN_MAX: usize = 16 << 20;
