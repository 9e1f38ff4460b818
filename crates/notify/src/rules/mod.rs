//! Rules: which events of which keys go to which target, as S3 clients configure them for a bucket.
//!
//! - A client sends a notification configuration, as XML, or as JSON from a file. [`Draft`] is what it wrote;
//!   [`Admission`] judges it by a [`Dialect`], the [`KnownTargets`] and [`Limits`], and refuses it by a [`RuleError`]
//!   that has S3's code and what was wrong where.
//! - What was admitted are [`BucketRules`], a [`Rule`] each; they are stored as XML and given back to clients.
//! - A [`RuleSet`] has the rules of all buckets and the global ones, and answers for an event who is to be told.
//!   [`LiveRules`] is the set that is in force, replaced as a whole.

mod admission;
mod affix;
mod bucket_rules;
mod draft;
mod error;
mod filter;
mod json;
mod limits;
mod rule;
mod rule_set;
mod targets;
mod xml;

pub use self::admission::{Admission, Dialect};
pub use self::bucket_rules::BucketRules;
pub use self::draft::{Draft, RuleDraft};
pub use self::error::{RuleError, RuleErrorKind};
pub use self::filter::KeyFilter;
pub use self::limits::Limits;
pub use self::rule::{Rule, RuleKind};
pub use self::rule_set::{LiveRules, RuleSet};
pub use self::targets::KnownTargets;
