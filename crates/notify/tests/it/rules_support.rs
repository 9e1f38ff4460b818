//! What the tests of rules have in common.

use kolumn_notify::config::{Arn, TargetKind};
use kolumn_notify::rules::KnownTargets;

/// The ARN of a Kafka target of a server without a region.
pub(crate) fn arn(id: &str) -> Arn {
    format!("arn:minio:sqs::{id}:kafka").parse().unwrap()
}

/// A server without a region, with the targets `primary` and `secondary`.
pub(crate) fn targets() -> KnownTargets {
    KnownTargets::new("", ["primary", "secondary"].map(|id| (TargetKind::Kafka, id.parse().unwrap())))
}
