//! The Kafka target against Apache Kafka itself: each way to say who one is, the broker's deaths, topics that others change.
//!
//! `KOLUMN_KAFKA_CLASSPATH` names the folder with Kafka's jars; `KOLUMN_KILLS` says how often the broker is killed while events
//! flow. `cargo xtask test --only kafka` installs the jars and runs these tests; no other command does.
#![cfg(test)]

mod connections;
mod deaths;
mod server;
mod topics;
