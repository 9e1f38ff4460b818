//! Events published to a topic of Kafka.

mod client;

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use krafka::producer::{DeliveryHandle, Producer};
use krafka::{CloseOptions, Kafka, KrafkaError, Record};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::{BoxFuture, BuildError, Limits, SendError, SendErrorKind, Target, tls};
use crate::config::{Arn, KafkaConfig};
use crate::event::Style;
use crate::queue::{Delivery, Message};

/// How a [`KafkaTarget`] works, beside what an operator configures.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KafkaOptions {
    /// The brokers, and how to speak with them.
    pub config: KafkaConfig,
    /// Who the client says it is.
    pub client_id: String,
    /// How long one send waits for brokers before it reports that they do not answer. What it handed over stays under way,
    /// and the next send goes on waiting for it.
    pub wait: Duration,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// Whether brokers recognise what the client repeats. They have to allow it: before Kafka 3.0, by a permission.
    pub idempotent: bool,
    /// Whether a topic that does not exist is made by the brokers, if they do so at all.
    pub create_topic: bool,
}

impl KafkaOptions {
    /// For these brokers, with nothing else set.
    #[must_use]
    pub fn new(config: KafkaConfig) -> Self {
        Self {
            config,
            client_id: "kolumn-notify".into(),
            wait: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            idempotent: true,
            create_topic: true,
        }
    }
}

/// Publishes each event to a topic: its message's own, or else the configured one.
///
/// A record's key is the message's, `bucket/key`, and its partition follows from it as with `MinIO`'s client (FNV-1a). It
/// is delivered when all replicas that are in sync have it. The client repeats what is not answered, in order, for as long
/// as it takes; brokers that are away for days are none of the worker's concern but that it reports them.
///
/// A send that is given up, by its worker or by [`KafkaOptions::wait`], leaves records under way in the client, which
/// cannot be called back. They are remembered, and a later send of the same deliveries waits for them instead of handing
/// them over once more: within the life of a producer nothing is written twice.
///
/// Permanent are the errors about one record: too large, or refused by the broker as it is. A topic that does not exist,
/// permissions and credentials are the operator's to repair.
pub struct KafkaTarget {
    arn: Arn,
    options: KafkaOptions,
    /// A header that tells how to read the values, where the binding of the style asks for one.
    content_type: Option<&'static str>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    producer: Option<Producer>,
    /// What was handed over and has no outcome yet, in that order.
    under_way: VecDeque<UnderWay>,
}

struct UnderWay {
    number: u64,
    message: Message,
    handle: DeliveryHandle,
}

impl KafkaTarget {
    /// A target of this name, for events that are written in this style. Nothing is connected.
    ///
    /// # Errors
    ///
    /// A file of the certificates is no good.
    pub fn new(arn: Arn, options: KafkaOptions, style: Style) -> Result<Self, BuildError> {
        if let Some(tls) = &options.config.tls {
            // The client reads the files when it connects. That is too late for whoever has to repair them.
            tls::client_config(tls, true)?;
        }
        let content_type = (style == Style::CloudEvents).then(|| style.content_type());
        Ok(Self { arn, options, content_type, state: Mutex::default() })
    }

    fn record(&self, message: &Message) -> Result<Record, SendError> {
        let topic = message.topic.as_deref().or(self.options.config.topic.as_deref());
        let Some(topic) = topic else {
            return Err(SendError::temporary("neither the target nor the rule has a topic"));
        };
        let record = Record::new(topic, message.value.clone()).key(message.key.clone());
        Ok(match self.content_type {
            Some(content_type) => record.header("content-type", content_type),
            None => record,
        })
    }

    async fn connect(&self) -> Result<Kafka, SendError> {
        client::kafka(&self.options)
            .connect()
            .await
            .map_err(|error| self.failed("no connection to the brokers", error))
    }

