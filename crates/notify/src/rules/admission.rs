//! Whether a configuration that a client sends may become a bucket's.

use std::collections::HashSet;

use super::bucket_rules::BucketRules;
use super::draft::{Draft, FilterNames, check_count, unknown_event};
use super::error::{RuleError, RuleErrorKind, quoted};
use super::limits::Limits;
use super::rule::{Rule, RuleKind};
use super::targets::KnownTargets;
use crate::event::EventSet;
use crate::fnv::fnv1a_64;

/// Whose rules about rules are followed.
///
/// | | `Minio` | `Aws` |
/// | --- | --- | --- |
/// | topics and functions | refused | taken if there is a target of that ARN |
/// | events | those that `MinIO` knows | those that AWS knows |
/// | two rules for the same events of the same keys | refused only if they are the same | refused |
/// | a rule without an identifier | stays so | is given one |
/// | two rules with one identifier | taken | refused |
/// | names in filters | `prefix`, `suffix` | in any case |
/// | `EventBridgeConfiguration` | skipped | kept and given back; nothing is sent there |
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// What `MinIO` accepts.
    #[default]
    Minio,
    /// What AWS accepts.
    Aws,
}

impl Dialect {
    /// The events that a rule may name. A group is taken if it has any of them.
    #[must_use]
    pub fn events(self) -> EventSet {
        match self {
            Self::Minio => EventSet::MINIO,
            Self::Aws => EventSet::AWS,
        }
    }

    fn filter_names(self) -> FilterNames {
        match self {
            Self::Minio => FilterNames::Exact,
            Self::Aws => FilterNames::AnyCase,
        }
    }
}

/// Judges configurations that clients send.
///
/// ```
/// use kolumn_notify::config::TargetKind;
/// use kolumn_notify::rules::{Admission, Dialect, KnownTargets, RuleErrorKind};
///
/// let targets = KnownTargets::new("", [(TargetKind::Kafka, "primary".parse()?)]);
/// let admission = Admission::new(Dialect::Minio, &targets);
/// let body = b"<NotificationConfiguration><QueueConfiguration><Queue>arn:minio:sqs::primary:kafka</Queue>\
///     <Event>s3:ObjectCreated:*</Event></QueueConfiguration></NotificationConfiguration>";
/// let rules = admission.admit_xml(body)?;
/// assert_eq!(rules.rules().len(), 1);
///
/// let error = Admission::new(Dialect::Minio, &KnownTargets::default()).admit_xml(body).unwrap_err();
/// assert_eq!((error.code(), error.kind()), ("InvalidArgument", RuleErrorKind::UnknownDestination));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Admission<'a> {
    dialect: Dialect,
    targets: &'a KnownTargets,
    stored: Option<&'a BucketRules>,
    limits: Limits,
}

impl<'a> Admission<'a> {
    /// Judges by this dialect, for a server that has these targets.
    #[must_use]
    pub fn new(dialect: Dialect, targets: &'a KnownTargets) -> Self {
        Self { dialect, targets, stored: None, limits: Limits::default() }
    }

    /// The bucket's present rules. One of them may stay although its target does not exist any more: clients change a
    /// configuration by reading all of it and writing all of it back, which must not fail, nor lose a rule, while a
    /// target is missing.
    #[must_use]
    pub fn with_stored(mut self, stored: &'a BucketRules) -> Self {
        self.stored = Some(stored);
        self
    }

    /// Other limits than the default ones.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads and judges the body of `PUT /bucket?notification`.
    ///
    /// # Errors
    ///
    /// Those of [`Draft::from_xml`] and [`admit`](Self::admit).
    pub fn admit_xml(&self, body: &[u8]) -> Result<BucketRules, RuleError> {
        self.admit(Draft::from_xml(body, &self.limits)?)
    }

    /// Reads and judges a configuration in the AWS CLI's JSON.
    ///
    /// # Errors
    ///
    /// Those of [`Draft::from_json`] and [`admit`](Self::admit).
    pub fn admit_json(&self, document: &[u8]) -> Result<BucketRules, RuleError> {
        self.admit(Draft::from_json(document, &self.limits)?)
    }

