//! The programs against each other, over real sockets.

#![cfg(test)]

mod programs;
