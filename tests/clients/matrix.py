"""Every client reads what every client wrote, with every codec, without a group and with one.

A writer's records go into one topic, codec after codec, so that one run of a reader settles a cell for each codec; a codec that some
client cannot read has a topic of its own. `matrix_cells.json` lists the clients and all that they are known to be unable to do: what is
not listed there must work, and what is listed must be told by the program, so that nothing is left out in silence.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import pathlib
import struct
import subprocess
import time

import harness
import records
import wire
from cell import shown
from fleet import Client, fleet
from harness import check, passed
from records import PARTITIONS

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
WAYS = ["read", "group"]
RECORDS = 60
AT_ONCE = 2
# Some clients send a batch uncompressed that compression would not make smaller, such as that of a single small record.
SMALL_BATCH_BYTES_MAX = 256
PROGRAM_SECONDS_MAX = 180.0
GROUP_SECONDS_MAX = 120
SETTINGS = """
[groups]
initial_rebalance_delay_ms = 0
"""


@dataclasses.dataclass(frozen=True)
class Section:
    """What one writer put into a topic with one codec."""

    codec: str
    sent: list[records.Record]
    began_ms: int
    ended_ms: int


@dataclasses.dataclass
class Topic:
    """A topic that one writer fills with some of the codecs."""

    name: str
    writer: str
    codecs: list[str]
    sections: list[Section] = dataclasses.field(default_factory=list)

    @property
    def count(self) -> int:
        """How many records it has."""
        return sum(len(section.sent) for section in self.sections)

    def ends(self) -> dict[int, int]:
        """The offset after the last record of each partition."""
        ends = dict.fromkeys(range(PARTITIONS), 0)
        for section in self.sections:
            for record in section.sent:
                ends[record.partition] += 1
        return ends


class Known:
    """What `matrix_cells.json` says about the clients."""

    def __init__(self, file: pathlib.Path) -> None:
        self.clients: dict[str, dict] = json.loads(file.read_text())

    def cannot(self, client: str, scenario: str, codec: str | None = None) -> str | None:
        """Why the client cannot do this at all, if so."""
        found = self.clients[client].get(scenario, {}).get("cannot", {})
        return found.get("*") or found.get(codec)

    def cannot_read(self, client: str, codec: str) -> bool:
        """Whether this codec, and not reading as such, is beyond the client."""
        return any(codec in self.clients[client].get(way, {}).get("cannot", {}) for way in WAYS)

    def shapes(self, client: str, scenario: str) -> list[str]:
        """The shapes of records, or of the report about them, that the client leaves out."""
        return self.clients[client].get(scenario, {}).get("shapes", [])


class Matrix:
    """The run: topics are filled, then read, and every cell gets an outcome."""

    def __init__(self, address: str, port: int, clients: list[Client], known: Known) -> None:
        self.address, self.port, self.clients, self.known = address, port, clients, known
        self.mark = f"{time.time_ns() // 1_000_000 % 10**9}"
        self.cells: dict[tuple[str, str, str, str], str] = {}
        self.faults: list[str] = []

    def run(self) -> None:
        """Two programs at a time; the readers start when all topics are filled."""
        topics = [topic for number, client in enumerate(self.clients) for topic in self.topics_of(number, client)]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda topic: self.attempt(self.fill, topic), topics))
            reads = [(topic, reader, way) for topic in topics for reader in self.clients for way in WAYS]
            list(pool.map(lambda read: self.attempt(self.read, *read), reads))

    def topics_of(self, number: int, client: Client) -> list[Topic]:
        """The topics that a client writes: one for what everybody reads, and one for each other codec."""
        alone = [
            codec
            for codec in CODECS
            if any(self.known.cannot_read(reader.name, codec) for reader in self.clients)
        ]
        together = [codec for codec in CODECS if codec not in alone]
        name = f"matrix-{self.mark}-{number}"
        return [
            Topic(f"{name}-{'-'.join(codecs)}", client.name, codecs)
            for codecs in [together, *([codec] for codec in alone)]
        ]

    def attempt(self, step, topic: Topic, *rest) -> None:
        """Runs a step; a fault is kept, and the cells that the step would have settled stay without an outcome."""
        try:
            step(topic, *rest)
        except (harness.Failed, OSError, ValueError, KeyError, struct.error) as fault:
            told = ", ".join(str(getattr(word, "name", word)) for word in rest)
            self.faults.append(f"{topic.name} of {topic.writer} ({told or 'produce'}): {type(fault).__name__} {fault}")
            print(f"fault: {self.faults[-1][:2000]}", flush=True)

    def fill(self, topic: Topic) -> None:
        """One codec after the other; then the stored batches are looked at, without any client."""
        connection = wire.Connection(self.port)
        error = connection.create_topic(topic.name, PARTITIONS, {"retention.ms": "-1"})
        check(error == 0, "a topic is created", error)
        connection.close()
        writer = next(client for client in self.clients if client.name == topic.writer)
        for codec in topic.codecs:
            seed = int(topic.name.split("-")[2]) * len(CODECS) + CODECS.index(codec)
            began = time.time_ns() // 1_000_000
            lines = self.program(
                writer, "produce", codec, topic=topic.name, partitions=PARTITIONS, codec=codec, count=RECORDS,
                seed=seed, big=1,
            )  # fmt: skip
            ended = time.time_ns() // 1_000_000 + 1
            if lines is None:
                for reader in self.clients:
                    self.cells.update({(topic.writer, codec, reader.name, way): "not written" for way in WAYS})
                continue
            sent = records.seeded(seed, RECORDS, PARTITIONS, big=True)
            check(lines == [{"produced": len(sent)}], "the writer counts what it sent", lines)
            shapes = self.known.shapes(topic.writer, "produce")
            topic.sections.append(Section(codec, records.as_written(sent, shapes), began, ended))
        self.look_at_batches(topic)
        passed(f"{topic.writer} writes {', '.join(section.codec for section in topic.sections)}")

    def look_at_batches(self, topic: Topic) -> None:
        """The attributes of every stored batch name the codec that the writer was told."""
        connection = wire.Connection(self.port)
        for partition, end in topic.ends().items():
            codecs = [
                section.codec for section in topic.sections for record in section.sent if record.partition == partition
            ]
            offset, seen = 0, set()
            while offset < end:
                fetched = connection.fetch(topic.name, partition, offset, 8 * 1024 * 1024)
                check(fetched.error == 0, "a raw fetch succeeds", fetched.error)
                got = list(wire.batches(fetched.records))
                check(got, "a raw fetch below the end returns a whole batch", (partition, offset))
                for batch in got:
                    (codec,) = set(codecs[batch.base_offset : batch.next_offset])
                    as_told = batch.codec == codec or (batch.codec == "none" and len(batch.raw) <= SMALL_BATCH_BYTES_MAX)
                    check(batch.crc_holds(), "a stored batch's checksum holds", offset)
                    check(as_told, "a batch names its codec", (partition, offset, batch.codec, codec))
                    seen.add(batch.codec)
                    offset = batch.next_offset
            check(seen >= set(codecs), f"batches of partition {partition} name every codec", (seen, set(codecs)))
            check(offset == end, "there are as many records as were sent", (partition, offset, end))
        connection.close()

    def read(self, topic: Topic, reader: Client, way: str) -> None:
        """One reader reads one topic in one way, which settles a cell for each codec."""
        codecs = [section.codec for section in topic.sections]
        if not codecs:
            return
        words: dict[str, object] = {"topic": topic.name, "expect": topic.count, "partitions": PARTITIONS}
        group = f"{topic.name}-{reader.name}"
        if way == "group":
            words |= {"group": group, "timeout": GROUP_SECONDS_MAX}
        lines = self.program(reader, way, codecs[0], **words)
        if lines is None:
            self.cells.update({(topic.writer, codec, reader.name, way): "cannot" for codec in codecs})
            return
        shapes = self.known.shapes(reader.name, way)
        if way == "group" and "committed" not in shapes:
            check(bool(lines) and "committed" in lines[-1], "what was committed is told last", lines[-1:])
            told = {int(partition): offset for partition, offset in lines.pop()["committed"].items()}
            check(told == topic.ends(), "the reader has committed the ends", (told, topic.ends()))
        compare(topic, lines, shapes)
        if way == "group":
            connection = wire.Connection(self.port)
            found = connection.committed(group, topic.name, PARTITIONS)
            connection.close()
            stored = {partition: committed.offset for partition, committed in found.items()}
            check(stored == topic.ends(), "the broker has the commits", (stored, topic.ends()))
        self.cells.update({(topic.writer, codec, reader.name, way): "ok" for codec in codecs})
        passed(f"{reader.name} reads {', '.join(codecs)} of {topic.writer}" + (" in a group" if way == "group" else ""))

    def program(self, client: Client, scenario: str, codec: str, /, **words: object) -> list[dict] | None:
        """Runs a client's program; its lines, or None if it cannot do this, as the table must say too."""
        command = client.command(self.address, scenario, **words)
        try:
            done = subprocess.run(command, capture_output=True, timeout=PROGRAM_SECONDS_MAX, check=False)
        except subprocess.TimeoutExpired as late:
            tail = (late.stderr or b"").decode(errors="replace")[-1500:]
            raise harness.Failed(f"the program ends within {PROGRAM_SECONDS_MAX} s: {command} {tail}") from None
        tail = done.stderr.decode(errors="replace")[-1500:]
        check(done.returncode == 0, "the program ends with exit code 0", f"{done.returncode}: {command} {tail}")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        known = self.known.cannot(client.name, scenario, codec)
        if any("cannot" in line for line in lines):
            check(known is not None, f"{client.name} can {scenario}", lines)
            return None
        check(known is None, f"{client.name} cannot {scenario} {codec}, as the table says", known)
        skipped = sorted({line["shape_skipped"] for line in lines if "shape_skipped" in line})
        expected = sorted(self.known.shapes(client.name, scenario))
        check(skipped == expected, f"{client.name} leaves out in {scenario} what the table says", (skipped, expected))
        return [line for line in lines if "shape_skipped" not in line]

    def report(self) -> None:
        """Prints the table, and ends the program unless every cell has a good outcome."""
        names = [client.name for client in self.clients]
        wanted = [(writer, codec, reader, way) for writer in names for codec in CODECS for reader in names for way in WAYS]
        marks = {"ok": "+", "cannot": "-", "not written": "."}
        print("\nwriter, codec; then each reader without a group and with one: + same, - cannot, . cannot be written, ! fault")
        for number, name in enumerate(names):
            print(f"  {number:2} {name}")
        print(f"{'':32}" + " ".join(f"{number:2}" for number in range(len(names))))
        for writer in names:
            for codec in CODECS:
                outcomes = [[self.cells.get((writer, codec, reader, way), "") for way in WAYS] for reader in names]
                row = ("".join(marks.get(outcome, "!") for outcome in some) for some in outcomes)
                print(f"{writer:24} {codec:6}  {' '.join(row)}")
        missing = [cell for cell in wanted if cell not in self.cells]
        same = sum(self.cells.get(cell) == "ok" for cell in wanted)
        print(f"{len(wanted)} cells: {same} same, {len(wanted) - same - len(missing)} impossible, {len(missing)} at fault")
        check(not missing and not self.faults, "every cell has run and agrees", (len(missing), len(self.faults)))


