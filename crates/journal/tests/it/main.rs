//! Behaviours of the journal, a module each.
#![cfg(test)]

mod appending;
mod checkpoints;
mod damage;
mod disks;
mod fixtures;
mod full_disk;
mod group_commit;
mod power_loss;
mod simulated_disk;
mod support;
