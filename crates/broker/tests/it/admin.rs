//! What administrators ask about partitions and where they lie.

use kolumn_kafka_wire::messages::{
    CreatePartitionsRequest, DescribeLogDirsRequest, DescribeTopicPartitionsRequest, ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic},
    create_partitions_response::CreatePartitionsTopicResult,
    describe_log_dirs_request::DescribableLogDirTopic,
    describe_log_dirs_response::DescribeLogDirsResult,
    describe_topic_partitions_request::{Cursor, TopicRequest},
    elect_leaders_request::TopicPartitions,
};
use kolumn_kafka_wire::{Array, ErrorCode, Str};

use crate::client::{Client, batch, values};
use crate::config_changes::lent;
use crate::harness::TestBroker;

fn wish(name: &'static str, count: i32) -> CreatePartitionsTopic<'static> {
    CreatePartitionsTopic { name: Str::from(name), count, assignments: None, ..Default::default() }
}

fn assigned(name: &'static str, count: i32, replicas: &[&[i32]]) -> CreatePartitionsTopic<'static> {
    let assignments = replicas.iter().map(|replicas| CreatePartitionsAssignment {
        broker_ids: replicas.to_vec().into(),
        ..CreatePartitionsAssignment::default()
    });
    CreatePartitionsTopic { assignments: Some(assignments.collect()), ..wish(name, count) }
}

async fn create_partitions(
    client: &mut Client,
    version: i16,
    topics: Vec<CreatePartitionsTopic<'static>>,
    validate_only: bool,
) -> Vec<CreatePartitionsTopicResult<'static>> {
    let request = CreatePartitionsRequest {
        topics: topics.into(),
        timeout_ms: 30_000,
        validate_only,
        ..CreatePartitionsRequest::default()
    };
    client.call(version, &request).await.results.iter().collect()
}

/// The partitions of a topic, as metadata numbers them.
async fn partitions(client: &mut Client, topic: &str) -> Vec<i32> {
    let metadata = client.metadata(&[topic], false).await;
    let topic = metadata.topics.iter().next().expect("a topic");
    topic.partitions.iter().map(|partition| partition.partition_index).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_added_behind_the_present_ones() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    let id = client.create_topic("grows", 2).await;
    client.produce("grows", 1, batch(&["kept"])).await;
    let results = create_partitions(&mut client, 3, vec![wish("grows", 5)], false).await;
    let results: Vec<_> = results.iter().map(|result| (&*result.name, result.error_code)).collect();
    assert_eq!(results, [("grows", ErrorCode::NONE)], "one result a topic");
    assert_eq!(partitions(&mut client, "grows").await, [0, 1, 2, 3, 4]);
    for partition in 2..5 {
        let produced = client.produce("grows", partition, batch(&["new"])).await;
        assert_eq!((produced.error_code, produced.base_offset), (ErrorCode::NONE, 0));
    }
    let broker = TestBroker::start_in(broker.stop().await, |_| {}).await;
    let mut client = broker.client().await;
    assert_eq!(partitions(&mut client, "grows").await, [0, 1, 2, 3, 4], "also after a restart");
    assert_eq!(values(&client.fetch("grows", 1, 0).await), [(0, "kept".to_owned())]);
    assert_eq!(values(&client.fetch("grows", 4, 0).await), [(0, "new".to_owned())]);
    let metadata = client.metadata(&["grows"], false).await;
    assert_eq!(metadata.topics.iter().next().expect("a topic").topic_id, id, "it is the same topic");
}

#[tokio::test(flavor = "multi_thread")]
async fn create_partitions_answers_each_fault_with_its_own_code() {
    let broker = TestBroker::start_with(|settings| settings.topics.partitions_max = 100).await;
    let mut client = broker.client().await;
    client.create_topic("grows", 3).await;
    let node = 1;
    for (topic, code, text) in [
        (wish("grows", 3), ErrorCode::INVALID_PARTITIONS, "already has 3 partitions"),
        (wish("grows", 2), ErrorCode::INVALID_PARTITIONS, "2 would not be an increase"),
        (wish("grows", 0), ErrorCode::INVALID_PARTITIONS, "0 would not be an increase"),
        (wish("grows", i32::MIN), ErrorCode::INVALID_PARTITIONS, "would not be an increase"),
        (wish("grows", 101), ErrorCode::INVALID_PARTITIONS, "from 1 to 100"),
        (wish("unknown", 5), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "no topic `unknown`"),
        (assigned("grows", 5, &[&[node]]), ErrorCode::INVALID_REPLICA_ASSIGNMENT, "chosen for 1"),
        (assigned("grows", 4, &[&[node], &[node]]), ErrorCode::INVALID_REPLICA_ASSIGNMENT, "chosen for 2"),
        (assigned("grows", 4, &[&[99]]), ErrorCode::INVALID_REPLICA_ASSIGNMENT, "on this broker"),
        (assigned("grows", 4, &[&[]]), ErrorCode::INVALID_REPLICA_ASSIGNMENT, "on this broker"),
        (assigned("grows", 4, &[&[node, node]]), ErrorCode::INVALID_REPLICA_ASSIGNMENT, "on this broker"),
    ] {
        let results = create_partitions(&mut client, 2, vec![topic], false).await;
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].error_code, code, "{text}");
        let message = results[0].error_message.as_deref().expect("a text");
        assert!(message.contains(text), "{message}");
    }
    let results = create_partitions(&mut client, 2, vec![assigned("grows", 5, &[&[node], &[node]])], false);
    assert_eq!(results.await[0].error_code, ErrorCode::NONE);
    assert_eq!(partitions(&mut client, "grows").await, [0, 1, 2, 3, 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_wished_twice_for_one_topic_are_refused_and_others_created() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("twice", 1).await;
    client.create_topic("once", 1).await;
    let wishes = vec![wish("twice", 2), wish("once", 2), wish("twice", 3)];
    let results = create_partitions(&mut client, 1, wishes, false).await;
    let mut codes: Vec<_> = results.iter().map(|result| (&*result.name, result.error_code)).collect();
    codes.sort_unstable_by_key(|(name, _)| *name);
    assert_eq!(codes, [("once", ErrorCode::NONE), ("twice", ErrorCode::INVALID_REQUEST)]);
    assert_eq!(partitions(&mut client, "twice").await, [0]);
    assert_eq!(partitions(&mut client, "once").await, [0, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_that_are_only_validated_are_not_created() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("dry", 1).await;
    let results = create_partitions(&mut client, 0, vec![wish("dry", 2)], true).await;
    assert_eq!(results[0].error_code, ErrorCode::NONE);
    let results = create_partitions(&mut client, 0, vec![wish("dry", 1)], true).await;
    assert_eq!(results[0].error_code, ErrorCode::INVALID_PARTITIONS);
    assert_eq!(partitions(&mut client, "dry").await, [0]);
}

async fn log_dir(
    client: &mut Client,
    topics: Option<&[(&'static str, &[i32])]>,
) -> DescribeLogDirsResult<'static> {
    let topics = topics.map(|topics| {
        let topics = topics.iter().map(|(name, partitions)| DescribableLogDirTopic {
            topic: Str::from(*name),
            partitions: partitions.to_vec().into(),
            ..DescribableLogDirTopic::default()
        });
        topics.collect::<Array<'_, _>>()
    });
    let request = DescribeLogDirsRequest { topics, ..DescribeLogDirsRequest::default() };
    let response = client.call(4, &request).await;
    assert_eq!((response.error_code, response.results.len()), (ErrorCode::NONE, 1));
    response.results.iter().next().expect("a directory")
}

/// Topic, partition and size of what lies in a directory.
fn sizes(dir: &DescribeLogDirsResult<'static>) -> Vec<(String, i32, i64)> {
    let mut sizes = Vec::new();
    for topic in &dir.topics {
        for partition in &topic.partitions {
            assert_eq!((partition.offset_lag, partition.is_future_key), (0, false));
            sizes.push((topic.name.to_string(), partition.partition_index, partition.partition_size));
        }
    }
    sizes
}

#[tokio::test(flavor = "multi_thread")]
async fn the_one_directory_is_described_with_the_sizes_of_partitions() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("b", 2).await;
    client.create_topic("a", 1).await;
    let records = batch(&["some", "records"]);
    let len = i64::try_from(records.len()).expect("short");
    client.produce("b", 1, records.clone()).await;
    client.produce("b", 1, records).await;
    let dir = log_dir(&mut client, None).await;
    assert_eq!(dir.error_code, ErrorCode::NONE);
    assert_eq!(std::path::Path::new(&*dir.log_dir), broker.dir.path());
    assert!(dir.total_bytes > 0 && (1..=dir.total_bytes).contains(&dir.usable_bytes), "{dir:?}");
    let all = [("a".to_owned(), 0, 0), ("b".to_owned(), 0, 0), ("b".to_owned(), 1, 2 * len)];
    assert_eq!(sizes(&dir), all);
    let asked = log_dir(&mut client, Some(&[("b", &[1, 7, 1, -1]), ("unknown", &[0]), ("b", &[1])])).await;
    assert_eq!(sizes(&asked), all[2..], "what is asked for, once, as far as it is there");
    assert_eq!(sizes(&log_dir(&mut client, Some(&[])).await), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_a_known_directory_has_the_name_of_its_view() {
    let (broker, _store, _dir) = lent().await;
    let mut client = Client::connect(broker.local_addr()).await;
    assert_eq!(&*log_dir(&mut client, None).await.log_dir, "kafka");
}

async fn elect(
    client: &mut Client,
    version: i16,
    election_type: i8,
    topics: Option<&[(&'static str, &[i32])]>,
) -> (ErrorCode, Vec<(String, i32, ErrorCode)>) {
    let topics = topics.map(|topics| {
        let topics = topics.iter().map(|(name, partitions)| TopicPartitions {
            topic: Str::from(*name),
            partitions: partitions.to_vec().into(),
            ..TopicPartitions::default()
        });
        topics.collect::<Array<'_, _>>()
    });
    let request = ElectLeadersRequest { election_type, topic_partitions: topics, ..Default::default() };
    let response = client.call(version, &request).await;
    let mut results = Vec::new();
    for topic in &response.replica_election_results {
        for partition in &topic.partition_result {
            assert!(partition.error_message.is_some());
            results.push((topic.topic.to_string(), partition.partition_id, partition.error_code));
        }
    }
    (response.error_code, results)
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_sorted_by_name_also_where_topics_were_created_for_it() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("c", 1).await;
    let metadata = client.metadata(&["d", "not legal", "c", "b"], true).await;
    let names = metadata.topics.iter().map(|topic| topic.name.expect("a name").to_string());
    assert_eq!(names.collect::<Vec<_>>(), ["b", "c", "d", "not legal"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_partition_needs_an_election() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("led", 2).await;
    let needless = |partition| ("led".to_owned(), partition, ErrorCode::ELECTION_NOT_NEEDED);
    let unknown =
        |topic: &str, partition| (topic.to_owned(), partition, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    for (version, election_type) in [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)] {
        let asked: &[(&str, &[i32])] = &[("led", &[1, 0, 2, 1]), ("unknown", &[0])];
        let (code, results) = elect(&mut client, version, election_type, Some(asked)).await;
        assert_eq!(code, ErrorCode::NONE);
        assert_eq!(results, [needless(0), needless(1), unknown("led", 2), unknown("unknown", 0)]);
        let all = elect(&mut client, version, election_type, None).await;
        assert_eq!(all, (ErrorCode::NONE, vec![]), "of all, those that got no leader are named");
    }
    let (code, results) = elect(&mut client, 2, 2, Some(&[("led", &[0])])).await;
    assert_eq!(code, ErrorCode::INVALID_REQUEST);
    assert_eq!(results, [("led".to_owned(), 0, ErrorCode::INVALID_REQUEST)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_partition_moves_to_another_broker() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("stays", 1).await;
    let response = client.call(0, &ListPartitionReassignmentsRequest::default()).await;
    assert_eq!((response.error_code, response.error_message), (ErrorCode::NONE, None));
    assert!(response.topics.is_empty());
}

/// A page: what is in it of each topic, and where the next one begins.
type Page = (Vec<(String, ErrorCode, Vec<i32>)>, Option<(String, i32)>);

async fn page(client: &mut Client, names: &[&'static str], limit: i32, from: Option<(&str, i32)>) -> Page {
    let topics = names.iter().map(|name| TopicRequest { name: Str::from(*name), ..Default::default() });
    let request = DescribeTopicPartitionsRequest {
        topics: topics.collect(),
        response_partition_limit: limit,
        cursor: from.map(|(topic_name, partition_index)| Cursor {
            topic_name: Str::from(topic_name),
            partition_index,
            ..Cursor::default()
        }),
        ..DescribeTopicPartitionsRequest::default()
    };
    let response = client.call(0, &request).await;
    let topics = response.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| partition.partition_index);
        (topic.name.expect("a name").to_string(), topic.error_code, partitions.collect())
    });
    let next = response.next_cursor.as_ref();
    (topics.collect(), next.map(|cursor| (cursor.topic_name.to_string(), cursor.partition_index)))
}

fn found(name: &str, partitions: &[i32]) -> (String, ErrorCode, Vec<i32>) {
    (name.to_owned(), ErrorCode::NONE, partitions.to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_described_page_by_page_in_the_order_of_their_names() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    for (name, count) in [("b", 3), ("a", 2), ("c", 1)] {
        client.create_topic(name, count).await;
    }
    let all = vec![found("a", &[0, 1]), found("b", &[0, 1, 2]), found("c", &[0])];
    assert_eq!(page(&mut client, &[], 2_000, None).await, (all, None));
    let next = |name: &str, partition| Some((name.to_owned(), partition));
    let first = (vec![found("a", &[0, 1]), found("b", &[0])], next("b", 1));
    assert_eq!(page(&mut client, &[], 3, None).await, first);
    let second = (vec![found("b", &[1, 2])], next("c", 0));
    assert_eq!(page(&mut client, &[], 2, Some(("b", 1))).await, second);
    assert_eq!(page(&mut client, &[], 2, Some(("c", 0))).await, (vec![found("c", &[0])], None));
    assert_eq!(page(&mut client, &[], 0, None).await, (vec![found("a", &[0])], next("a", 1)), "at least one");
    // The topic of the cursor has been deleted, or has fewer partitions now.
    assert_eq!(page(&mut client, &[], 9, Some(("bb", 7))).await, (vec![found("c", &[0])], None));
    assert_eq!(page(&mut client, &[], 9, Some(("c", 7))).await, (vec![found("c", &[])], None));
}

#[tokio::test(flavor = "multi_thread")]
async fn named_topics_are_described_once_each_and_unknown_ones_with_their_error() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("known", 1).await;
    client.create_topic("other", 1).await;
    let missing = |name: &str, code| (name.to_owned(), code, vec![]);
    let unknown = missing("unknown", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let illegal = missing("not legal", ErrorCode::INVALID_TOPIC_EXCEPTION);
    let names = ["unknown", "known", "not legal", "known"];
    let expected = vec![found("known", &[0]), illegal, unknown.clone()];
    assert_eq!(page(&mut client, &names, 2_000, None).await, (expected, None));
    let second = page(&mut client, &names, 2_000, Some(("o", 0))).await;
    assert_eq!(second, (vec![unknown], None), "what comes before the cursor is left out");
    let (refused, next) = page(&mut client, &["known"], 1, Some(("a", -1))).await;
    assert_eq!((refused, next), (vec![missing("known", ErrorCode::INVALID_REQUEST)], None));
    // Nobody was created by the asking.
    assert_eq!(page(&mut client, &[], 9, None).await.0.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_two_thousand_partitions_at_most() {
    let broker = TestBroker::start().await;
    let mut client = broker.client().await;
    client.create_topic("wide", 2_500).await;
    let (topics, next) = page(&mut client, &[], i32::MAX, None).await;
    assert_eq!((topics[0].2.len(), next), (2_000, Some(("wide".to_owned(), 2_000))));
    let (topics, next) = page(&mut client, &[], i32::MAX, Some(("wide", 2_000))).await;
    assert_eq!((topics[0].2.first(), topics[0].2.len(), next), (Some(&2_000), 500, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_described_partition_is_led_by_this_broker() {
    let broker = TestBroker::start_with(|settings| settings.node_id = 7).await;
    let mut client = broker.client().await;
    let id = client.create_topic("led", 1).await;
    client.create_topic("__consumer_offsets", 1).await;
    let response = client.call(0, &DescribeTopicPartitionsRequest::default()).await;
    for topic in &response.topics {
        let is_led = topic.name.as_deref() == Some("led");
        assert_eq!(topic.topic_id == id, is_led);
        assert_eq!(topic.is_internal, !is_led);
        assert!(topic.topic_authorized_operations > 0);
        let partition = topic.partitions.iter().next().expect("a partition");
        assert_eq!((partition.error_code, partition.leader_id), (ErrorCode::NONE, 7));
        assert!(partition.leader_epoch >= 0);
        assert!(partition.replica_nodes.iter().eq([7]) && partition.isr_nodes.iter().eq([7]));
        assert!(partition.offline_replicas.is_empty());
    }
    let metadata = client.metadata(&["led", "__consumer_offsets"], false).await;
    let internal =
        metadata.topics.iter().map(|topic| (topic.name.expect("a name").to_string(), topic.is_internal));
    assert_eq!(
        internal.collect::<Vec<_>>(),
        [("__consumer_offsets".to_owned(), true), ("led".to_owned(), false)]
    );
}