    /// Judges a configuration. In what is admitted, every ARN has the server's region.
    ///
    /// In the AWS dialect the time that it takes grows with the square of the number of rules: half a million
    /// comparisons of a few words at the default limit.
    ///
    /// # Errors
    ///
    /// The [`RuleErrorKind`] says which of S3's answers is due.
    pub fn admit(&self, draft: Draft) -> Result<BucketRules, RuleError> {
        check_count(draft.rules.len(), self.limits.rules_max)?;
        let places: Vec<String> = draft.places().collect();
        let mut rules = Vec::with_capacity(draft.rules.len());
        for (rule, place) in draft.rules.into_iter().zip(&places) {
            if self.dialect == Dialect::Minio && rule.kind != RuleKind::Queue {
                return Err(RuleError::new(RuleErrorKind::UnsupportedDestination, "").within(place));
            }
            let rule = rule.into_rule(self.dialect.filter_names(), Some(self.targets));
            let rule = rule.and_then(|rule| self.check(rule)).map_err(|error| error.within(place))?;
            rules.push(rule);
        }
        match self.dialect {
            Dialect::Minio => refuse_twins(&rules, &places)?,
            Dialect::Aws => {
                refuse_overlaps(&rules, &places)?;
                rules = with_ids(rules, &places)?;
            }
        }
        let event_bridge = draft.event_bridge && self.dialect == Dialect::Aws;
        Ok(BucketRules::new(rules).with_event_bridge(event_bridge))
    }

    /// What can be said about a rule without the others.
    fn check(&self, rule: Rule) -> Result<Rule, RuleError> {
        for (nth, event) in rule.events().iter().enumerate() {
            if !event.events().intersects(self.dialect.events()) {
                return Err(unknown_event(event.as_str(), nth));
            }
        }
        let chars = rule.id().chars().count();
        if chars > self.limits.id_chars_max {
            let why =
                format!("an Id has at most {} characters, and this has {chars}", self.limits.id_chars_max);
            return Err(RuleError::new(RuleErrorKind::Id, why));
        }
        let element = rule.kind().destination_element();
        let arn = rule.destination();
        if !self.targets.is_in_region(arn) {
            let why =
                format!("{}, but the server is in `{}`", quoted(&arn.to_string()), self.targets.region());
            return Err(RuleError::new(RuleErrorKind::OtherRegion, why).within(element));
        }
        let canonical = self.targets.canonical(arn);
        if !self.targets.knows(arn) && !self.is_stored(&rule) {
            let error = RuleError::unknown_destination(&arn.to_string(), "", Some(self.targets));
            return Err(error.within(element));
        }
        Ok(rule.with_destination(canonical))
    }

    fn is_stored(&self, rule: &Rule) -> bool {
        self.stored.is_some_and(|stored| stored.rules().iter().any(|stored| stored.is_twin(rule)))
    }
}

/// Refuses a rule that is there already, identifier and all. `mc event add --ignore-existing` depends on it.
fn refuse_twins(rules: &[Rule], places: &[String]) -> Result<(), RuleError> {
    let mut seen = HashSet::with_capacity(rules.len());
    for (rule, place) in rules.iter().zip(places) {
        if !seen.insert((rule.id(), rule.essence())) {
            return Err(RuleError::new(RuleErrorKind::Overlap, "the same rule is there twice").within(place));
        }
    }
    Ok(())
}

fn refuse_overlaps(rules: &[Rule], places: &[String]) -> Result<(), RuleError> {
    for (nth, (rule, place)) in rules.iter().zip(places).enumerate() {
        let before = rules.iter().zip(places).take(nth);
        if let Some((_, other)) = before.into_iter().find(|(before, _)| before.overlaps(rule)) {
            return Err(RuleError::new(RuleErrorKind::Overlap, format!("with {other}")).within(place));
        }
    }
    Ok(())
}

/// Refuses an identifier that two rules have, and gives one to those that have none. It is made of what the rule says,
/// so that a client that sends the same configuration again does not change it.
fn with_ids(rules: Vec<Rule>, places: &[String]) -> Result<Vec<Rule>, RuleError> {
    let mut taken = HashSet::new();
    for (rule, place) in rules.iter().zip(places) {
        if !rule.id().is_empty() && !taken.insert(rule.id().to_owned()) {
            let why = format!(
                "Same ID used for multiple configurations. IDs must be unique: {}",
                quoted(rule.id())
            );
            return Err(RuleError::new(RuleErrorKind::Id, why).within(place));
        }
    }
    rules
        .into_iter()
        .map(|rule| if rule.id().is_empty() { with_made_id(rule, &mut taken) } else { Ok(rule) })
        .collect()
}

fn with_made_id(rule: Rule, taken: &mut HashSet<String>) -> Result<Rule, RuleError> {
    let made = format!("rule-{:016x}", digest(&rule));
    let mut id = made.clone();
    let mut nth = 1_u32;
    while !taken.insert(id.clone()) {
        nth += 1;
        id = format!("{made}-{nth}");
    }
    rule.with_id(id)
}

/// FNV-1a of what makes the rule.
fn digest(rule: &Rule) -> u64 {
    let events = rule.events().iter().map(|event| event.as_str());
    let arn = rule.destination().to_string();
    let parts = events.chain([&*arn, rule.filter().prefix(), rule.filter().suffix()]);
    fnv1a_64(parts.flat_map(|part| part.bytes().chain([0])))
}
