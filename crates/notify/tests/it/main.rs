//! Behaviours of notifications, a module each.
#![cfg(test)]

mod config_documents;
mod config_keys;
mod config_sources;
mod config_store;
mod config_support;
mod event_twin;
mod events;
mod rules_admission;
mod rules_documents;
mod rules_matching;
mod rules_support;
