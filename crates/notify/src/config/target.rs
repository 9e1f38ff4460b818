//! A target's configuration, read: what all kinds have, and what is its kind's own.

use std::path::PathBuf;

use super::error::Warning;
use super::kafka::KafkaConfig;
use super::keys::{
    COMMENT, DEAD_LETTER_DIR, DURABILITY, QUEUE_DIR, QUEUE_FULL, QUEUE_LIMIT, QUEUE_LIMIT_BYTES, STYLE,
};
use super::settings::{Reader, TargetSettings, is_enabled};
use super::value::{choice, count, folder};
use super::{ConfigErrors, TargetId, TargetKind};
use crate::event::Style;

/// The configuration of an enabled target; `T` is what only its kind has.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TargetConfig<T> {
    /// What the target is.
    pub kind: TargetKind,
    /// Which one of its kind it is.
    pub id: TargetId,
    /// Where events wait for it.
    pub queue: QueueConfig,
    /// The form in which events are written.
    pub style: Style,
    /// A note for whoever reads the configuration.
    pub comment: String,
    /// What only its kind has.
    pub target: T,
}

/// Where events wait until they are delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueConfig {
    /// The folder; without one, events wait in memory only.
    pub dir: Option<PathBuf>,
    /// How many events may wait.
    pub limit: u64,
    /// How many bytes of events may wait.
    pub limit_bytes: Option<u64>,
    /// What happens when one of the limits is reached.
    pub full: QueueFull,
    /// What a waiting event outlives.
    pub durability: QueueDurability,
    /// Where events go that the target will never take.
    pub dead_letter_dir: Option<PathBuf>,
}

impl QueueConfig {
    /// How many events may wait where nothing is configured.
    pub const LIMIT: u64 = 100_000;

    fn read(reader: &mut Reader<'_>) -> Self {
        let number = |key| reader.read(key, |value| count(value, u64::MAX)).filter(|number| *number > 0);
        let full = reader.read(&QUEUE_FULL, |value| choice(value, &["drop_oldest", "block"]));
        let config = Self {
            dir: reader.read(&QUEUE_DIR, folder),
            limit: number(&QUEUE_LIMIT).unwrap_or(Self::LIMIT),
            limit_bytes: number(&QUEUE_LIMIT_BYTES),
            full: match full {
                Some("drop_oldest") => QueueFull::DropOldest,
                Some("block") => QueueFull::Block,
                _ => QueueFull::Refuse,
            },
            durability: match reader.read(&DURABILITY, |value| choice(value, &["sync"])) {
                Some(_) => QueueDurability::Sync,
                None => QueueDurability::Os,
            },
            dead_letter_dir: reader.read(&DEAD_LETTER_DIR, folder),
        };
        if config.dir.is_none() && config.durability == QueueDurability::Sync {
            reader.warn(&DURABILITY, "it has no effect without `queue_dir`");
        }
        config
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            dir: None,
            limit: Self::LIMIT,
            limit_bytes: None,
            full: QueueFull::default(),
            durability: QueueDurability::default(),
            dead_letter_dir: None,
        }
    }
}

/// What happens to an event for which the queue has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum QueueFull {
    /// It is refused, and with it the operation that it would tell of.
    #[default]
    Refuse,
    /// The oldest event is dropped for it.
    DropOldest,
    /// It waits for room.
    Block,
}

/// What an event in the queue outlives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum QueueDurability {
    /// The end of the process.
    #[default]
    Os,
    /// A loss of power, at the cost of a sync.
    Sync,
}

/// An enabled target, by what is known of its kind.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EnabledTarget {
    /// A topic of Kafka.
    Kafka(TargetConfig<KafkaConfig>),
    /// A target of another kind: its values are of the types that its keys have, and are read from text when it is
    /// made.
    Other(TargetConfig<TargetSettings>),
}

/// Reads the settings of a target: what it is, nothing if it is not enabled, and what is odd about it.
pub(super) fn check_target(
    settings: &TargetSettings,
) -> Result<(Option<EnabledTarget>, Vec<Warning>), ConfigErrors> {
    if !is_enabled(settings)? {
        return Ok((None, Vec::new()));
    }
    let reader = Reader::new(settings);
    let (target, warnings) = if settings.kind() == TargetKind::Kafka {
        let (target, warnings) = read_target(reader, KafkaConfig::read)?;
        (EnabledTarget::Kafka(target), warnings)
    } else {
        let (target, warnings) = read_target(reader, |reader| reader.settings().clone())?;
        (EnabledTarget::Other(target), warnings)
    };
    Ok((Some(target), warnings))
}

fn read_target<T>(
    mut reader: Reader<'_>,
    read: impl FnOnce(&mut Reader<'_>) -> T,
) -> Result<(TargetConfig<T>, Vec<Warning>), ConfigErrors> {
    let style = |value: &str| {
        let found = Style::ALL.iter().find(|style| style.as_str().eq_ignore_ascii_case(value));
        found.copied().ok_or_else(String::new)
    };
    let config = TargetConfig {
        kind: reader.settings().kind(),
        id: reader.settings().id().clone(),
        queue: QueueConfig::read(&mut reader),
        style: reader.read(&STYLE, style).unwrap_or_default(),
        comment: reader.text(&COMMENT).unwrap_or_default().into(),
        target: read(&mut reader),
    };
    ConfigErrors::check(reader.errors)?;
    Ok((config, reader.warnings))
}

#[cfg(test)]
mod tests {
    use super::super::keys::Subsystem;
    use super::super::value::ValueType;
    use super::*;

    #[test]
    fn the_words_for_styles_are_those_of_the_styles() {
        let words: Vec<&str> = Style::ALL.iter().map(|style| style.as_str()).collect();
        assert_eq!(
            Subsystem::Target(TargetKind::Kafka).key("style").unwrap().value,
            ValueType::Choice(&STYLES)
        );
        assert_eq!(words, STYLES);
    }

    const STYLES: [&str; 4] = ["minio", "aws", "event_broker", "cloudevents"];
}
