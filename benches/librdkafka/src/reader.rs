//! Reading partitions with one consumer: in order, without a gap, until there is no more to wait for.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message as _};
use rdkafka::{Offset, TopicPartitionList};

use crate::arguments::Target;
use crate::{client, clock};

/// A consumer of all partitions of a target.
pub(crate) struct Reader {
    consumer: BaseConsumer,
    order: Order,
    /// When the last record came, or the reader began.
    heard: Instant,
    fault: Option<String>,
}

impl Reader {
    /// Starts at the first record that each partition has.
    pub(crate) fn from_beginning(target: &Target, fetch_bytes: u32) -> io::Result<Self> {
        Self::new(target, fetch_bytes, |_, _| Ok(Offset::Beginning))
    }

    /// Starts behind the last record that each partition has.
    pub(crate) fn from_end(target: &Target, fetch_bytes: u32) -> io::Result<Self> {
        Self::new(target, fetch_bytes, |consumer, partition| {
            let (_, end) = consumer.fetch_watermarks(&target.topic, partition, PATIENCE)?;
            Ok(Offset::Offset(end))
        })
    }

    fn new(
        target: &Target,
        fetch_bytes: u32,
        start: impl Fn(&BaseConsumer, i32) -> Result<Offset, KafkaError>,
    ) -> io::Result<Self> {
        let consumer = client::consumer(target, fetch_bytes)?;
        let mut wanted = TopicPartitionList::new();
        for partition in 0..i32::from(target.partitions) {
            start(&consumer, partition)
                .and_then(|offset| wanted.add_partition_offset(&target.topic, partition, offset))
                .map_err(io::Error::other)?;
        }
        consumer.assign(&wanted).map_err(io::Error::other)?;
        Ok(Self { consumer, order: Order::new(target.partitions), heard: clock::now(), fault: None })
    }

    /// Waits a moment for the next record.
    pub(crate) fn next(&mut self) -> io::Result<Option<BorrowedMessage<'_>>> {
        match self.consumer.poll(POLL) {
            None => Ok(None),
            Some(Ok(message)) => {
                self.heard = clock::now();
                self.order.read(message.partition(), message.offset());
                Ok(Some(message))
            }
            // The library tries again by itself, unless it says that this is the end.
            Some(Err(error @ KafkaError::MessageConsumptionFatal(_))) => Err(io::Error::other(error)),
            Some(Err(error)) => {
                self.fault.get_or_insert_with(|| error.to_string());
                Ok(None)
            }
        }
    }

    /// What to tell if no record has come for so long that none will.
    pub(crate) fn silence(&self) -> Option<String> {
        let cause = self.fault.as_deref().unwrap_or("no cause was told");
        let silent = clock::now().saturating_duration_since(self.heard) > SILENCE_MAX;
        silent.then(|| format!("no record came for {} s: {cause}", SILENCE_MAX.as_secs()))
    }

    pub(crate) fn order(&self) -> &Order {
        &self.order
    }
}

/// What offsets came in which order.
#[derive(Debug)]
pub(crate) struct Order {
    /// The first offset of each partition and the one that must come next, if any came yet.
    partitions: Vec<Option<(i64, i64)>>,
    pub(crate) gaps: u64,
}

impl Order {
    fn new(partitions: u16) -> Self {
        Self { partitions: vec![None; usize::from(partitions)], gaps: 0 }
    }

    fn read(&mut self, partition: i32, offset: i64) {
        let at = usize::try_from(partition).unwrap_or(usize::MAX);
        let Some(seen) = self.partitions.get_mut(at) else { return };
        let first = match *seen {
            Some((first, next)) => {
                self.gaps += u64::from(next != offset);
                first
            }
            None => offset,
        };
        *seen = Some((first, offset + 1));
    }

    pub(crate) fn first_offsets(&self) -> BTreeMap<i32, i64> {
        self.seen().map(|(at, (first, _))| (at, first)).collect()
    }

    pub(crate) fn next_offsets(&self) -> BTreeMap<i32, i64> {
        self.seen().map(|(at, (_, next))| (at, next)).collect()
    }

    fn seen(&self) -> impl Iterator<Item = (i32, (i64, i64))> {
        (0..).zip(&self.partitions).filter_map(|(at, seen)| seen.map(|seen| (at, seen)))
    }
}

/// How long a reader waits at once, and so how late it sees that its time is over.
const POLL: Duration = Duration::from_millis(100);
/// How long a broker may take to say where a partition ends.
const PATIENCE: Duration = Duration::from_secs(30);
/// What has not come after this will not come.
const SILENCE_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_that_does_not_follow_its_predecessor_is_a_gap() {
        let mut order = Order::new(2);
        for (partition, offset) in [(0, 7), (1, 0), (0, 8), (1, 1), (0, 10), (0, 11), (0, 11)] {
            order.read(partition, offset);
        }
        assert_eq!(order.gaps, 2);
        assert_eq!(order.first_offsets(), BTreeMap::from([(0, 7), (1, 0)]));
        assert_eq!(order.next_offsets(), BTreeMap::from([(0, 12), (1, 2)]));
    }
}
