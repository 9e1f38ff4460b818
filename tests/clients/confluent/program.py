"""The scenarios of the client matrix with confluent-kafka, which is librdkafka behind Python."""

from __future__ import annotations

import pathlib
import struct
import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

import cell  # noqa: E402
import records  # noqa: E402

FLUSH_SECONDS_MAX = 60


def produce(arguments: cell.Arguments) -> None:
    """Sends the seeded records, all acknowledged before it ends."""
    producer = Producer({
        "bootstrap.servers": arguments.bootstrap,
        "acks": "all",
        "compression.type": arguments.text("codec"),
        "linger.ms": 100,
    })  # fmt: skip
    topic = arguments.text("topic")
    sent = records.seeded(
        arguments.number("seed"),
        arguments.number("count"),
        arguments.number("partitions", 1),
        arguments.number("big", 0) == 1,
    )
    errors = []

    def delivered(error: object, _: Message) -> None:
        if error is not None:
            errors.append(error)

    for record in sent:
        producer.produce(
            topic,
            value=record.value,
            key=record.key,
            partition=record.partition,
            on_delivery=delivered,
            timestamp=record.timestamp,
            headers=list(record.headers),
        )
    left = producer.flush(FLUSH_SECONDS_MAX)
    if left or errors:
        sys.exit(f"{left} records were not delivered in time, {len(errors)} failed: {errors[:1]}")
    cell.emit({"produced": len(sent)})


def read(arguments: cell.Arguments) -> None:
    """Reads all partitions from their start, without a group."""
    consumer = Consumer({
        "bootstrap.servers": arguments.bootstrap,
        "group.id": "unused: offsets are neither fetched nor committed",
        "enable.auto.commit": False,
        "check.crcs": True,
    })  # fmt: skip
    topic, partitions = arguments.text("topic"), arguments.number("partitions")
    consumer.assign([TopicPartition(topic, at, OFFSET_BEGINNING) for at in range(partitions)])
    _emit_records(consumer, arguments.number("expect"), float("inf"))
    consumer.close()


def group(arguments: cell.Arguments) -> None:
    """Reads as the only member of a group, commits, and leaves."""
    consumer = _member(arguments)
    consumer.subscribe([arguments.text("topic")])
    _emit_records(consumer, arguments.number("expect"), time.monotonic() + arguments.number("timeout", 60))
    consumer.commit(asynchronous=False)
    known = consumer.committed(consumer.assignment(), timeout=FLUSH_SECONDS_MAX)
    consumer.close()
    cell.emit({"committed": {str(at.partition): at.offset for at in known}})


def churn(arguments: cell.Arguments) -> None:
    """A member that commits after every poll, and tells what it owns, reads and commits."""
    over = cell.until_sigterm()
    instance = arguments.text("instance", "")
    strategies = {"range": "range", "cooperative": "cooperative-sticky"}
    consumer = _member(arguments, {
        "client.id": arguments.text("id"),
        "session.timeout.ms": arguments.number("session_ms", cell.SESSION_TIMEOUT_MS),
        "heartbeat.interval.ms": cell.HEARTBEAT_INTERVAL_MS,
        "partition.assignment.strategy": strategies[arguments.text("strategy")],
        **({"group.instance.id": instance} if instance else {}),
    })  # fmt: skip
    consumer.subscribe([arguments.text("topic")], on_assign=_assigned, on_revoke=_revoked, on_lost=_revoked)
    end = time.monotonic() + arguments.number("seconds")
    while not over.is_set() and time.monotonic() < end:
        offsets = {}
        for message in consumer.consume(500, cell.POLL_SECONDS):
            if message.error():
                cell.emit({"error": str(message.error())})
                continue
            value = None if message.value() is None else message.value().decode()
            cell.emit({"r": [message.partition(), message.offset(), value]})
            offsets[str(message.partition())] = message.offset() + 1
        if offsets:
            _commit(consumer, offsets)
    consumer.close()


def _commit(consumer: Consumer, offsets: dict[str, int]) -> None:
    generation, _ = _identity(consumer)
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        cell.emit({"commit_failed": str(error), "gen": generation})
    else:
        cell.emit({"commit": offsets, "gen": generation})


def _assigned(consumer: Consumer, assigned: list[TopicPartition]) -> None:
    """Of a cooperative assignment only what is new."""
    generation, member = _identity(consumer)
    cell.emit({"assigned": sorted(at.partition for at in assigned), "gen": generation, "member": member})


def _revoked(_: Consumer, revoked: list[TopicPartition]) -> None:
    """Called before others may own them."""
    cell.emit({"revoked": sorted(at.partition for at in revoked)})


def _identity(consumer: Consumer) -> tuple[int, str]:
    """The member's generation and id, out of the bytes that a transactional producer would be given.

    `"CGMDv2:" generation:int32 (this machine's order) group:bytes 0 member:bytes 0 ...`
    """
    raw = bytes(consumer.consumer_group_metadata())
    (generation,) = struct.unpack_from("=i", raw, 7)
    return generation, consumer.memberid() or ""


def _member(arguments: cell.Arguments, settings: dict | None = None) -> Consumer:
    return Consumer({
        "bootstrap.servers": arguments.bootstrap,
        "group.id": arguments.text("group"),
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        **(settings or {}),
    })  # fmt: skip


def _emit_records(consumer: Consumer, expected: int, end: float) -> None:
    seen = 0
    while seen < expected:
        if time.monotonic() > end:
            sys.exit(f"{seen} of {expected} records came in time")
        for message in consumer.consume(500, cell.POLL_SECONDS):
            if message.error():
                sys.exit(f"an error came instead of a record: {message.error()}")
            _, timestamp = message.timestamp()
            cell.emit_record(
                message.partition(), message.offset(), timestamp, message.key(), message.value(), message.headers() or []
            )
            seen += 1


if __name__ == "__main__":
    cell.main({"produce": produce, "read": read, "group": group, "churn": churn})