def compare(topic: Topic, lines: list[dict], shapes: list[str]) -> None:
    """Each partition has the records that were sent, in their order, with dense offsets."""
    check(len(lines) == topic.count, "as many records come as were sent", (len(lines), topic.count))
    read: dict[int, list[dict]] = {}
    for line in lines:
        read.setdefault(line["p"], []).append(line)
    for partition in range(PARTITIONS):
        sent = [
            (section, record)
            for section in topic.sections
            for record in records.as_read(section.sent, shapes)
            if record.partition == partition
        ]
        got = read.get(partition, [])
        check(len(got) == len(sent), f"partition {partition} has as many records as were sent", (len(got), len(sent)))
        for offset, (line, (section, record)) in enumerate(zip(got, sent)):
            timestamp = record.timestamp
            if timestamp is None:
                timestamp = line["t"]
                inside = section.began_ms <= timestamp <= section.ended_ms
                check(inside, "a timestamp is that of the sending", (section.began_ms, timestamp, section.ended_ms))
            wanted = shown(partition, offset, timestamp, record.key, record.value, record.headers)
            check(line == wanted, f"{section.codec}: a record comes as it was sent", f"{line} != {wanted}")


def run(options, folder: pathlib.Path) -> None:
    """All clients, unless some are named."""
    known = Known(pathlib.Path(__file__).with_name("matrix_cells.json"))
    clients = fleet(options.clients)
    names = [client.name for client in clients]
    check(sorted(names) == sorted(known.clients), "the table and the fleet name the same clients", (names, list(known.clients)))
    clients = [client for client in clients if not options.only or client.name in options.only]
    check(clients, "a client is chosen", options.only)
    with harness.running_or_given(options, folder, SETTINGS) as broker:
        matrix = Matrix(broker.address, broker.port, clients, known)
        matrix.run()
        matrix.report()


if __name__ == "__main__":
    parser = harness.arguments(__doc__, given=True)
    parser.add_argument("--clients", type=pathlib.Path, required=True, help="where clients were installed")
    parser.add_argument("--only", action="append", default=[], help="a client's name; others neither write nor read")
    harness.main(run, parser)
