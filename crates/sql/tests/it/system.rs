//! Behaviour of the tables of the schema `system`.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt as _;
use kolumn_sql::{Group, GroupSource, Member, Policy, Principal, Session, Settings, TableName};
use kolumn_topic_store::{
    CommittedOffset, NewTopic, Offset, OffsetCommit, PartitionIndex, Timestamp, Topic, TopicConfig,
};

use crate::support::{Fixture, NOW, Row, wait};

async fn batches(session: &Session, sql: &str) -> Vec<RecordBatch> {
    session.execute(sql).await.expect("a statement that works").rows.try_collect().await.expect("rows")
}

/// The rows as text, columns separated by blanks, null as `-`.
async fn rows(session: &Session, sql: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in batches(session, sql).await {
        let options = FormatOptions::default().with_null("-");
        let columns =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).expect("text"));
        let columns: Vec<_> = columns.collect();
        let line =
            |row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join(" ");
        lines.extend((0..batch.num_rows()).map(line));
    }
    lines
}

#[track_caller]
fn same(found: &[String], expected: &[&str]) {
    assert_eq!(found, expected);
}

fn commit(fixture: &Fixture, group: &str, topic: &Topic, offsets: &[(i32, i64)]) {
    let offsets = offsets.iter().map(|(partition, offset)| OffsetCommit {
        topic: topic.id,
        partition: PartitionIndex::new(*partition),
        committed: CommittedOffset {
            offset: Offset::new(*offset),
            leader_epoch: None,
            metadata: "there".into(),
            committed: Timestamp::new(NOW.value() + 5),
        },
    });
    let commit = fixture.store.commit_offsets(fixture.view.id, group, offsets.collect());
    wait(commit.expect("admitted"));
}

