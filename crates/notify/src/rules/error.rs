//! Why a notification configuration is refused, as an S3 client is told it.

use std::fmt;

use super::targets::KnownTargets;

/// A notification configuration, or a part of one, was refused.
///
/// [`code`](Self::code), [`status`](Self::status) and [`message`](Self::message) are those of the S3 answer. A message
/// begins with the sentence that S3 has for the case, to the letter, because clients look for it; what was wrong and
/// where follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    kind: RuleErrorKind,
    detail: String,
    place: String,
}

/// What was wrong with a notification configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleErrorKind {
    /// The document is not XML or JSON, or does not have the form of a notification configuration.
    Malformed,
    /// The document is longer than [`Limits::document_len_max`](super::Limits::document_len_max).
    TooLarge,
    /// There are more rules than [`Limits::rules_max`](super::Limits::rules_max).
    TooManyRules,
    /// The dialect knows queues only, and the rule's destination is written as a topic or a function.
    UnsupportedDestination,
    /// The destination is not the ARN of a target, or there is no such target.
    UnknownDestination,
    /// The destination's ARN names another region than the server's.
    OtherRegion,
    /// The event is unknown, or the dialect does not have it.
    UnknownEvent,
    /// A rule names the same event twice.
    RepeatedEvent,
    /// A filter is about something else than a prefix or a suffix.
    FilterName,
    /// A filter has two prefixes.
    SecondPrefix,
    /// A filter has two suffixes.
    SecondSuffix,
    /// A prefix or suffix could not be that of an object's key.
    FilterValue,
    /// An identifier is too long, or another rule has it, or it has characters that XML cannot carry.
    Id,
    /// A topic's name is none of Kafka's.
    Topic,
    /// Two rules are for the same events of the same keys.
    Overlap,
}

impl RuleErrorKind {
    /// S3's code, and its sentence if it has one for the case.
    fn answer(self) -> (&'static str, &'static str) {
        const ARGUMENT: &str = "InvalidArgument";
        match self {
            Self::Malformed => (
                "MalformedXML",
                "The XML you provided was not well-formed or did not validate against our published schema.",
            ),
            Self::TooLarge => ("MaxMessageLengthExceeded", "Your request was too big."),
            Self::TooManyRules | Self::Id | Self::Topic => (ARGUMENT, ""),
            Self::UnsupportedDestination => (
                "UnsupportedNotification",
                "This server does not support Topic or Cloud Function based notifications.",
            ),
            Self::UnknownDestination => (
                ARGUMENT,
                "A specified destination ARN does not exist or is not well-formed. Verify the destination ARN.",
            ),
            Self::OtherRegion => (
                ARGUMENT,
                "A specified destination is in a different region than the bucket. You must use a destination that \
                 resides in the same region as the bucket.",
            ),
            Self::UnknownEvent => (ARGUMENT, "A specified event is not supported for notifications."),
            Self::RepeatedEvent => (
                ARGUMENT,
                "Configurations overlap. Configurations on the same bucket cannot share a common event type.",
            ),
            Self::FilterName => (ARGUMENT, "filter rule name must be either prefix or suffix"),
            Self::SecondPrefix => (ARGUMENT, "Cannot specify more than one prefix rule in a filter."),
            Self::SecondSuffix => (ARGUMENT, "Cannot specify more than one suffix rule in a filter."),
            Self::FilterValue => (ARGUMENT, "A filter rule's value cannot be part of an object's key."),
            Self::Overlap => (
                ARGUMENT,
                "An object key name filtering rule defined with overlapping prefixes, overlapping suffixes, or \
                 overlapping combinations of prefixes and suffixes for the same event types.",
            ),
        }
    }
}

impl RuleError {
    pub(super) fn new(kind: RuleErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), place: String::new() }
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(RuleErrorKind::Malformed, detail)
    }

    /// What is not the ARN of a target that exists, with those that do: most often one of them was mistyped.
    pub(super) fn unknown_destination(given: &str, why: &str, targets: Option<&KnownTargets>) -> Self {
        let mut detail = format!("given {}{why}", quoted(given));
        if let Some(targets) = targets {
            let mut arns = targets.arns().map(|arn| format!("`{arn}`"));
            let listed: Vec<String> = arns.by_ref().take(LISTED_MAX).collect();
            match (listed.is_empty(), arns.count()) {
                (true, _) => detail.push_str("; no destination is configured"),
                (false, 0) => detail.extend(["; these exist: ", &listed.join(", ")]),
                (false, more) => {
                    detail.extend([
                        "; these exist: ",
                        &listed.join(", "),
                        " and ",
                        &more.to_string(),
                        " more",
                    ]);
                }
            }
        }
        Self::new(RuleErrorKind::UnknownDestination, detail)
    }

    /// Says where it was: within `outer`.
    pub(super) fn within(mut self, outer: impl fmt::Display) -> Self {
        self.place = match &*self.place {
            "" => outer.to_string(),
            inner => format!("{outer}/{inner}"),
        };
        self
    }

    /// What was wrong.
    #[must_use]
    pub fn kind(&self) -> RuleErrorKind {
        self.kind
    }

    /// The code of the S3 answer, such as `InvalidArgument`. What is no configuration at all is `MalformedXML`, also
    /// when it was meant to be JSON: S3 has no other code for it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.answer().0
    }

    /// The HTTP status of the S3 answer: 400, as for everything that the sender has to correct.
    #[must_use]
    pub fn status(&self) -> u16 {
        400
    }

    /// The message of the S3 answer.
    #[must_use]
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// Where in the configuration, such as `QueueConfiguration[2]/Event[1]` or `byte 17`; counted from 1, by kind of
    /// rule. Empty if it is about the whole.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = self.kind.answer().1;
        let gap = if sentence.is_empty() || self.detail.is_empty() { "" } else { " " };
        write!(f, "{sentence}{gap}{}", self.detail)?;
        if !self.place.is_empty() {
            write!(f, " (at {})", self.place)?;
        }
        Ok(())
    }
}

impl std::error::Error for RuleError {}

/// A text from outside for a message: in backticks, cut, and without characters that would break an answer.
pub(super) fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(QUOTED_MAX).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(QUOTED_MAX).is_some() { "…" } else { "" };
    format!("`{cut}{more}`")
}

/// The characters of a text that are repeated in a message.
const QUOTED_MAX: usize = 100;

/// The ARNs that a message lists.
const LISTED_MAX: usize = 20;
