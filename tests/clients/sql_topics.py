"""The topics that the statements of `sql_statements.py` are about, and the groups that read them."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
from typing import Iterator

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition

import harness
import wire
from harness import check

# 2023-11-14 22:13:20 UTC
BEGAN_MS = 1_700_000_000_000
DAY_MS = 86_400_000


@dataclasses.dataclass(frozen=True)
class Row:
    """A record as it is sent; `later_ms` counts from [`BEGAN_MS`], and is null for a record without a timestamp."""

    later_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def columns(self, partition: int, offset: int) -> tuple:
        """The record as a row of its table."""
        headers = [{"key": name, "value": value} for name, value in self.headers]
        return partition, offset, when(self.later_ms), self.key, self.value, headers


def when(later_ms: int | None) -> datetime.datetime | None:
    """A timestamp as a table has it: UTC, without a zone."""
    if later_ms is None:
        return None
    return datetime.datetime(2023, 11, 14, 22, 13, 20) + datetime.timedelta(milliseconds=later_ms)


def _json(**fields: object) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


EVENTS = (
    (
        Row(0, b"alice", _json(user="alice", amount=5, ratio=0.5, ok=True, tags=["a", "b"], nested={"x": 1})),
        Row(1_000, b"bob", _json(user="bob", amount=7, ratio=1.25, ok=False), (("h1", b"a"), ("h1", b"b"))),
        Row(2_000, None, b"not JSON", (("empty", None), ("bin", b"\x00\xff\x80"))),
        Row(3_001, b"carol", None),
        Row(DAY_MS, b"al%ce", _json(user="al%ce", amount=-3, ratio=None, ok=None), (("h", b""),)),
        Row(DAY_MS + 1, b"\xff\xfe", b"\x00\x01\xc3"),
    ),
    (
        Row(500, b"alice", _json(user="alice", amount=11, ratio=2.0, ok=True)),
        Row(2_500, b"dave", _json(user='dave "d" ü', amount=1 << 40)),
        Row(None, None, b"without a time"),
    ),
)
USERS = (
    (
        Row(0, b"alice", _json(name="Alice A.", rank=1)),
        Row(0, b"bob", _json(name="Bob B.", rank=2)),
        Row(0, b"erin", _json(name="Erin E.", rank=3)),
    ),
)
ORDERS = ((Row(0, b"o-1", b"first"),), (Row(1, b"o-2", b"second"),))
TOPICS = {"events": EVENTS, "users": USERS, "Orders.v1": ORDERS}


def fill(broker: harness.Broker) -> None:
    """Makes the topics, all of it acknowledged. No client library sends a record without a timestamp, and few a null in a header."""
    connection = wire.Connection(broker.port)
    for topic, partitions in TOPICS.items():
        check(connection.create_topic(topic, len(partitions)) == 0, f"{topic} is created")
        for partition, rows in enumerate(partitions):
            for offset, row in enumerate(rows):
                timestamp = -1 if row.later_ms is None else BEGAN_MS + row.later_ms
                records = wire.batch_of([wire.record(0, row.key, row.value, row.headers)], timestamp)
                got = connection.produce(topic, partition, records)
                check(got == (0, offset), "a record is taken, and offsets are dense", (topic, partition, got, offset))
    connection.close()


@contextlib.contextmanager
def groups(broker: harness.Broker) -> Iterator[None]:
    """A group with a member that has read a part of `events`, and one that nobody is in."""
    idle = KafkaConsumer(bootstrap_servers=broker.address, group_id="idle", enable_auto_commit=False)
    users = TopicPartition("users", 0)
    idle.assign([users])
    idle.commit({users: OffsetAndMetadata(1, "one", -1)})
    idle.close()
    reader = KafkaConsumer(
        "events",
        bootstrap_servers=broker.address,
        group_id="readers",
        client_id="reader",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    harness.wait_until(lambda: _assigned(reader) == len(EVENTS), "the reader is assigned all partitions")
    reader.commit({TopicPartition("events", 0): OffsetAndMetadata(2, "", -1)})
    try:
        yield
    finally:
        reader.close()


def _assigned(consumer: KafkaConsumer) -> int:
    # kafka-python 3.0.12 joins before it knows the topic, so that it assigns itself nothing, and joins again when the metadata
    # comes, 100 ms after its bootstrap. A poll that ends during that second join loses it for good, with any broker: the
    # leader's `need_rejoin` compares the metadata with those of its last assignment, which are the same again as soon as it has
    # assigned, and does not ask for `_join_task`. Then nobody takes the answer to SyncGroup, and heartbeats stay off.
    consumer.poll(timeout_ms=5000)
    return len(consumer.assignment())
