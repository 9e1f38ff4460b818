//! Behaviours of notifications, a module each.
#![cfg(test)]

mod config_documents;
mod config_keys;
mod config_sources;
mod config_store;
mod config_support;
mod delivery;
mod delivery_faults;
mod delivery_support;
mod event_twin;
mod events;
mod hub;
mod intents;
mod kafka;
mod queue_behaviour;
mod queue_damage;
mod queue_full_disk;
mod queue_model;
mod queue_support;
mod rules_admission;
mod rules_documents;
mod rules_matching;
mod rules_support;
mod s3s_events;
mod s3s_listen;
mod s3s_recovery;
mod s3s_rules;
mod s3s_storage;
mod s3s_support;
mod target_memory;
mod webhook;
mod webhook_support;
mod webhook_tls;
