"""The scenarios of the client matrix with kafka-python, for its lines 2 and 3."""

from __future__ import annotations

import pathlib
import sys
import time

import kafka
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

import cell  # noqa: E402
import records  # noqa: E402

SEND_SECONDS_MAX = 60
MAJOR = int(kafka.__version__.split(".", maxsplit=1)[0])


def produce(arguments: cell.Arguments) -> None:
    """Sends the seeded records, all acknowledged before it ends."""
    codec = arguments.text("codec")
    producer = KafkaProducer(
        bootstrap_servers=arguments.bootstrap,
        acks="all",
        compression_type=None if codec == "none" else codec,
        linger_ms=100,
        batch_size=64 * 1024,
    )
    topic = arguments.text("topic")
    sent = records.seeded(
        arguments.number("seed"),
        arguments.number("count"),
        arguments.number("partitions", 1),
        arguments.number("big", 0) == 1,
    )
    futures = [
        producer.send(topic, record.value, record.key, list(record.headers), record.partition, record.timestamp)
        for record in sent
    ]
    for future in futures:
        future.get(timeout=SEND_SECONDS_MAX)
    producer.close()
    cell.emit({"produced": len(sent)})


def read(arguments: cell.Arguments) -> None:
    """Reads all partitions from their start, without a group."""
    consumer = KafkaConsumer(
        bootstrap_servers=arguments.bootstrap, group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    consumer.assign([TopicPartition(arguments.text("topic"), at) for at in range(arguments.number("partitions"))])
    consumer.seek_to_beginning()
    _emit_records(consumer, arguments.number("expect"), float("inf"))
    consumer.close()


def group(arguments: cell.Arguments) -> None:
    """Reads as the only member of a group, commits, and leaves."""
    consumer = _member(arguments)
    consumer.subscribe([arguments.text("topic")])
    _emit_records(consumer, arguments.number("expect"), time.monotonic() + arguments.number("timeout", 60))
    consumer.commit()
    committed = {str(at.partition): consumer.committed(at) for at in sorted(consumer.assignment())}
    consumer.close()
    cell.emit({"committed": committed})


def churn(arguments: cell.Arguments) -> None:
    """A member that commits after every poll, and tells what it owns, reads and commits."""
    strategy = arguments.text("strategy")
    assignors = [RangePartitionAssignor]
    if strategy == "cooperative":
        if MAJOR < 3:
            cell.cannot("kafka-python 2.0.2 has no cooperative assignor")
            return
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

        assignors = [CooperativeStickyAssignor]
    instance = arguments.text("instance", "")
    over = cell.until_sigterm()
    consumer = _member(
        arguments,
        client_id=arguments.text("id"),
        session_timeout_ms=arguments.number("session_ms", cell.SESSION_TIMEOUT_MS),
        heartbeat_interval_ms=cell.HEARTBEAT_INTERVAL_MS,
        partition_assignment_strategy=assignors,
        **({"group_instance_id": instance} if instance else {}),
    )
    consumer.subscribe([arguments.text("topic")], listener=Listener(consumer))
    # 3.0.12 loses an assignment that arrives while it learns of the topic for the first time and a short poll ends.
    consumer.partitions_for_topic(arguments.text("topic"))
    end = time.monotonic() + arguments.number("seconds")
    while not over.is_set() and time.monotonic() < end:
        polled = _polled(consumer)
        for record in (record for some in polled.values() for record in some):
            value = None if record.value is None else record.value.decode()
            cell.emit({"r": [record.partition, record.offset, value]})
        if polled:
            _commit(consumer, {str(at.partition): some[-1].offset + 1 for at, some in polled.items()})
    consumer.close()


def _polled(consumer: KafkaConsumer) -> dict[TopicPartition, list]:
    try:
        return consumer.poll(timeout_ms=int(cell.POLL_SECONDS * 1000))
    except KafkaError as error:
        cell.emit({"error": str(error)})
        time.sleep(cell.POLL_SECONDS)
        return {}


def _commit(consumer: KafkaConsumer, offsets: dict[str, int]) -> None:
    generation, _ = _identity(consumer)
    try:
        consumer.commit()
    except KafkaError as error:
        cell.emit({"commit_failed": str(error), "gen": generation})
    else:
        cell.emit({"commit": offsets, "gen": generation})


class Listener(ConsumerRebalanceListener):
    """Tells what the member gains and loses."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self.consumer = consumer

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        """Of a cooperative assignment only what is new."""
        generation, member = _identity(self.consumer)
        cell.emit({"assigned": sorted(at.partition for at in assigned), "gen": generation, "member": member})

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        """Called before others may own them."""
        cell.emit({"revoked": sorted(at.partition for at in revoked)})


def _identity(consumer: KafkaConsumer) -> tuple[int, str]:
    """The member's generation and id. Line 2 tells them in no public way."""
    if MAJOR >= 3:
        known = consumer.group_metadata()
    else:
        known = consumer._coordinator.generation()
    return (-1, "") if known is None else (known.generation_id, known.member_id)


def _member(arguments: cell.Arguments, **settings: object) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=arguments.bootstrap,
        group_id=arguments.text("group"),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        **settings,
    )


def _emit_records(consumer: KafkaConsumer, expected: int, end: float) -> None:
    seen = 0
    while seen < expected:
        if time.monotonic() > end:
            sys.exit(f"{seen} of {expected} records came in time")
        for record in (record for some in consumer.poll(timeout_ms=500).values() for record in some):
            cell.emit_record(
                record.partition, record.offset, record.timestamp, record.key, record.value, record.headers
            )
            seen += 1


if __name__ == "__main__":
    cell.main({"produce": produce, "read": read, "group": group, "churn": churn})
