//! An Arrow Flight SQL server over an [`Engine`](crate::Engine).
//!
//! Each connection is a session: what it sets and what it prepares is its own, and ends with it. Nobody has to say who they
//! are yet, so everybody is [`Principal::anonymous`](crate::Principal::anonymous).
//!
//! ```text
//! GetFlightInfo   statement -> columns and a ticket, which is the statement; nothing runs
//! DoGet           ticket -> rows of what is acknowledged now, as fast as they are read
//! ```

mod answer;
mod bind;
mod capabilities;
mod catalog;
mod connection;
mod listener;
mod plain;
mod service;
mod status;

pub use listener::{FlightServer, FlightSettings};
