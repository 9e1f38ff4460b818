//! How a hub is opened.

use std::path::PathBuf;
use std::sync::Arc;

use crate::delivery::{BackoffSettings, NoObserver, Observer};
use crate::event::Origin;
use crate::intent::IntentOptions;

/// How a hub is opened. Start from [`HubOptions::new`] and set fields.
#[derive(Debug)]
#[non_exhaustive]
pub struct HubOptions {
    /// The folder; it is made if it does not exist.
    pub dir: PathBuf,
    /// Where the identities of new journals come from, and the jitter of waits: random numbers of the operating system.
    pub seed: u64,
    /// How intents are kept.
    pub intents: IntentOptions,
    /// How many clients may listen at a time. 256.
    pub listeners_max: usize,
    /// How long a target is left alone after failures.
    pub backoff: BackoffSettings,
    /// Is told what happens to deliveries.
    pub observer: Arc<dyn Observer>,
    /// What all events of this server have in common. An empty region is filled from the configuration.
    pub origin: Origin,
}

impl HubOptions {
    /// For this folder, with nothing else set.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            seed: 0,
            intents: IntentOptions::default(),
            listeners_max: 256,
            backoff: BackoffSettings::DEFAULT,
            observer: Arc::new(NoObserver),
            origin: Origin::default(),
        }
    }
}
