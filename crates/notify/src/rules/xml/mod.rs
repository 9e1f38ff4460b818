//! Notification configurations as XML.

mod cursor;
mod read;
mod write;

pub(super) use self::read::read;
pub(super) use self::write::write;
