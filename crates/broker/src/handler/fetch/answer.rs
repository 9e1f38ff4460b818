//! The response: what was collected, less what a session need not tell again.

use std::sync::Arc;

use kolumn_kafka_wire::messages::FetchResponse;
use kolumn_kafka_wire::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kolumn_kafka_wire::{Array, ErrorCode, Records};
use kolumn_topic_store::Slice;

use super::collect::{Collected, FoundPartition};
use super::plan::Plan;
use crate::dispatch::{Answer, Head};
use crate::fetch_session::{Told, TopicRef};

/// Partitions of the same topic that follow one another share its name.
pub(super) fn answer(head: Head, plan: &Plan, collected: Collected, told: Told) -> Answer {
    let Told { session_id, news } = told;
    let mut ranges = Vec::new();
    let mut topics: Vec<(&Arc<TopicRef>, Vec<PartitionData<'static>>)> = Vec::new();
    let mut news = news.into_iter().flatten();
    for (wanted, found) in plan.partitions.iter().zip(collected.partitions) {
        // Without a session everything is told.
        if news.next() == Some(false) {
            continue;
        }
        let data = partition(plan, wanted.partition, found, &mut ranges);
        match topics.last_mut() {
            Some((topic, partitions)) if *topic == &wanted.topic => partitions.push(data),
            _ => topics.push((&wanted.topic, vec![data])),
        }
    }
    let responses = topics.into_iter().map(|(topic, partitions)| FetchableTopicResponse {
        topic: topic.name.clone(),
        topic_id: topic.id,
        partitions: partitions.into(),
        ..FetchableTopicResponse::default()
    });
    let responses = responses.collect::<Vec<_>>().into();
    head.answer_with(
        &FetchResponse { session_id, responses, ..FetchResponse::default() },
        head.version,
        ranges,
    )
}

/// The answer to a request that does not fit its session.
pub(super) fn refuse(head: Head, error_code: ErrorCode) -> Answer {
    head.answer(&FetchResponse { error_code, ..FetchResponse::default() })
}

fn partition(
    plan: &Plan,
    partition_index: i32,
    found: FoundPartition,
    ranges: &mut Vec<Vec<Slice>>,
) -> PartitionData<'static> {
    let mut data = PartitionData {
        partition_index,
        error_code: found.error_code,
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        aborted_transactions: plan.terms.read_committed.then(Array::new),
        records: Some(Records::default()),
        ..PartitionData::default()
    };
    if let Some(offsets) = found.offsets {
        data.high_watermark = offsets.high_watermark.value();
        data.last_stable_offset = offsets.last_stable.value();
        data.log_start_offset = offsets.log_start.value();
    }
    if found.len > 0 {
        data.records = Some(Records::Deferred { len: found.len, token: ranges.len() as u64 });
        ranges.push(found.slices);
    }
    data
}
