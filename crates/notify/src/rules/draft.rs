//! A configuration as a client wrote it: it has the right form, and none of its texts was understood yet.

use super::error::{RuleError, RuleErrorKind, quoted};
use super::filter::KeyFilter;
use super::limits::Limits;
use super::rule::{Rule, RuleKind};
use super::targets::KnownTargets;
use super::{json, xml};
use crate::event::EventSelector;

/// A notification configuration as a client wrote it, before [`Admission`](super::Admission) has judged it.
///
/// It can be read from a document, or be filled in by a server whose own parser has read the request already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Draft {
    /// Its rules, in the order of the document.
    pub rules: Vec<RuleDraft>,
    /// Whether it asks for every event to be sent to `EventBridge`.
    pub event_bridge: bool,
}

/// One rule of a [`Draft`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleDraft {
    /// The element that it is written as.
    pub kind: RuleKind,
    /// Its identifier, if it has one.
    pub id: Option<String>,
    /// The ARN of its destination, if it has one.
    pub destination: Option<String>,
    /// The names of its events.
    pub events: Vec<String>,
    /// The names and values of its filter.
    pub filter: Vec<(String, String)>,
}

impl Draft {
    /// Reads the body of `PUT /bucket?notification`.
    ///
    /// Elements may come in any order, in any namespace and under any prefix; blanks around ARNs, events and names are
    /// not part of them. What the grammar of S3 does not have is refused and never skipped: a filter that was not
    /// understood would let every key pass.
    ///
    /// ```text
    /// NotificationConfiguration => (QueueConfiguration | TopicConfiguration | CloudFunctionConfiguration)*
    ///                              EventBridgeConfiguration?
    /// QueueConfiguration        => Id? Queue Event+ Filter?             likewise Topic and CloudFunction
    /// Filter                    => S3Key?
    /// S3Key                     => FilterRule*
    /// FilterRule                => Name Value
    /// ```
    ///
    /// # Errors
    ///
    /// [`RuleErrorKind::Malformed`] and [`RuleErrorKind::TooLarge`], [`RuleErrorKind::TooManyRules`] by `limits`.
    pub fn from_xml(document: &[u8], limits: &Limits) -> Result<Self, RuleError> {
        check_len(document, limits)?;
        xml::read(document, limits.rules_max)
    }

    /// Reads what the AWS CLI takes as `--notification-configuration`.
    ///
    /// `CloudFunctionConfigurations` is another name of `LambdaFunctionConfigurations`. A field that the form does not
    /// have is refused.
    ///
    /// # Errors
    ///
    /// Those of [`from_xml`](Self::from_xml).
    pub fn from_json(document: &[u8], limits: &Limits) -> Result<Self, RuleError> {
        check_len(document, limits)?;
        let draft = json::read(document)?;
        check_count(draft.rules.len(), limits.rules_max)?;
        Ok(draft)
    }

    /// Where in a document the rule is: S3's name for it, and its number among its kind.
    pub(super) fn places(&self) -> impl Iterator<Item = String> {
        places(self.rules.iter().map(|rule| rule.kind))
    }
}

impl RuleDraft {
    /// A rule of which only its kind is known.
    #[must_use]
    pub fn new(kind: RuleKind) -> Self {
        Self { kind, id: None, destination: None, events: Vec::new(), filter: Vec::new() }
    }

    /// Understands the texts. `targets` are only for the message about an ARN that is none.
    pub(super) fn into_rule(
        self,
        names: FilterNames,
        targets: Option<&KnownTargets>,
    ) -> Result<Rule, RuleError> {
        let element = self.kind.destination_element();
        let Some(destination) = self.destination else {
            return Err(RuleError::malformed(format!("the rule has no `{element}`")));
        };
        let arn = destination.parse().map_err(|why| {
            RuleError::unknown_destination(&destination, &format!(" ({why})"), targets).within(element)
        })?;
        let mut events = Vec::new();
        for (nth, event) in self.events.iter().enumerate() {
            let selector = event.parse::<EventSelector>().map_err(|_| unknown_event(event, nth))?;
            events.push(selector);
        }
        let filter = read_filter(self.filter, names).map_err(|error| error.within("Filter"))?;
        let rule = Rule::new(arn, events)?.with_kind(self.kind).with_filter(filter);
        rule.with_id(self.id.unwrap_or_default())
    }
}

/// How the names of a filter's rules have to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterNames {
    /// `prefix` and `suffix`.
    Exact,
    /// Also `Prefix`, which is what AWS itself gives back.
    AnyCase,
}

pub(super) fn unknown_event(event: &str, nth: usize) -> RuleError {
    RuleError::new(RuleErrorKind::UnknownEvent, quoted(event)).within(format_args!("Event[{}]", nth + 1))
}

pub(super) fn check_count(rules: usize, rules_max: usize) -> Result<(), RuleError> {
    if rules > rules_max {
        let why = format!("A bucket cannot have more than {rules_max} notification configurations.");
        return Err(RuleError::new(RuleErrorKind::TooManyRules, why));
    }
    Ok(())
}

/// `QueueConfiguration[1]` and so on, for rules of these kinds.
pub(super) fn places(kinds: impl Iterator<Item = RuleKind>) -> impl Iterator<Item = String> {
    let (mut queues, mut topics, mut functions) = (0_usize, 0_usize, 0_usize);
    kinds.map(move |kind| {
        let nth = match kind {
            RuleKind::Queue => &mut queues,
            RuleKind::Topic => &mut topics,
            RuleKind::CloudFunction => &mut functions,
        };
        *nth += 1;
        format!("{}[{nth}]", kind.element())
    })
}

fn check_len(document: &[u8], limits: &Limits) -> Result<(), RuleError> {
    let (len, max) = (document.len(), limits.document_len_max);
    if len > max {
        let why = format!("the document has {len} bytes, and may have {max}");
        return Err(RuleError::new(RuleErrorKind::TooLarge, why));
    }
    Ok(())
}

fn read_filter(rules: Vec<(String, String)>, names: FilterNames) -> Result<KeyFilter, RuleError> {
    let (mut prefix, mut suffix) = (None, None);
    for (nth, (name, value)) in rules.into_iter().enumerate() {
        let refuse = |kind, why: String| {
            Err(RuleError::new(kind, why).within(format_args!("FilterRule[{}]", nth + 1)))
        };
        let is = |expected: &str| match names {
            FilterNames::Exact => name == expected,
            FilterNames::AnyCase => name.eq_ignore_ascii_case(expected),
        };
        let (slot, second) = if is("prefix") {
            (&mut prefix, RuleErrorKind::SecondPrefix)
        } else if is("suffix") {
            (&mut suffix, RuleErrorKind::SecondSuffix)
        } else {
            return refuse(RuleErrorKind::FilterName, format!("({})", quoted(&name)));
        };
        if slot.is_some() {
            return refuse(second, quoted(&value));
        }
        *slot = Some(value);
    }
    KeyFilter::new(prefix.unwrap_or_default(), suffix.unwrap_or_default())
}
