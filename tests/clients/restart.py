"""The broker is killed in the middle of a group's work, again and again, and comes back on the same folder.

Members of several clients, one of them static, read and commit while that happens. What was committed before stays, with its metadata
and leader epoch; members are known again, with their generation; and every record is delivered.
"""

from __future__ import annotations

import pathlib
import struct
import threading
import time

from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

import harness
import rebalance_history
import wire
from fleet import Client, fleet
from harness import check, passed
from rebalance import Member, tail

PARTITIONS = 8
KILLS = 3
UP_SECONDS = 6.0
SETTLE_SECONDS_MAX = 90.0
DRAIN_SECONDS_MAX = 120.0
TOPIC = GROUP = "restart"
KEPT_GROUP = "kept"
METADATA = "metadata with spaces, ümlauts and a \t tab"


class Producer:
    """Writes through restarts: a record counts once it was acknowledged; one in flight at a kill may be there or not."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.produced: dict[tuple[int, int], str] = {}
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        number, connection = 0, None
        while not self.stopped.wait(0.01):
            try:
                connection = connection or wire.Connection(self.port, timeout=5)
                value, partition = f"value-{number}", number % PARTITIONS
                number += 1
                error, offset = connection.produce(TOPIC, partition, wire.batch([value.encode()]))
                if error == 0:
                    self.produced[partition, offset] = value
            except OSError:
                connection = None
                time.sleep(0.1)

    def stop(self) -> dict[tuple[int, int], str]:
        self.stopped.set()
        self.thread.join()
        return self.produced


def commit_what_is_kept(broker: harness.Broker) -> dict[int, wire.Committed]:
    """Offsets with metadata and leader epoch, by a client that is in no group."""
    consumer = KafkaConsumer(
        bootstrap_servers=broker.address, group_id=KEPT_GROUP, enable_auto_commit=False, consumer_timeout_ms=1000
    )
    partitions = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.commit({at: OffsetAndMetadata(at.partition * 7, METADATA, at.partition % 2) for at in partitions})
    consumer.close()
    connection = wire.Connection(broker.port)
    found = connection.committed(KEPT_GROUP, TOPIC, PARTITIONS)
    connection.close()
    for partition, committed in found.items():
        expected = wire.Committed(partition * 7, partition % 2, METADATA, 0)
        check(committed == expected, "a commit comes back as it was sent", (partition, committed, expected))
    return found


def wait_for(what: str, seconds: float, holds, detail) -> None:
    """Waits until `holds()`; a time-out names what was waited for."""
    deadline = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < deadline, what, detail())
        time.sleep(0.1)


def members_of(broker: harness.Broker, clients: list[Client], folder: pathlib.Path, history) -> list[Member]:
    """One member of each client that can; the first that knows static members is one."""
    members = []
    static = next(client for client in clients if client.is_static)
    for client in clients:
        command = client.command(broker.address, "churn", topic=TOPIC, group=GROUP, id=client.name)
        command += ["strategy=range", "seconds=3600"] + (["instance=fixed"] if client is static else [])
        members.append(Member(client, command, client.name, folder, history))
    return members


def described(port: int) -> dict[str, tuple[str, str | None]]:
    """DescribeGroups, version 4: the member ids of the group with their client ids and instance ids."""
    connection = wire.Connection(port)
    body = struct.pack(">i", 1) + wire.text(GROUP) + b"\x00"
    answer = connection.call(wire.frame(15, 4, connection.next_correlation(), body))
    connection.close()
    at = 8

    def take(form: str):
        nonlocal at
        (value,) = struct.unpack_from(">" + form, answer, at)
        at += struct.calcsize(">" + form)
        return value

    def take_bytes(form: str) -> bytes | None:
        nonlocal at
        length = take(form)
        if length < 0:
            return None
        value = bytes(answer[at : at + length])
        at += length
        return value

    check(take("h") == 0, "a group is described")
    _, state, _, _ = (take_bytes("h") for _ in range(4))
    members = {}
    for _ in range(take("i")):
        member, instance, client, _ = (take_bytes("h") for _ in range(4))
        take_bytes("i"), take_bytes("i")
        members[member.decode()] = (client.decode(), None if instance is None else instance.decode())
    return members if state == b"Stable" else {}


def run(options, folder: pathlib.Path) -> None:
    clients = [client for client in fleet(options.clients) if "range" in client.strategies]
    history = rebalance_history.History()
    broker = harness.Broker(options.broker, folder, "[groups]\ninitial_rebalance_delay_ms = 0\n")
    broker.start()
    members: list[Member] = []
    try:
        connection = wire.Connection(broker.port)
        check(connection.create_topic(TOPIC, PARTITIONS) == 0, "a topic is created")
        connection.close()
        kept = commit_what_is_kept(broker)
        producer = Producer(broker.port)
        members = members_of(broker, clients, folder, history)
        wait_for("all members join", SETTLE_SECONDS_MAX, lambda: len(described(broker.port)) == len(members),
                 lambda: [tail(member.log)[-300:] for member in members])
        for number in range(1, KILLS + 1):
            kill_and_compare(broker, members, kept, number)
        produced = producer.stop()
        drain(broker, history, members, produced)
    finally:
        for member in members:
            member.end()
        if broker.process.poll() is None:
            broker.stop()
        broker.log.close()
    passed(f"{len(produced)} records were delivered to {len(members)} members through {KILLS} kills of the broker")


def kill_and_compare(broker: harness.Broker, members: list[Member], kept: dict[int, wire.Committed], number: int):
    """One kill: the members, the static one among them, and all that was committed are there afterwards."""
    time.sleep(UP_SECONDS)
    wait_for("the group is stable", SETTLE_SECONDS_MAX, lambda: len(described(broker.port)) == len(members),
             lambda: described(broker.port))
    before = described(broker.port)
    generations = {member.name: member.generation for member in members}
    connection = wire.Connection(broker.port)
    committed = connection.committed(GROUP, TOPIC, PARTITIONS)
    broker.kill()
    broker.start()
    connection = wire.Connection(broker.port)
    after = connection.committed(GROUP, TOPIC, PARTITIONS)
    check(connection.committed(KEPT_GROUP, TOPIC, PARTITIONS) == kept, "offsets, metadata and epochs are kept")
    connection.close()
    for partition, known in committed.items():
        check(after[partition].offset >= known.offset, "no acknowledged commit is lost", (partition, known, after[partition]))
    wait_for("members are known again", SETTLE_SECONDS_MAX, lambda: described(broker.port) == before,
             lambda: (before, described(broker.port)))
    for member in members:
        code = member.process.poll()
        check(code is None, f"{member.name} goes on", f"{code}: {tail(member.log)}")
    check({member.name: member.generation for member in members} == generations, "generations stay", generations)
    static = [name for name, (_, instance) in before.items() if instance == "fixed"]
    passed(f"kill {number}: {len(before)} members with their ids, static {static}, and all commits are there again")


def drain(broker: harness.Broker, history, members: list[Member], produced: dict[tuple[int, int], str]) -> None:
    """Everything that was acknowledged is delivered and committed."""
    ends = {partition: 0 for partition in range(PARTITIONS)}
    for partition, offset in produced:
        ends[partition] = max(ends[partition], offset + 1)
    connection = wire.Connection(broker.port)

    def committed() -> dict[int, int]:
        return {at: one.offset for at, one in connection.committed(GROUP, TOPIC, PARTITIONS).items()}

    wait_for("the group catches up", DRAIN_SECONDS_MAX, lambda: all(committed()[at] >= end for at, end in ends.items()),
             lambda: (committed(), ends, [(member.name, member.delivered) for member in members]))
    connection.close()
    check(not history.faults(), "one owner in a generation, commits only grow", history.faults()[:10])
    missing = history.missing(produced)
    check(not missing, "every record was delivered", missing[:10])


if __name__ == "__main__":
    parser = harness.arguments(__doc__.splitlines()[0])
    parser.add_argument("--clients", type=pathlib.Path, required=True, help="where clients were installed")
    harness.main(run, parser)
