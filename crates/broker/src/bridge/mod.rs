//! Where the vocabulary of the protocol and that of the store meet.

pub(crate) mod errors;
pub(crate) mod ids;
mod range;

pub(crate) use self::range::StoredRange;
