//! `DescribeLogDirs`: the one directory of the log, and what partitions take in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kolumn_kafka_wire::Str;
use kolumn_kafka_wire::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kolumn_kafka_wire::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};
use kolumn_topic_store::{PartitionIndex, Topic};

use crate::context::Session;
use crate::dispatch::{Request, Started};
use crate::observer::CloseReason;

pub(crate) fn start(session: &Arc<Session>, request: &Request) -> Result<Started, CloseReason> {
    let message: DescribeLogDirsRequest<'_> = request.decode()?;
    let context = &session.context;
    let pressure = session.store().pressure();
    let result = DescribeLogDirsResult {
        log_dir: Str::from(context.log_dir.as_str()),
        topics: topics(session, &message).into(),
        total_bytes: number(pressure.limit),
        usable_bytes: number(pressure.limit.saturating_sub(pressure.used)),
        ..DescribeLogDirsResult::default()
    };
    let response =
        DescribeLogDirsResponse { results: vec![result].into(), ..DescribeLogDirsResponse::default() };
    Ok(Started::Now(request.head.answer(&response)))
}

/// Those of the partitions asked for that there are; the others lie in no directory.
fn topics(session: &Session, message: &DescribeLogDirsRequest<'_>) -> Vec<DescribeLogDirsTopic<'static>> {
    let (store, view) = (session.store(), session.context.view.id);
    let Some(asked) = &message.topics else {
        let all = store.topics(view);
        return all.iter().map(|topic| describe(session, topic, 0..topic.partitions)).collect();
    };
    let mut partitions: BTreeMap<Str<'_>, BTreeSet<i32>> = BTreeMap::new();
    for topic in asked {
        partitions.entry(topic.topic).or_default().extend(topic.partitions.iter());
    }
    let found = partitions.into_iter().filter_map(|(name, partitions)| {
        let topic = store.topic(view, &name)?;
        Some(describe(session, &topic, partitions))
    });
    found.collect()
}

fn describe(
    session: &Session,
    topic: &Topic,
    partitions: impl IntoIterator<Item = i32>,
) -> DescribeLogDirsTopic<'static> {
    let partitions = partitions.into_iter().filter_map(|partition_index| {
        let len = session.store().partition_len(topic.id, PartitionIndex::new(partition_index))?;
        let partition_size = number(len);
        Some(DescribeLogDirsPartition {
            partition_index,
            partition_size,
            ..DescribeLogDirsPartition::default()
        })
    });
    DescribeLogDirsTopic {
        name: Str::from(Arc::clone(&topic.name)),
        partitions: partitions.collect(),
        ..DescribeLogDirsTopic::default()
    }
}

fn number(len: u64) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}
