//! One rule: which events of which keys go to which target.

use std::sync::Arc;

use super::error::{RuleError, RuleErrorKind, quoted};
use super::filter::{KeyFilter, forbidden_in_xml};
use crate::config::{self, Arn, TargetId, TargetKind};
use crate::event::{EventSelector, EventSet};

/// Which events of which keys go to which target.
///
/// INVARIANT: it names an event, and none twice; its identifier can be written as XML.
///
/// ```
/// use kolumn_notify::rules::{KeyFilter, Rule};
///
/// let rule = Rule::new("arn:minio:sqs::primary:kafka".parse()?, ["s3:ObjectCreated:*".parse()?])?
///     .with_filter(KeyFilter::new("images/", "")?);
/// assert_eq!(rule.kind().element(), "QueueConfiguration");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    kind: RuleKind,
    id: String,
    destination: Arn,
    events: Vec<EventSelector>,
    event_set: EventSet,
    filter: KeyFilter,
    topic: Option<Arc<str>>,
}

impl Rule {
    /// A rule for these events of all keys, written as a queue's and without an identifier.
    ///
    /// # Errors
    ///
    /// [`RuleErrorKind::Malformed`] if there is no event, [`RuleErrorKind::RepeatedEvent`] if one is named twice.
    pub fn new(destination: Arn, events: impl IntoIterator<Item = EventSelector>) -> Result<Self, RuleError> {
        let events: Vec<EventSelector> = events.into_iter().collect();
        if events.is_empty() {
            return Err(RuleError::malformed("a rule names an event"));
        }
        let mut sorted = events.clone();
        sorted.sort_unstable();
        let twice = sorted.iter().zip(sorted.iter().skip(1)).find(|(event, next)| event == next);
        if let Some((event, _)) = twice {
            return Err(RuleError::new(RuleErrorKind::RepeatedEvent, format!("twice in a rule: `{event}`")));
        }
        let event_set = events.iter().fold(EventSet::default(), |set, event| set.union(event.events()));
        let filter = KeyFilter::default();
        Ok(Self {
            kind: RuleKind::Queue,
            id: String::new(),
            destination,
            events,
            event_set,
            filter,
            topic: None,
        })
    }

    /// Only for keys that pass the filter.
    #[must_use]
    pub fn with_filter(mut self, filter: KeyFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Written as a topic's or a function's rule. It is delivered alike.
    #[must_use]
    pub fn with_kind(mut self, kind: RuleKind) -> Self {
        self.kind = kind;
        self
    }

    /// With an identifier, which AWS's style of events repeats in each.
    ///
    /// # Errors
    ///
    /// [`RuleErrorKind::Id`] if it has a character that XML cannot carry.
    pub fn with_id(mut self, id: impl Into<String>) -> Result<Self, RuleError> {
        self.id = id.into();
        match forbidden_in_xml(&self.id) {
            Some(c) => {
                let why = format!("XML cannot carry the character {c:?} of the Id {}", quoted(&self.id));
                Err(RuleError::new(RuleErrorKind::Id, why))
            }
            None => Ok(self),
        }
    }

    /// For this topic of the target instead of the configured one, where a target has topics. S3's documents have no place
    /// for it: clients neither see nor set it, and a client that replaces a bucket's rules drops it.
    ///
    /// # Errors
    ///
    /// [`RuleErrorKind::Topic`] if it is no name of a topic of Kafka.
    pub fn with_topic(mut self, topic: impl AsRef<str>) -> Result<Self, RuleError> {
        let topic = topic.as_ref();
        config::topic(topic)
            .map_err(|reason| RuleError::new(RuleErrorKind::Topic, format!("{} {reason}", quoted(topic))))?;
        self.topic = Some(topic.into());
        Ok(self)
    }

    /// For another destination.
    #[must_use]
    pub(super) fn with_destination(mut self, destination: Arn) -> Self {
        self.destination = destination;
        self
    }

    /// The element that the rule is written as.
    #[must_use]
    pub fn kind(&self) -> RuleKind {
        self.kind
    }

    /// Its identifier; empty if its sender gave none and the dialect makes none.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The target that events are sent to.
    #[must_use]
    pub fn destination(&self) -> &Arn {
        &self.destination
    }

    /// The events and groups as they were written, in that order.
    #[must_use]
    pub fn events(&self) -> &[EventSelector] {
        &self.events
    }

    /// The single events that are meant.
    #[must_use]
    pub fn event_set(&self) -> EventSet {
        self.event_set
    }

    /// The topic, if it is not the target's own.
    #[must_use]
    pub fn topic(&self) -> Option<&Arc<str>> {
        self.topic.as_ref()
    }

    /// The keys that the rule is about.
    #[must_use]
    pub fn filter(&self) -> &KeyFilter {
        &self.filter
    }

    /// Whether an event would pass both rules: what AWS refuses, whatever the destinations.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.event_set.intersects(other.event_set) && self.filter.overlaps(&other.filter)
    }

    /// Whether two rules do the same, whatever their identifiers and the order of their events.
    pub(super) fn is_twin(&self, other: &Self) -> bool {
        self.same_target(other) && self.filter == other.filter && self.essence() == other.essence()
    }

    /// What a rule does: to which target it sends which events of which keys.
    pub(super) fn essence(&self) -> (TargetKind, &TargetId, Vec<EventSelector>, &KeyFilter) {
        let mut events = self.events.clone();
        events.sort_unstable();
        (self.destination.kind, &self.destination.id, events, &self.filter)
    }

    /// Whether two rules send to the same target, and to the same topic of it; a region is only a matter of spelling.
    #[must_use]
    pub fn same_target(&self, other: &Self) -> bool {
        let place = |rule: &Self| (rule.destination.kind, rule.destination.id.clone(), rule.topic.clone());
        place(self) == place(other)
    }
}

/// The element of a configuration that a rule is written as. AWS tells services apart by it; targets of this crate are
/// told apart by their ARN alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "S3 names three kinds of destinations")]
pub enum RuleKind {
    /// `QueueConfiguration`, the only one that `MinIO` takes.
    Queue,
    /// `TopicConfiguration`.
    Topic,
    /// `CloudFunctionConfiguration`, in JSON `LambdaFunctionConfigurations`.
    CloudFunction,
}

impl RuleKind {
    /// The name of the rule's XML element.
    #[must_use]
    pub fn element(self) -> &'static str {
        match self {
            Self::Queue => "QueueConfiguration",
            Self::Topic => "TopicConfiguration",
            Self::CloudFunction => "CloudFunctionConfiguration",
        }
    }

    /// The name of the XML element inside of it that has the destination's ARN.
    #[must_use]
    pub fn destination_element(self) -> &'static str {
        match self {
            Self::Queue => "Queue",
            Self::Topic => "Topic",
            Self::CloudFunction => "CloudFunction",
        }
    }
}