    /// Hands over what was not handed over before. The error is about the first that could not be.
    async fn hand_over(&self, state: &mut State, batch: &[Delivery]) -> Result<(), SendError> {
        let rest = batch.get(state.under_way.len()..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        if state.producer.is_none() {
            let producer = client::producer(&self.options, &self.connect().await?).build().await;
            state.producer = Some(producer.map_err(|error| self.failed("no producer could be made", error))?);
        }
        let Some(producer) = &state.producer else { return Ok(()) };
        for delivery in rest {
            // Either it is handed over and remembered, or neither: between the two nothing is waited for.
            let handle = producer.enqueue(self.record(&delivery.message)?).await;
            let handle = handle.map_err(|error| self.failed("a record was not accepted", error))?;
            let Delivery { number, message, .. } = delivery;
            state.under_way.push_back(UnderWay { number: *number, message: message.clone(), handle });
        }
        Ok(())
    }

    async fn deliver(&self, state: &mut State, batch: &[Delivery]) -> Result<(), SendError> {
        let deadline = Instant::now() + self.options.wait;
        state.forget_others(batch);
        let handed_over = timeout_at(deadline, self.hand_over(state, batch)).await;
        let handed_over = handed_over.unwrap_or_else(|_| Err(self.late()));
        for at in 0..batch.len() {
            let Some(first) = state.under_way.front_mut() else {
                return handed_over.map_err(|error| error.after(at));
            };
            let Ok(outcome) = timeout_at(deadline, &mut first.handle).await else {
                return Err(self.late().after(at));
            };
            state.under_way.pop_front();
            if let Err(error) = outcome {
                let error = self.failed("a record was not confirmed", error).after(at);
                if error.kind() == SendErrorKind::Temporary {
                    // The client has given this one up, which it does only if it cannot go on. What is behind it may or may not
                    // be written; it is all sent again, in order, by a new producer.
                    state.start_anew().await;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn failed(&self, what: &str, error: KrafkaError) -> SendError {
        let brokers = client::brokers(&self.options.config);
        let what = format!("{what} (`{brokers}`)");
        let failed = match client::kind(&error) {
            SendErrorKind::Permanent => SendError::permanent(what),
            SendErrorKind::Temporary => SendError::temporary(what),
        };
        failed.caused_by(error)
    }

    fn late(&self) -> SendError {
        let brokers = client::brokers(&self.options.config);
        SendError::temporary(format!("not confirmed within {:?} (`{brokers}`)", self.options.wait))
    }
}

impl State {
    /// Keeps of what is under way that with which this batch begins.
    fn forget_others(&mut self, batch: &[Delivery]) {
        let is = |under_way: &UnderWay, delivery: &Delivery| {
            under_way.number == delivery.number && under_way.message == delivery.message
        };
        let begins = batch.first().and_then(|first| self.under_way.iter().position(|found| is(found, first)));
        self.under_way.drain(..begins.unwrap_or(self.under_way.len()));
        let same =
            self.under_way.iter().zip(batch).take_while(|(found, delivery)| is(found, delivery)).count();
        if same < batch.len() {
            self.under_way.truncate(same);
        }
    }

    async fn start_anew(&mut self) {
        self.under_way.clear();
        if let Some(producer) = self.producer.take() {
            // What it still holds is not to be written behind our back. It says that it did not get rid of it all, which is
            // what was asked of it.
            let _ = producer.close_with(CloseOptions::new().timeout(Duration::ZERO)).await;
        }
    }
}

impl Target for KafkaTarget {
    fn arn(&self) -> &Arn {
        &self.arn
    }

    fn limits(&self) -> Limits {
        let events = usize::try_from(self.options.config.batch_size).unwrap_or(usize::MAX);
        let events = if events == 0 { EVENTS_MAX } else { events };
        // The target itself gives up first, so that its error says what is wrong.
        Limits::DEFAULT
            .with_events(events)
            .with_bytes(BYTES_MAX)
            .with_patience(self.options.wait.saturating_mul(2))
    }

    fn send<'a>(&'a self, batch: &'a [Delivery]) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move {
            if batch.is_empty() {
                return Ok(());
            }
            let mut state = self.state.lock().await;
            let outcome = self.deliver(&mut state, batch).await;
            if outcome.as_ref().is_err_and(is_fatal) {
                state.start_anew().await;
            }
            outcome
        })
    }

    /// Connects anew, so that credentials and certificates are asked for too.
    fn probe(&self) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(async move {
            let deadline = Instant::now() + self.options.wait;
            let connected = timeout_at(deadline, self.connect()).await.unwrap_or_else(|_| Err(self.late()));
            connected.map(drop)
        })
    }
}

impl fmt::Debug for KafkaTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brokers = client::brokers(&self.options.config);
        let mut shown = f.debug_struct("KafkaTarget");
        shown.field("arn", &self.arn).field("brokers", &brokers).finish_non_exhaustive()
    }
}

/// Whether the producer will never send anything again.
fn is_fatal(error: &SendError) -> bool {
    let source = std::error::Error::source(error);
    source.and_then(|source| source.downcast_ref::<KrafkaError>()).is_some_and(KrafkaError::is_fatal)
}

/// Where nothing is configured: about a mebibyte of events at their usual length, many to a request for each broker.
const EVENTS_MAX: usize = 4_000;
/// An eighth of what the client holds at most.
const BYTES_MAX: usize = 4 << 20;
