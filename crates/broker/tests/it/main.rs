//! The broker seen from outside: over TCP with a small client, and its engine by itself.
#![cfg(test)]

mod admin;
mod api_table;
mod client;
mod closing;
mod config_changes;
mod configs;
mod connections;
mod delete_records;
mod engine;
mod epochs;
mod fairness;
mod fetch_session_twin;
mod fetch_sessions;
mod fetching;
mod groups;
mod groups_admin;
mod groups_client;
mod groups_offsets;
mod groups_reader;
mod groups_restart;
mod groups_room;
mod harness;
mod inflating;
mod lifecycle;
mod limits;
mod offsets;
mod producing;
mod room;
mod topics;
mod walk;
