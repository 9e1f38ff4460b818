//! A server of PostgreSQL's wire protocol over an [`Engine`](crate::Engine).

mod catalog;
mod connection;
mod conversation;
mod frame;
mod listener;
mod parameters;
mod pattern;
mod pieces;
mod refusal;
mod reply;
mod rows;
mod statement;
mod translate;
mod types;
mod value;
mod variables;

pub use listener::{PostgresServer, PostgresSettings};
