"""Rounds of kill -9 on one data folder, with producers at work in processes of their own.

A round counts only if at least 1,000 records were acknowledged in it and a batch was in flight when the signal came. One round in four
also kills the next start before it listens. After each restart everything is read again: no acknowledged record may be missing, doubled or
out of order, and each must be at the offset that its acknowledgement named.
"""

from __future__ import annotations

import pathlib
import random
import signal
import subprocess
import sys
import time

from kafka.record import MemoryRecords

import harness
import wire
from harness import check, passed

ACKNOWLEDGED_MIN = 1000
ROUND_SECONDS_MAX = 60.0
RATE = 4000


class Producer:
    """A producer process and what its log says."""

    def __init__(self, broker: harness.Broker, folder: pathlib.Path, topic: str, idempotent: bool) -> None:
        self.topic = topic
        self.log = folder / f"{topic}.log"
        self.log.touch()
        self.at = 0
        self.rest = b""
        self.sent = 0
        self.acknowledged: dict[int, int] = {}
        self.failed: dict[int, str] = {}
        program = pathlib.Path(__file__).with_name("kill_producer.py")
        command = [sys.executable, str(program), "--address", broker.address, "--topic", topic]
        command += ["--log", str(self.log), "--rate", str(RATE)] + (["--idempotent"] if idempotent else [])
        self.errors = open(folder / f"{topic}.errors", "wb")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=self.errors)

    def update(self) -> None:
        """Reads what was logged since the last time."""
        with open(self.log, "rb") as log:
            log.seek(self.at)
            new = log.read()
        self.at += len(new)
        *lines, self.rest = (self.rest + new).split(b"\n")
        for line in lines:
            kind, number, *more = line.split()
            if kind == b"S":
                self.sent += 1
            elif kind == b"A":
                self.acknowledged[int(number)] = int(more[0])
            else:
                self.failed[int(number)] = more[0].decode()

    @property
    def outstanding(self) -> int:
        return self.sent - len(self.acknowledged) - len(self.failed)

    def stop(self) -> None:
        """Lets it flush and end."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(150)
        check(code == 0, f"the producer of {self.topic} ends by itself", code)
        self.errors.close()


def read_all(port: int, topic: str) -> list[int]:
    """The numbers of all records of partition 0 up to the high watermark of now; the index of each is its offset."""
    connection = wire.Connection(port)
    numbers: list[int] = []
    end = None
    while end is None or len(numbers) < end:
        fetched = connection.fetch(topic, 0, len(numbers), 8 * 1024 * 1024)
        check(fetched.error == 0, f"{topic}: a fetch at {len(numbers)} succeeds", fetched.error)
        end = fetched.high_watermark if end is None else end
        before = len(numbers)
        for batch in wire.batches(fetched.records):
            check(batch.base_offset == len(numbers), f"{topic}: offsets have no gap", (batch.base_offset, len(numbers)))
            check(batch.crc_holds(), f"{topic}: checksums hold", batch.base_offset)
            for record in MemoryRecords(bytes(batch.raw)).next_batch():
                numbers.append(int(record.value.split(b" ", 1)[0]))
        check(len(numbers) > before or before >= end, f"{topic}: all up to the high watermark is read", (before, end))
    connection.close()
    return numbers


def everything_is_there(broker: harness.Broker, producers: list[Producer]) -> int:
    """Reads all and compares it with the delivery reports that were logged before. Returns how many were compared."""
    compared = 0
    for producer in producers:
        producer.update()
        acknowledged = dict(producer.acknowledged)
        numbers = read_all(broker.port, producer.topic)
        topic = producer.topic
        for number, offset in acknowledged.items():
            found = numbers[offset] if 0 <= offset < len(numbers) else None
            check(found == number, f"{topic}: record {number} is at its acknowledged offset {offset}", found)
        check(len(set(numbers)) == len(numbers), f"{topic}: no record is there twice", doubled(numbers))
        in_order = all(first < second for first, second in zip(numbers, numbers[1:]))
        check(in_order, f"{topic}: records are in the order of sending")
        compared += len(acknowledged)
    return compared


def doubled(numbers: list[int]) -> list[int]:
    """Some numbers that occur more than once."""
    seen: set[int] = set()
    return [number for number in numbers if number in seen or seen.add(number)][:10]


def one_round(broker: harness.Broker, producers: list[Producer], chance: random.Random) -> bool:
    """Waits for enough acknowledgements, kills the broker, and says whether the round counts."""
    for producer in producers:
        producer.update()
    before = sum(len(producer.acknowledged) for producer in producers)
    failures = {producer.topic: len(producer.failed) for producer in producers}
    wanted = before + ACKNOWLEDGED_MIN + chance.randrange(2000)
    began = time.monotonic()
    while True:
        for producer in producers:
            producer.update()
            check(producer.process.poll() is None, f"the producer of {producer.topic} goes on")
        enough = sum(len(producer.acknowledged) for producer in producers) >= wanted
        if enough and all(producer.outstanding for producer in producers):
            break
        waited = time.monotonic() - began
        check(waited < ROUND_SECONDS_MAX, "producers make progress after a restart", broker.tail())
        time.sleep(0.001)
    broker.kill()

    # What was in flight on the connection fails at once where nothing is retried.
    plain = producers[-1]
    deadline = time.monotonic() + 5
    while len(plain.failed) == failures[plain.topic] and time.monotonic() < deadline:
        time.sleep(0.01)
        plain.update()
    return len(plain.failed) > failures[plain.topic]


def kill_recovery(broker: harness.Broker, chance: random.Random, start_seconds: float) -> bool:
    """Starts the broker and kills it before it listens; says whether that was in time."""
    broker.spawn()
    time.sleep(chance.uniform(0, start_seconds))
    try:
        wire.Connection(broker.port, timeout=1).close()
        hit = False
    except OSError:
        hit = broker.process.poll() is None
    broker.kill()
    return hit


def run(options, folder: pathlib.Path) -> None:
    """Rounds until enough of them counted."""
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    broker = harness.Broker(options.broker, folder)
    broker.start()
    setup = wire.Connection(broker.port)
    for topic in ("idempotent", "plain"):
        check(setup.create_topic(topic, 1) == 0, "a topic is created", topic)
    setup.close()
    producers = [Producer(broker, folder, "idempotent", True), Producer(broker, folder, "plain", False)]
    counted, tried, hits, start_seconds = 0, 0, 0, 0.02
    try:
        while counted < options.rounds:
            tried += 1
            check(tried <= 3 * options.rounds, "most rounds count", f"{counted} of {tried}")
            counts = one_round(broker, producers, chance)
            if tried % 4 == 1:
                hits += any(kill_recovery(broker, chance, start_seconds) for _ in range(20))
            start_seconds = broker.start()
            compared = everything_is_there(broker, producers)
            counted += counts
            print(f"round {tried}: {compared} acknowledged records are there; {'counts' if counts else 'does not count'}")
        check(hits * 4 >= options.rounds - 3, "one kill in four hit recovery", hits)
        for producer in producers:
            producer.stop()
        total = everything_is_there(broker, producers)
        idempotent = producers[0]
        check(not idempotent.failed, "an idempotent producer outlives every kill without an error", idempotent.failed)
        check(all(not producer.outstanding for producer in producers), "every record was reported on")
        broker.stop()
    finally:
        for producer in producers:
            producer.process.kill()
        if broker.process.poll() is None:
            broker.kill()
    passed(f"{counted} rounds of kill -9, {hits} of them also during recovery: all of {total} acknowledged records are there")


if __name__ == "__main__":
    parser = harness.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int)
    harness.main(run, parser)
