//! The behaviours of the store, a module for each.

#![cfg(test)]

mod append_and_read;
mod bounded;
mod concurrency;
mod delete_records;
mod foreign_names;
mod groups;
mod idempotent_producer;
mod model;
mod power_loss;
mod read_ahead;
mod retention;
mod rows;
mod simulation;
mod snapshot;
mod snapshot_hold;
mod snapshot_scan;
mod space;
mod support;
mod time_lookup;
mod topic_changes;
mod validation;
mod waiting;
