//! Which targets exist, for the question whether a rule may name one.

use std::collections::BTreeSet;

use crate::config::{Arn, TargetId, TargetKind};

/// The targets of a server and its region, as its configuration has them.
///
/// ```
/// use kolumn_notify::config::{Arn, TargetKind};
/// use kolumn_notify::rules::KnownTargets;
///
/// let targets = KnownTargets::new("eu-central-1", [(TargetKind::Kafka, "primary".parse()?)]);
/// let arn: Arn = "arn:minio:sqs::PRIMARY:kafka".parse()?;
/// assert!(targets.knows(&arn));
/// assert_eq!(targets.canonical(&arn).to_string(), "arn:minio:sqs:eu-central-1:primary:kafka");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownTargets {
    region: String,
    targets: BTreeSet<(TargetKind, TargetId)>,
}

impl KnownTargets {
    /// The targets of a server in `region`, which is empty if none is configured.
    #[must_use]
    pub fn new(region: impl Into<String>, targets: impl IntoIterator<Item = (TargetKind, TargetId)>) -> Self {
        Self { region: region.into(), targets: targets.into_iter().collect() }
    }

    /// The server's region, which may be empty.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Whether there is a target of that identifier and kind, whatever the ARN's region.
    #[must_use]
    pub fn knows(&self, arn: &Arn) -> bool {
        self.targets.contains(&(arn.kind, arn.id.clone()))
    }

    /// The ARN with the server's region: the only spelling that clients are ever shown, since they compare ARNs as text.
    #[must_use]
    pub fn canonical(&self, arn: &Arn) -> Arn {
        Arn::new(self.region.clone(), arn.id.clone(), arn.kind)
    }

    /// The ARNs of all targets, by kind and identifier.
    pub fn arns(&self) -> impl Iterator<Item = Arn> {
        self.targets.iter().map(|(kind, id)| Arn::new(self.region.clone(), id.clone(), *kind))
    }

    /// Whether the ARN's region is empty, or the server's, or the server has none.
    pub(super) fn is_in_region(&self, arn: &Arn) -> bool {
        arn.region.is_empty() || self.region.is_empty() || arn.region == self.region
    }
}
