//! Fetch sessions against a naive twin: a list of partitions and what was last told about each.

use std::cell::Cell;

use kolumn_kafka_wire::messages::{
    FetchRequest,
    fetch_request::{FetchPartition, FetchTopic, ForgottenTopic},
};
use kolumn_kafka_wire::{ErrorCode, Str, Uuid};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::client::{Client, batch, bytes};
use crate::harness::TestBroker;

/// Partitions that exist; one more is asked for.
const PARTITIONS: i32 = 5;

#[derive(Debug, Clone)]
enum Step {
    Append(i32),
    /// Wants partitions from so many records before the end (or, below zero, behind it), and forgets others.
    Fetch {
        wanted: Vec<(i32, i64)>,
        forgotten: Vec<i32>,
    },
    StartAnew,
}

fn step() -> impl Strategy<Value = Step> {
    let partition = 0..=PARTITIONS;
    let wanted = prop::collection::vec((partition.clone(), -1..3_i64), 0..3);
    let forgotten = prop::collection::vec(partition, 0..2);
    prop_oneof![
        4 => (0..PARTITIONS).prop_map(Step::Append),
        6 => (wanted, forgotten).prop_map(|(wanted, forgotten)| Step::Fetch { wanted, forgotten }),
        1 => Just(Step::StartAnew),
    ]
}

/// Partition, error, high watermark and whether there are records, as an answer has them.
type Told = (i32, ErrorCode, i64, bool);

/// What a client wants, in the order in which it is served: partition, offset, the end that it was told.
#[derive(Debug, Default)]
struct Twin {
    session: Vec<(i32, i64, Option<i64>)>,
    ends: [i64; 5],
}

impl Twin {
    fn end(&self, partition: i32) -> Option<i64> {
        self.ends.get(usize::try_from(partition).ok()?).copied()
    }

    fn offset(&self, partition: i32, before_end: i64) -> i64 {
        self.end(partition).map_or(0, |end| (end - before_end).max(0))
    }

    fn answer(&mut self, wanted: &[(i32, i64)], forgotten: &[i32]) -> Vec<Told> {
        for (partition, offset) in wanted.iter().copied() {
            match self.session.iter_mut().find(|known| known.0 == partition) {
                Some(known) => known.1 = offset,
                None => self.session.push((partition, offset, None)),
            }
        }
        self.session.retain(|known| !forgotten.contains(&known.0));
        let (mut answer, mut served, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for (partition, offset, told) in std::mem::take(&mut self.session) {
            let end = self.end(partition);
            let code = match end {
                None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                Some(end) if offset > end => ErrorCode::OFFSET_OUT_OF_RANGE,
                Some(_) => ErrorCode::NONE,
            };
            let end = end.filter(|_| code == ErrorCode::NONE);
            let has_records = end.is_some_and(|end| offset < end);
            if has_records || end.is_none() || end != told {
                answer.push((partition, code, end.unwrap_or(-1), has_records));
            }
            if has_records { &mut served } else { &mut rest }.push((partition, offset, end));
        }
        rest.append(&mut served);
        self.session = rest;
        answer
    }
}

struct Peer {
    client: Client,
    version: i16,
    topic: &'static str,
    topic_id: Uuid,
}

impl Peer {
    async fn fetch(
        &mut self,
        (session_id, session_epoch): (i32, i32),
        wanted: &[(i32, i64)],
        forgotten: &[i32],
    ) -> (i32, Vec<Told>) {
        let (topic, topic_id) = (Str::from(self.topic), self.topic_id);
        let wanted = wanted.iter().map(|(partition, fetch_offset)| FetchPartition {
            partition: *partition,
            fetch_offset: *fetch_offset,
            partition_max_bytes: 1 << 20,
            ..FetchPartition::default()
        });
        let partitions = wanted.collect::<Vec<_>>().into();
        let topics = vec![FetchTopic { topic: topic.clone(), topic_id, partitions, ..FetchTopic::default() }];
        let partitions = forgotten.to_vec().into();
        let forgotten = vec![ForgottenTopic { topic, topic_id, partitions, ..ForgottenTopic::default() }];
        let request = FetchRequest {
            session_id,
            session_epoch,
            topics: topics.into(),
            forgotten_topics_data: forgotten.into(),
            ..FetchRequest::default()
        };
        let response = self.client.call(self.version, &request).await;
        assert_eq!(response.error_code, ErrorCode::NONE);
        let told = response.responses.iter().flat_map(|topic| topic.partitions);
        let told = told.map(|found| {
            (found.partition_index, found.error_code, found.high_watermark, !bytes(&found).is_empty())
        });
        (response.session_id, told.collect())
    }
}

/// Plays the steps against the broker and the twin. A session that has ended is started anew, as clients do.
async fn play(mut peer: Peer, steps: Vec<Step>) {
    let mut twin = Twin::default();
    let (mut session, mut epoch) = (0, 0);
    for step in steps {
        let (wanted, forgotten) = match step {
            Step::Append(partition) => {
                peer.client.produce(peer.topic, partition, batch(&["x"])).await;
                twin.ends[usize::try_from(partition).expect("an index")] += 1;
                continue;
            }
            Step::StartAnew => {
                epoch = 0;
                ((0..=PARTITIONS).map(|partition| (partition, 1)).collect(), Vec::new())
            }
            Step::Fetch { wanted, forgotten } => (wanted, forgotten),
        };
        let mut wanted: Vec<_> = wanted
            .into_iter()
            .map(|(partition, before)| (partition, twin.offset(partition, before)))
            .collect();
        // A partition that is named twice is answered twice in full: that is not what is compared here.
        wanted.sort_by_key(|(partition, _)| *partition);
        wanted.dedup_by_key(|(partition, _)| *partition);
        let forgotten = if epoch == 0 { Vec::new() } else { forgotten };
        if epoch == 0 {
            twin.session.clear();
        }
        let expected = twin.answer(&wanted, &forgotten);
        let (answered, told) = peer.fetch((session, epoch), &wanted, &forgotten).await;
        assert_eq!(told, expected, "epoch {epoch}");
        assert_eq!(answered == 0, twin.session.is_empty(), "a session lives as long as it has partitions");
        if epoch == 0 {
            // Only incremental answers rotate.
            twin.session.sort_by_key(|known| known.0);
        } else if answered != 0 {
            assert_eq!(answered, session);
        }
        (session, epoch) = if answered == 0 { (0, 0) } else { (answered, epoch + 1) };
    }
}

#[test]
fn a_session_tells_exactly_what_its_naive_twin_tells() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let broker = runtime.block_on(TestBroker::start());
    let count = Cell::new(0);
    let steps = (any::<bool>(), prop::collection::vec(step(), 1..40));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(40));
    let outcome = runner.run(&steps, |(by_id, steps)| {
        count.set(count.get() + 1);
        let topic: &'static str = Box::leak(format!("twin-{}", count.get()).into_boxed_str());
        runtime.block_on(async {
            let mut client = broker.client().await;
            let topic_id = client.create_topic(topic, PARTITIONS).await;
            let version = if by_id { 16 } else { 12 };
            play(Peer { client, version, topic, topic_id }, steps).await;
        });
        Ok(())
    });
    outcome.expect("no difference");
}
