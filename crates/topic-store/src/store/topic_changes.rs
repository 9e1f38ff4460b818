//! Topics that change: more partitions, other settings.

use std::sync::Arc;

use kolumn_journal::Class;

use crate::commit::Commit;
use crate::config::TopicConfig;
use crate::entry::Entry;
use crate::error::{ConfigError, TopicError, TopicErrorKind};
use crate::ids::{TopicId, ViewId};
use crate::topic::Topic;

use super::{Prepared, Store};

impl Store {
    /// Gives a topic more partitions: `count` is how many it has then, the new ones begin empty. With `validate_only`
    /// everything is checked and nothing changed.
    ///
    /// # Errors
    /// If the topic is unknown, does not get more than it has or gets more than the limits, or the log is full, busy or
    /// has failed.
    pub fn create_partitions(
        &self,
        view: ViewId,
        topic: TopicId,
        count: i32,
        validate_only: bool,
    ) -> Result<Commit<Arc<Topic>>, TopicError> {
        let mut prepared = self.inner.prepared.lock();
        let present = present(&prepared, view, topic)?;
        if count <= present.partitions {
            let text =
                format!("the topic has {} partitions already, {count} are not more", present.partitions);
            return Err(TopicError::new(TopicErrorKind::InvalidPartitions, text));
        }
        self.judge_partitions(&prepared, count, present.partitions)?;
        let changed = Arc::new(Topic { partitions: count, ..Topic::clone(&present) });
        if validate_only {
            return Ok(Commit::ready(changed));
        }
        self.inner.write(&mut prepared, &Entry::PartitionsCreated { topic, count }, Class::Data)?;
        Ok(self.inner.commit(&prepared, false, changed))
    }

    /// Gives a topic the settings that `change` makes of its present ones: those that the next entry of the log builds
    /// on, so that of several changes at the same time none is lost. With `validate_only` nothing is changed.
    ///
    /// `change` is called at most once, while no write can begin; it must not call the store. When the change is
    /// durable, appends and retention go by it.
    ///
    /// # Errors
    /// If the topic is unknown, `change` refuses ([`TopicErrorKind::InvalidConfig`] with the text of its error), or the
    /// log is full, busy or has failed.
    pub fn configure_topic(
        &self,
        view: ViewId,
        topic: TopicId,
        change: &mut dyn FnMut(&TopicConfig) -> Result<TopicConfig, ConfigError>,
        validate_only: bool,
    ) -> Result<Commit<Arc<Topic>>, TopicError> {
        let mut prepared = self.inner.prepared.lock();
        let present = present(&prepared, view, topic)?;
        let config =
            change(&present.config).map_err(|error| TopicError::new(TopicErrorKind::InvalidConfig, error))?;
        let is_same = config == present.config;
        let changed = Arc::new(Topic { config, ..Topic::clone(&present) });
        if validate_only {
            return Ok(Commit::ready(changed));
        }
        if !is_same {
            let entry = Entry::TopicConfigured { topic, config: changed.config.clone() };
            self.inner.write(&mut prepared, &entry, Class::Data)?;
        }
        Ok(self.inner.commit(&prepared, false, changed))
    }

    /// Whether a topic that has `present` partitions may have `count`.
    pub(super) fn judge_partitions(
        &self,
        prepared: &Prepared,
        count: i32,
        present: i32,
    ) -> Result<(), TopicError> {
        let refuse = |text: String| Err(TopicError::new(TopicErrorKind::InvalidPartitions, text));
        let max = self.inner.settings.partitions_max;
        if !(1..=max).contains(&count) {
            return refuse(format!("the number of partitions has to be from 1 to {max}, not {count}"));
        }
        let all = prepared.state.topics.values().map(|found| i64::from(found.topic.partitions)).sum::<i64>();
        let all_max = self.inner.settings.all_partitions_max;
        if all.saturating_sub(i64::from(present)).saturating_add(i64::from(count)) > i64::from(all_max) {
            return refuse(format!("all topics together can have {all_max} partitions"));
        }
        Ok(())
    }
}

fn present(prepared: &Prepared, view: ViewId, topic: TopicId) -> Result<Arc<Topic>, TopicError> {
    let found = prepared.state.topic(topic).filter(|found| found.topic.view == view);
    let found =
        found.ok_or_else(|| TopicError::new(TopicErrorKind::UnknownTopic, "there is no such topic"))?;
    Ok(Arc::clone(&found.topic))
}
