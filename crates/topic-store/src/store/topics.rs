//! Views and topics: made, found, deleted.

use std::sync::Arc;

use kolumn_journal::Class;

use crate::commit::Commit;
use crate::entry::Entry;
use crate::error::{TopicError, TopicErrorKind};
use crate::ids::{Timestamp, TopicId, ViewId};
use crate::topic::{NewTopic, Topic, View, base64_of, collision_key, name_fault};

use super::Store;

impl Store {
    /// The view of a bucket, made if there is none.
    ///
    /// # Errors
    /// If the log is full, busy or has failed.
    pub fn ensure_view(&self, bucket: &str, now: Timestamp) -> Result<Commit<View>, TopicError> {
        let mut prepared = self.inner.prepared.lock();
        let known = prepared.state.views.values().find(|known| &*known.view.bucket == bucket);
        if let Some(view) = known.map(|known| known.view.clone()) {
            let is_durable = self.inner.core.applied.read().views.contains_key(&view.id);
            return Ok(self.inner.commit(&prepared, is_durable, view));
        }
        let view = View {
            id: ViewId::new(prepared.ids.uuid()),
            bucket: bucket.into(),
            cluster_id: base64_of(prepared.ids.uuid()).into(),
            created: now,
        };
        self.inner.write(&mut prepared, &Entry::ViewCreated(view.clone()), Class::Data)?;
        Ok(self.inner.commit(&prepared, false, view))
    }

    /// The view of a bucket.
    #[must_use]
    pub fn view(&self, bucket: &str) -> Option<View> {
        let applied = self.inner.core.applied.read();
        applied.views.values().map(|known| &known.view).find(|view| &*view.bucket == bucket).cloned()
    }

    /// Makes a topic. With `validate_only` everything is checked and nothing made.
    ///
    /// # Errors
    /// If the view is unknown, the name or the number of partitions against the rules, the name taken (or being taken by
    /// somebody else at this moment), or the log full, busy or failed.
    pub fn create_topic(
        &self,
        view: ViewId,
        new: NewTopic,
        validate_only: bool,
        now: Timestamp,
    ) -> Result<Commit<Arc<Topic>>, TopicError> {
        if let Some(fault) = name_fault(&new.name) {
            return Err(TopicError::new(TopicErrorKind::InvalidName, fault));
        }
        let mut prepared = self.inner.prepared.lock();
        let known = prepared
            .state
            .views
            .get(&view)
            .ok_or_else(|| TopicError::new(TopicErrorKind::UnknownView, "there is no such view"))?;
        self.judge_partitions(&prepared, new.partitions, 0)?;
        if let Some(taken) = known.names.get(&collision_key(&new.name)) {
            let name = prepared.state.topic(*taken).map_or("", |found| &found.topic.name);
            return Err(TopicError::new(TopicErrorKind::Exists, exists_text(&new.name, name)));
        }
        let topic = Arc::new(Topic {
            id: TopicId::new(prepared.ids.uuid()),
            view,
            name: new.name.into(),
            partitions: new.partitions,
            config: new.config,
            created: now,
        });
        if validate_only {
            return Ok(Commit::ready(topic));
        }
        self.inner.write(&mut prepared, &Entry::TopicCreated(Arc::clone(&topic)), Class::Data)?;
        Ok(self.inner.commit(&prepared, false, topic))
    }

    /// Deletes a topic with its records, its producers' windows and what groups have committed for it. From this call on nothing is appended to it; readers
    /// lose it when the deletion is durable.
    ///
    /// # Errors
    /// If it is unknown, or the log busy or failed.
    pub fn delete_topic(&self, view: ViewId, topic: TopicId) -> Result<Commit<()>, TopicError> {
        let mut prepared = self.inner.prepared.lock();
        if prepared.state.topic(topic).is_none_or(|found| found.topic.view != view) {
            return Err(TopicError::new(TopicErrorKind::UnknownTopic, "there is no such topic"));
        }
        self.inner.write(&mut prepared, &Entry::TopicDeleted { topic }, Class::Reclaim)?;
        Ok(self.inner.commit(&prepared, false, ()))
    }

    /// A topic by name. Only topics whose creation is durable are found.
    #[must_use]
    pub fn topic(&self, view: ViewId, name: &str) -> Option<Arc<Topic>> {
        let applied = self.inner.core.applied.read();
        let found = applied.topic_named(view, name)?;
        (&*found.topic.name == name).then(|| Arc::clone(&found.topic))
    }

    /// A topic by its identity, if it belongs to this view.
    #[must_use]
    pub fn topic_by_id(&self, view: ViewId, topic: TopicId) -> Option<Arc<Topic>> {
        let applied = self.inner.core.applied.read();
        applied.topic(topic).map(|found| Arc::clone(&found.topic)).filter(|found| found.view == view)
    }

    /// All topics of a view, sorted by name.
    #[must_use]
    pub fn topics(&self, view: ViewId) -> Vec<Arc<Topic>> {
        let applied = self.inner.core.applied.read();
        let ids = applied.views.get(&view).map(|known| known.names.values()).into_iter().flatten();
        let mut topics: Vec<_> =
            ids.filter_map(|id| applied.topic(*id)).map(|found| Arc::clone(&found.topic)).collect();
        drop(applied);
        topics.sort_by(|one, two| one.name.cmp(&two.name));
        topics
    }
}

fn exists_text(wanted: &str, taken: &str) -> String {
    if wanted == taken {
        format!("topic `{wanted}` already exists")
    } else {
        format!("topic `{wanted}` collides with `{taken}`: `.` and `_` count as the same")
    }
}
