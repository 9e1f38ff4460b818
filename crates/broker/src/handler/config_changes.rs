//! Changing settings: what `AlterConfigs` and `IncrementalAlterConfigs` have in common.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kolumn_kafka_wire::ErrorCode;
use kolumn_topic_store::{Commit, ConfigChange, ConfigError, Topic, TopicConfig, TopicErrorKind};
use tokio::time::Instant;

use super::config_resource::Resource;
use super::refusal::Refusal;
use super::{broker_configs, room};
use crate::bridge::errors;
use crate::context::Session;

/// What is wished for a resource.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    /// What is not named goes back to its default.
    replaces: bool,
    /// INVARIANT: no key is in two of them.
    changes: Vec<Change>,
}

/// A change of one setting.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) key: String,
    pub(super) operation: Operation,
}

#[derive(Debug, Clone)]
pub(super) enum Operation {
    Set(String),
    Unset,
    Append(String),
    Subtract(String),
}

/// The resources of a request, each once, by type and name.
pub(super) type Wishes = BTreeMap<(i8, String), Result<Wish, Refusal>>;

/// Adds a resource. Nothing is done for one that is named twice.
pub(super) fn add(wishes: &mut Wishes, resource_type: i8, name: &str, wish: Result<Wish, Refusal>) {
    match wishes.entry((resource_type, name.to_owned())) {
        Entry::Vacant(vacant) => {
            vacant.insert(wish);
        }
        Entry::Occupied(mut occupied) => {
            let refusal = Refusal::invalid_request("the request names this resource twice");
            *occupied.get_mut() = Err(refusal);
        }
    }
}

/// Makes the changes, in the order of resources, and waits until they are durable.
pub(super) async fn make(
    session: &Session,
    wishes: Wishes,
    validate_only: bool,
) -> Vec<((i8, String), Result<(), Refusal>)> {
    let deadline = room::deadline(WAIT_MS);
    let mut made = Vec::with_capacity(wishes.len());
    for (resource, wish) in wishes {
        let commit = match wish {
            Ok(wish) => change(session, &resource, &wish, validate_only, deadline).await,
            Err(refusal) => Err(refusal),
        };
        made.push((resource, commit));
    }
    let mut outcomes = Vec::with_capacity(made.len());
    for (resource, commit) in made {
        let outcome = match commit {
            Ok(Some(commit)) => durable(commit).await,
            Ok(None) => Ok(()),
            Err(refusal) => Err(refusal),
        };
        outcomes.push((resource, outcome));
    }
    outcomes
}

async fn durable(commit: Commit<Arc<Topic>>) -> Result<(), Refusal> {
    commit.await.map(drop).map_err(|error| Refusal::new(errors::COMMIT_FAILED, error.to_string()))
}

/// Hands a change to the store; there is nothing to wait for where nothing changes.
async fn change(
    session: &Session,
    (resource_type, name): &(i8, String),
    wish: &Wish,
    validate_only: bool,
    deadline: Instant,
) -> Result<Option<Commit<Arc<Topic>>>, Refusal> {
    let topic = match Resource::find(session, *resource_type, name)? {
        Resource::Topic(topic) => topic,
        Resource::Broker => return refuse_broker(session, wish).map(|()| None),
        Resource::BrokerLogger | Resource::ClientMetrics | Resource::Group => {
            return refuse_all(wish).map(|()| None);
        }
    };
    let view = session.context.view.id;
    let mut outgrown = None;
    let commit = room::until_room(
        session,
        deadline,
        |store| {
            let mut change = |present: &TopicConfig| {
                let changed = wish.applied_to(present)?;
                outgrown = outgrown_key(&changed);
                Ok(if outgrown.is_some() { present.clone() } else { changed })
            };
            store.configure_topic(view, topic.id, &mut change, validate_only)
        },
        |error| matches!(error.kind(), TopicErrorKind::Busy | TopicErrorKind::Full),
    );
    let commit = commit.await;
    if let Some(key) = outgrown {
        let text = format!("the value of `{key}` would be longer than {VALUE_LEN_MAX} bytes");
        return Err(Refusal::new(ErrorCode::INVALID_CONFIG, text));
    }
    commit.map(Some).map_err(|error| Refusal::new(errors::topic_code(error.kind()), error.to_string()))
}

/// A list that so much was added to that no answer could show it.
fn outgrown_key(config: &TopicConfig) -> Option<String> {
    let outgrown = config.given().find(|(_, value)| value.len() > VALUE_LEN_MAX);
    outgrown.map(|(key, _)| key.to_owned())
}

impl Wish {
    pub(super) fn new(replaces: bool, changes: Vec<Change>) -> Result<Self, Refusal> {
        let mut keys = BTreeSet::new();
        if let Some(twice) = changes.iter().find(|change| !keys.insert(change.key.as_str())) {
            return Err(Refusal::invalid_request(format!("the request names `{}` twice", twice.key)));
        }
        Ok(Self { replaces, changes })
    }

    fn applied_to(&self, present: &TopicConfig) -> Result<TopicConfig, ConfigError> {
        let changes = self.changes.iter().map(|change| {
            let key = change.key.as_str();
            match &change.operation {
                Operation::Set(value) => ConfigChange::Set { key, value },
                Operation::Unset => ConfigChange::Unset { key },
                Operation::Append(value) => ConfigChange::Append { key, value },
                Operation::Subtract(value) => ConfigChange::Subtract { key, value },
            }
        });
        if self.replaces { TopicConfig::default().with(changes) } else { present.with(changes) }
    }
}

/// Nothing of a broker is changed by requests; a wish without changes is granted.
fn refuse_broker(session: &Session, wish: &Wish) -> Result<(), Refusal> {
    let Some(first) = wish.changes.first() else { return Ok(()) };
    let known = broker_configs::rows(session);
    let is_unknown = |change: &&Change| known.iter().all(|row| row.name != change.key);
    if let Some(unknown) = wish.changes.iter().find(is_unknown) {
        let text = format!("there is no broker setting `{}`", unknown.key);
        return Err(Refusal::new(ErrorCode::INVALID_CONFIG, text));
    }
    let text = format!(
        "`{}` cannot be changed by a request: change the setting of each topic, or the broker's settings file",
        first.key
    );
    Err(Refusal::invalid_request(text))
}

/// What has no settings takes none.
fn refuse_all(wish: &Wish) -> Result<(), Refusal> {
    let Some(first) = wish.changes.first() else { return Ok(()) };
    let text = format!("this resource has no setting `{}`", first.key);
    Err(Refusal::new(ErrorCode::INVALID_CONFIG, text))
}

/// What a text of the protocol can hold.
const VALUE_LEN_MAX: usize = 0x7fff;
/// How long a change waits for room in the log; the requests bring no time of their own.
const WAIT_MS: i32 = 30_000;
