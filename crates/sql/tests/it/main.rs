//! The behaviours of the crate, one module each, in one binary.

#![cfg(test)]

mod ask;
mod bounds;
mod dialect;
#[cfg(feature = "postgres")]
mod drivers;
#[cfg(feature = "flight")]
mod flight;
mod large;
#[cfg(feature = "postgres")]
mod postgres;
mod pushdown;
mod running;
#[cfg(feature = "flight")]
mod shell;
mod statements;
mod support;
mod system;
mod timestamps;