fn three(fixture: &Fixture, topic: &Topic, partition: i32) {
    let rows = ["a", "b", "c"].map(|text| Row::text(NOW.value(), text, text));
    fixture.append(topic, partition, &rows);
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_listed_with_their_sizes_and_settings() {
    let fixture = Fixture::new();
    let pairs = [
        ("retention.ms", "1000"),
        ("retention.bytes", "5000"),
        ("message.timestamp.type", "LogAppendTime"),
        ("max.message.bytes", "2000"),
    ];
    let orders = fixture.topic_with("orders", 2, TopicConfig::parse(pairs).expect("settings"));
    let keep = [("retention.ms", "-1"), ("cleanup.policy", "compact,delete")];
    fixture.topic_with("kept.for-ever", 1, TopicConfig::parse(keep).expect("settings"));
    three(&fixture, &orders, 0);
    three(&fixture, &orders, 1);
    three(&fixture, &orders, 1);
    let session = fixture.session();
    let found = rows(
        &session,
        "SELECT bucket, topic, partitions, created, rows, retention_ms, retention_bytes, cleanup_policy, \
         timestamp_type, max_message_bytes FROM system.topics",
    )
    .await;
    same(
        &found,
        &[
            "kafka kept.for-ever 1 2023-11-14T22:13:20 0 - - compact,delete CreateTime 1048588",
            "kafka orders 2 2023-11-14T22:13:20 9 1000 5000 delete LogAppendTime 2000",
        ],
    );
    let len =
        |partition| fixture.store.partition_len(orders.id, PartitionIndex::new(partition)).expect("known");
    let expected = format!("{} {}", orders.id, len(0) + len(1));
    let found = rows(&session, "SELECT topic_id, bytes FROM vast.system.topics WHERE topic = 'orders'").await;
    same(&found, &[&expected]);
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_listed_with_their_offsets() {
    let fixture = Fixture::new();
    let topic = fixture.topic("orders", 3);
    three(&fixture, &topic, 0);
    three(&fixture, &topic, 2);
    three(&fixture, &topic, 2);
    let partition = PartitionIndex::new(2);
    let delete = fixture.store.delete_records(topic.id, partition, Some(Offset::new(4)));
    wait(delete.expect("admitted"));
    let session = fixture.session();
    let found = rows(
        &session,
        "SELECT bucket, topic, partition, log_start_offset, high_watermark, rows, leader_epoch \
         FROM system.partitions",
    )
    .await;
    same(&found, &["kafka orders 0 0 3 3 0", "kafka orders 1 0 0 0 0", "kafka orders 2 4 6 2 0"]);
    let bytes = fixture.store.partition_len(topic.id, partition).expect("known").to_string();
    let found = rows(&session, "SELECT bytes FROM system.partitions WHERE partition = 2").await;
    same(&found, &[&bytes]);
}

/// Two members of `readers`, of whom the second is assigned something that does not exist, and one of `idlers`.
#[derive(Debug)]
struct Told;

impl GroupSource for Told {
    fn groups(&self, bucket: &str) -> Vec<Group> {
        if bucket != "kafka" {
            return Vec::new();
        }
        let member = |id: &str, assigned: &[(&str, i32)]| Member {
            id: id.to_owned(),
            client_id: format!("client-{id}"),
            client_host: "/127.0.0.1".to_owned(),
            assigned: assigned.iter().map(|(topic, partition)| ((*topic).into(), *partition)).collect(),
            ..Member::default()
        };
        let group = |id: &str, members| Group {
            id: id.to_owned(),
            state: "Stable".to_owned(),
            protocol_type: "consumer".to_owned(),
            protocol: "range".to_owned(),
            members,
        };
        let one = member("one", &[("orders", 0), ("orders", 1), ("hidden", 0)]);
        let two = member("two", &[("gone", 0), ("orders", 7), ("orders", 1)]);
        vec![group("readers", vec![one, two]), group("idlers", vec![member("three", &[])])]
    }
}

/// A topic with two partitions, three rows in the first and none in the second, and what groups have committed for it.
fn committed() -> Fixture {
    let fixture = Fixture::new();
    let orders = fixture.topic("orders", 2);
    let hidden = fixture.topic("hidden", 1);
    three(&fixture, &orders, 0);
    commit(&fixture, "readers", &orders, &[(0, 1)]);
    commit(&fixture, "ahead", &orders, &[(0, 100)]);
    commit(&fixture, "readers", &hidden, &[(0, 0)]);
    commit(&fixture, "secret", &hidden, &[(0, 0)]);
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_listed_with_what_they_committed_and_are_assigned() {
    let fixture = committed();
    let session = fixture.engine(|builder| builder.groups(Arc::new(Told))).session(Principal::anonymous());
    let found = rows(
        &session,
        "SELECT group_id, members, topic, partition, committed_offset, high_watermark, lag, member_id \
         FROM system.groups",
    )
    .await;
    same(
        &found,
        &[
            "ahead 0 orders 0 100 3 0 -",
            "idlers 1 - - - - - -",
            "readers 2 gone 0 - - - two",
            "readers 2 hidden 0 0 0 0 one",
            "readers 2 orders 0 1 3 2 one",
            "readers 2 orders 1 - 0 - one",
            "readers 2 orders 1 - 0 - two",
            "readers 2 orders 7 - - - two",
            "secret 0 hidden 0 0 0 0 -",
        ],
    );
    let found = rows(
        &session,
        "SELECT bucket, state, protocol_type, protocol, committed_metadata, committed_at, client_id, client_host \
         FROM system.groups WHERE topic = 'orders' AND partition = 0",
    )
    .await;
    same(
        &found,
        &[
            "kafka Empty - - there 2023-11-14T22:13:20.005 - -",
            "kafka Stable consumer range there 2023-11-14T22:13:20.005 client-one /127.0.0.1",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_source_of_groups_those_of_the_store_are_listed_as_empty() {
    let fixture = committed();
    let found =
        rows(&fixture.session(), "SELECT DISTINCT group_id, state FROM system.groups ORDER BY 1").await;
    same(&found, &["ahead Empty", "readers Empty", "secret Empty"]);
}

/// Nobody may read the topic `hidden`.
#[derive(Debug)]
struct NotHidden;

impl Policy for NotHidden {
    fn may_read(&self, _principal: &Principal, table: TableName<'_>) -> bool {
        (table.schema, table.table) != ("kafka/kafka_topics", "hidden")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_of_topics_that_may_not_be_read() {
    let fixture = committed();
    let engine = fixture.engine(|builder| builder.groups(Arc::new(Told)).policy(Arc::new(NotHidden)));
    let session = engine.session(Principal::anonymous());
    same(&rows(&session, "SELECT topic FROM system.topics").await, &["orders"]);
    same(&rows(&session, "SELECT DISTINCT topic FROM system.partitions").await, &["orders"]);
    let found = rows(&session, "SELECT DISTINCT group_id, topic FROM system.groups ORDER BY 1, 2").await;
    same(&found, &["ahead orders", "idlers -", "readers gone", "readers orders"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_all_views_come_in_small_batches_and_in_their_order() {
    let fixture = Fixture::new();
    let other = wait(fixture.store.ensure_view("another", NOW).expect("admitted"));
    let new = NewTopic { name: "elsewhere".into(), partitions: 2, config: TopicConfig::default() };
    wait(fixture.store.create_topic(other.id, new, false, NOW).expect("admitted"));
    fixture.topic("orders", 4);
    fixture.topic("payments", 1);
    let settings = Settings { rows_max: 2, parallelism: 1, ..Settings::default() };
    let session = fixture.engine(|builder| builder.settings(settings)).session(Principal::anonymous());
    let sql = "SELECT bucket, topic, partition FROM system.partitions";
    let expected = [
        "another elsewhere 0",
        "another elsewhere 1",
        "kafka orders 0",
        "kafka orders 1",
        "kafka orders 2",
        "kafka orders 3",
        "kafka payments 0",
    ];
    same(&rows(&session, sql).await, &expected);
    assert!(batches(&session, sql).await.iter().all(|batch| batch.num_rows() <= 2));
    same(&rows(&session, &format!("{sql} LIMIT 3")).await, &expected[..3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_shows_what_is_there_when_it_is_read() {
    let fixture = Fixture::new();
    let session = fixture.session();
    let sql = "SELECT count(*) FROM system.topics";
    same(&rows(&session, sql).await, &["0"]);
    fixture.topic("orders", 1);
    same(&rows(&session, sql).await, &["1"]);
}
