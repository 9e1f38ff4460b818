//! The broker seen from outside: over TCP with a small client, and its engine by itself.
#![cfg(test)]

mod api_table;
mod client;
mod connections;
mod engine;
mod fetching;
mod harness;
mod inflating;
mod lifecycle;
mod limits;
mod offsets;
mod producing;
mod room;
mod topics;
