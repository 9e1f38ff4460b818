//! Whose settings are meant: a type as Kafka numbers it, and a name.

use std::sync::Arc;

use kolumn_kafka_wire::ErrorCode;
use kolumn_topic_store::Topic;

use super::refusal::Refusal;
use crate::context::Session;

/// Something that has settings.
#[derive(Debug, Clone)]
pub(super) enum Resource {
    Topic(Arc<Topic>),
    /// This broker, by its number, or all brokers by an empty name: here that is the same one.
    Broker,
    /// What this broker's loggers write. Its events go to an observer instead.
    BrokerLogger,
    /// Which metrics clients push. None are taken.
    ClientMetrics,
    /// A group. Those of the classic protocol have no settings.
    Group,
}

impl Resource {
    pub(super) fn find(session: &Session, resource_type: i8, name: &str) -> Result<Self, Refusal> {
        match resource_type {
            TOPIC => topic(session, name).map(Self::Topic),
            BROKER if name.is_empty() => Ok(Self::Broker),
            BROKER => own_id(session, name).map(|()| Self::Broker),
            BROKER_LOGGER => own_id(session, name).map(|()| Self::BrokerLogger),
            CLIENT_METRICS => named(name).map(|()| Self::ClientMetrics),
            GROUP => named(name).map(|()| Self::Group),
            _ => Err(Refusal::invalid_request(format!("resources of type {resource_type} have no settings"))),
        }
    }
}

fn topic(session: &Session, name: &str) -> Result<Arc<Topic>, Refusal> {
    if let Some(fault) = kolumn_topic_store::name_fault(name) {
        return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, fault));
    }
    session.store().topic(session.context.view.id, name).ok_or_else(|| {
        Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, format!("there is no topic `{name}`"))
    })
}

fn own_id(session: &Session, name: &str) -> Result<(), Refusal> {
    let own = session.context.node_id();
    if name == own.to_string() {
        return Ok(());
    }
    Err(Refusal::invalid_request(format!("this is broker {own}, not `{name}`")))
}

fn named(name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::invalid_request("the resource needs a name"));
    }
    Ok(())
}

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const BROKER_LOGGER: i8 = 8;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;
