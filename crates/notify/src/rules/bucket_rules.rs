//! A bucket's notification configuration.

use super::draft::{Draft, FilterNames, places};
use super::error::RuleError;
use super::limits::Limits;
use super::rule::Rule;
use super::targets::KnownTargets;
use super::{json, xml};

/// A bucket's notification configuration: its rules, in the order in which they were written.
///
/// What a client sends becomes one through [`Admission`](super::Admission). What was stored is read by
/// [`from_xml`](Self::from_xml), which asks for no target: a rule whose target is gone stays, is found by
/// [`stale`](Self::stale), and works again when the target is back.
///
/// It is also given back to clients, by [`canonical`](Self::canonical) and [`to_xml`](Self::to_xml), with its stale
/// rules. (`MinIO` leaves the first of them out of its answer.) A client adds a rule by reading all and writing all back;
/// what it was not shown, it would remove.
///
/// ```
/// use kolumn_notify::rules::{BucketRules, KnownTargets};
///
/// let stored = b"<NotificationConfiguration><QueueConfiguration><Queue>arn:minio:sqs::gone:kafka</Queue>\
///     <Event>s3:ObjectRemoved:*</Event></QueueConfiguration></NotificationConfiguration>";
/// let rules = BucketRules::from_xml(stored)?;
/// let targets = KnownTargets::new("eu-central-1", []);
/// assert_eq!(rules.stale(&targets).count(), 1);
/// assert!(rules.canonical(&targets).to_xml().contains("<Queue>arn:minio:sqs:eu-central-1:gone:kafka</Queue>"));
/// # Ok::<(), kolumn_notify::rules::RuleError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BucketRules {
    rules: Vec<Rule>,
    event_bridge: bool,
}

impl BucketRules {
    /// These rules, of one's own making: nothing is asked.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules, event_bridge: false }
    }

    /// Reads what [`to_xml`](Self::to_xml) wrote, or another server. No limit is applied, no target is asked for and no
    /// dialect is followed, so that what was once admitted can always be read.
    ///
    /// # Errors
    ///
    /// If the document has not the form of a configuration, or a text in it has no meaning.
    pub fn from_xml(document: &[u8]) -> Result<Self, RuleError> {
        Self::from_draft(Draft::from_xml(document, &UNLIMITED)?)
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    ///
    /// Those of [`from_xml`](Self::from_xml).
    pub fn from_json(document: &[u8]) -> Result<Self, RuleError> {
        Self::from_draft(Draft::from_json(document, &UNLIMITED)?)
    }

    fn from_draft(draft: Draft) -> Result<Self, RuleError> {
        let places: Vec<String> = draft.places().collect();
        let rules = draft.rules.into_iter().zip(places).map(|(rule, place)| {
            rule.into_rule(FilterNames::AnyCase, None).map_err(|error| error.within(place))
        });
        Ok(Self { rules: rules.collect::<Result<_, _>>()?, event_bridge: draft.event_bridge })
    }

    pub(super) fn with_event_bridge(mut self, event_bridge: bool) -> Self {
        self.event_bridge = event_bridge;
        self
    }

    /// The rules, in the order in which they were written.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether there is nothing to store: the configuration that a client sends to remove the former one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.event_bridge
    }

    /// Whether the configuration asks for `EventBridge`. It is only given back: this crate sends nothing there.
    #[must_use]
    pub fn event_bridge(&self) -> bool {
        self.event_bridge
    }

    /// The rules whose target does not exist, each with its place in the configuration.
    pub fn stale<'a>(&'a self, targets: &'a KnownTargets) -> impl Iterator<Item = (String, &'a Rule)> {
        let placed = places(self.rules.iter().map(Rule::kind)).zip(&self.rules);
        placed.filter(|(_, rule)| !targets.knows(rule.destination()))
    }

    /// The same with the server's region in every ARN, as clients are to see it: they compare ARNs as text with those
    /// that the server prints when it starts.
    #[must_use]
    pub fn canonical(mut self, targets: &KnownTargets) -> Self {
        let canonical = |rule: Rule| {
            let arn = targets.canonical(rule.destination());
            rule.with_destination(arn)
        };
        self.rules = self.rules.into_iter().map(canonical).collect();
        self
    }

    /// The answer to `GET /bucket?notification`, which is also what to store.
    ///
    /// In each rule `Event`, `Filter`, `Id` and the destination follow in this order; there is always an `Id`, as in
    /// `MinIO`, and no `Filter` that lets every key pass.
    #[must_use]
    pub fn to_xml(&self) -> String {
        xml::write(self)
    }

    /// The configuration as the AWS CLI prints it, on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::write(self)
    }
}

impl FromIterator<Rule> for BucketRules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self::new(rules.into_iter().collect())
    }
}

const UNLIMITED: Limits =
    Limits { document_len_max: usize::MAX, rules_max: usize::MAX, id_chars_max: usize::MAX };
