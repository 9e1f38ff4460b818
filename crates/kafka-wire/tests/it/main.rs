//! The behaviour of the crate as its users see it.
#![cfg(test)]

mod allocations;
mod differential;
mod encode_errors;
mod framing;
mod golden_frames;
mod hostile_input;
mod records_compression;
mod records_differential;
mod records_hostile;
mod records_layout;
mod records_round_trip;
mod records_support;
mod records_validation;
mod records_without_allocation;
mod round_trip;
mod schema;
mod unknown_tags;
mod zero_copy;
