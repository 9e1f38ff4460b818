"""The five programs of the event broker's description do what they say, with every version of the two Python clients.

They create a topic, list topics, produce 2,400 messages, consume them in a group and delete the topic. The programs for kafka-python
are those that were published; those for confluent-kafka do the same.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import pathlib
import selectors
import subprocess
import time

from kafka import KafkaConsumer, TopicPartition

import harness
from harness import check, passed

HERE = pathlib.Path(__file__).resolve().parent / "seed"
CLIENTS = [
    ("kafka_python", "3.0.12"),
    ("kafka_python", "2.0.2"),
    ("confluent", "2.4.0"),
    ("confluent", "2.8.2"),
    ("confluent", "2.16.1"),
]
TOPIC = "my_topic"
IDS = range(100, 2500)
PARTITIONS = 2
PROGRAM_SECONDS_MAX = 60.0
# A consumer that reads something twice would print more lines than there are messages.
SILENCE_SECONDS = 1.0
PUBLISHED_SHA256 = "e4eb1f3ef9ea4cf65fb443af4024557decf70496410ebc3fe787d4618beaaf73"


class Programs:
    """The five programs with one version of one client."""

    def __init__(
        self, broker: harness.Broker | harness.Given, folder: pathlib.Path, clients: pathlib.Path, library: str, version: str
    ) -> None:
        self.broker, self.folder, self.library, self.name = broker, folder, library, f"{library} {version}"
        self.python = clients / f"venv-{library}-{version}/bin/python"

    def run(self, alone: bool) -> None:
        """All five, in order; `alone` says that the broker has no other topics."""
        self.prints("1_create_topic", f"Topic '{TOPIC}' created successfully with 2 partitions and replication factor 1.\n")
        listed = self.output("2_list_topics")
        names = ast.literal_eval(listed.removeprefix("Kafka Topics: "))
        check(names == [TOPIC] if alone else TOPIC in names, f"{self.name}: the topic is listed", listed)
        passed(f"{self.name}: 2_list_topics prints {listed.strip() if alone else 'the topic among others'}")
        self.prints("3_produce", "Message sent to Kafka topic\n")
        partition_of = self.stored()
        self.consume(partition_of)
        self.prints("5_delete_topic", f"Topic '{TOPIC}' deleted successfully.\n")
        check(TOPIC not in self.topics(), f"{self.name}: the topic is gone", self.topics())
        passed(f"{self.name}: the topic is gone")

    def command(self, program: str) -> list[str]:
        """The command line of one program."""
        file = HERE / self.library / f"{program}.py"
        return [str(self.python), "-u", str(HERE / "run_program.py"), str(file), self.broker.address, TOPIC]

    def output(self, program: str) -> str:
        """What a program prints; it must end by itself and without an error."""
        done = subprocess.run(self.command(program), capture_output=True, text=True, timeout=PROGRAM_SECONDS_MAX, check=False)
        told = f"{done.returncode}: {done.stdout[-500:]} {done.stderr[-2000:]}"
        check(done.returncode == 0, f"{self.name}: {program} ends with exit code 0", told)
        return done.stdout

    def prints(self, program: str, expected: str) -> None:
        """Runs a program that must print one line."""
        printed = self.output(program)
        check(printed == expected, f"{self.name}: {program} prints `{expected.strip()}`", printed)
        passed(f"{self.name}: {program} prints `{expected.strip()}`")

    def stored(self) -> dict[int, int]:
        """The partition of each message, read without a group; keys, values and order must be as sent."""
        partition_of: dict[int, int] = {}
        newest = dict.fromkeys(range(PARTITIONS), -1)
        with contextlib.closing(self.reader()) as consumer:
            assigned = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
            consumer.assign(assigned)
            consumer.seek_to_beginning(*assigned)
            ends = consumer.end_offsets(assigned)
            check(sum(ends.values()) == len(IDS), f"{self.name}: each message is stored once", ends)
            check(all(ends.values()), f"{self.name}: both partitions have messages", ends)
            began = time.monotonic()
            while len(partition_of) < len(IDS):
                check(time.monotonic() - began < PROGRAM_SECONDS_MAX, "all messages can be read", len(partition_of))
                for record in (record for some in consumer.poll(timeout_ms=500).values() for record in some):
                    number = json.loads(record.value)["id"]
                    sent = (str(number).encode(), json.dumps({"name": "vast", "id": number}).encode())
                    check((record.key, record.value) == sent, f"{self.name}: a message is stored as it was sent", record)
                    in_order = newest[record.partition] < number
                    check(in_order, f"{self.name}: a partition is in the order of sending", record)
                    newest[record.partition] = number
                    check(number not in partition_of, f"{self.name}: no message is stored twice", record)
                    partition_of[number] = record.partition
        check(sorted(partition_of) == list(IDS), f"{self.name}: every message is stored")
        passed(f"{self.name}: ids {IDS[0]} to {IDS[-1]} are stored once each, with their keys, in order")
        return partition_of

    def consume(self, partition_of: dict[int, int]) -> None:
        """Reads what the fourth program prints until all messages came and nothing more follows."""
        with open(self.folder / "4_consume.errors", "wb") as errors:
            process = subprocess.Popen(self.command("4_consume"), stdout=subprocess.PIPE, stderr=errors)
        try:
            lines = lines_until_silence(process, len(IDS))
        finally:
            process.terminate()
            process.wait()
        numbers = [int(line.removesuffix("}").rpartition(" ")[2]) for line in lines]
        expected = [f'Received message: {{"name": "vast", "id": {number}}}' for number in numbers]
        check(lines == expected, f"{self.name}: 4_consume prints the messages", set(lines) ^ set(expected))
        check(sorted(numbers) == list(IDS), f"{self.name}: 4_consume prints each message once", len(numbers))
        for partition in range(PARTITIONS):
            mine = [number for number in numbers if partition_of[number] == partition]
            check(mine == sorted(mine), f"{self.name}: 4_consume keeps the order of partition {partition}")
        passed(f"{self.name}: 4_consume prints ids {IDS[0]} to {IDS[-1]} once each, each partition in order")

    def topics(self) -> set[str]:
        """The topics that there are."""
        with contextlib.closing(self.reader()) as consumer:
            return consumer.topics()

    def reader(self) -> KafkaConsumer:
        """A consumer without a group."""
        return KafkaConsumer(bootstrap_servers=self.broker.address, group_id=None, enable_auto_commit=False)


def lines_until_silence(process: subprocess.Popen, count: int) -> list[str]:
    """The lines of a process that does not end: `count` of them, and any that follow soon after."""
    output = b""
    end = time.monotonic() + PROGRAM_SECONDS_MAX
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            full = output.count(b"\n") >= count
            left = SILENCE_SECONDS if full else end - time.monotonic()
            check(left > 0, f"{count} messages are printed in time", output.count(b"\n"))
            if not selector.select(left):
                if full:
                    return output.decode().splitlines()
                continue
            got = os.read(process.stdout.fileno(), 65536)
            check(got != b"", "4_consume runs until it is stopped", output[-500:])
            output += got


def run(options, folder: pathlib.Path) -> None:
    """A broker of its own for each version of each client."""
    published = b"".join(file.read_bytes() for file in sorted((HERE / "kafka_python").iterdir()))
    check(hashlib.sha256(published).hexdigest() == PUBLISHED_SHA256, "the published programs are unchanged")
    for library, version in CLIENTS:
        mine = folder / f"{library}-{version}"
        mine.mkdir()
        with harness.running_or_given(options, mine) as broker:
            Programs(broker, mine, options.clients, library, version).run(alone=options.port is None)


if __name__ == "__main__":
    parser = harness.arguments(__doc__, given=True)
    parser.add_argument("--clients", type=pathlib.Path, required=True, help="where clients were installed")
    harness.main(run, parser)
