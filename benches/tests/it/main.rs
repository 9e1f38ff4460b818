//! The programs against each other, over real sockets.

#![cfg(test)]

mod driver;
mod floor;
#[cfg(feature = "guard")]
mod guard;
mod programs;
#[cfg(feature = "guard")]
mod waking;
