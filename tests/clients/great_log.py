"""A log far larger than the memory budget is fetched completely, with bounded memory.

The batches are incompressible, one megabyte each and all different; every fetched one is compared with what was sent by its checksum.
"""

from __future__ import annotations

import pathlib
import random
import struct
import threading
import time

import harness
import wire
from harness import check, passed

TAIL_BYTES = 32 * 1024 * 1024
RESIDENT_BYTES_MAX = 300 * 1024 * 1024
RECORD_BYTES = 1000
RECORDS = 1000
PARTITIONS = 4
IN_FLIGHT = 4
SETTINGS = f"""
[storage]
tail_len_max = {TAIL_BYTES}
"""


class Watcher(threading.Thread):
    """Samples the broker's resident memory until it is told to stop."""

    def __init__(self, broker: harness.Broker) -> None:
        super().__init__(daemon=True)
        self.broker, self.most, self.over = broker, 0, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            self.most = max(self.most, self.broker.resident_bytes())

    def stop(self) -> int:
        """The most that was seen, which the kernel's own high mark may exceed."""
        self.over.set()
        self.join()
        return max(self.most, self.broker.resident_bytes_max())


def make_batches(count: int) -> list[bytes]:
    """Different batches of about a megabyte."""
    chance = random.Random(1)
    return [wire.batch([chance.randbytes(RECORD_BYTES) for _ in range(RECORDS)]) for _ in range(count)]


def produce_all(port: int, batches: list[bytes], count: int) -> None:
    """Sends `count` batches, in turn to each partition, a few at a time."""
    connection = wire.Connection(port)

    def receive(index: int) -> None:
        error, base = wire.produced(connection.receive()[4:])
        wanted = (0, index // PARTITIONS * RECORDS)
        check((error, base) == wanted, "a produce succeeds", f"{(error, base)} != {wanted}")

    for index in range(count):
        if index >= IN_FLIGHT:
            receive(index - IN_FLIGHT)
        records = batches[index % len(batches)]
        connection.socket.sendall(wire.produce("great", index % PARTITIONS, records, index))
    for index in range(max(count - IN_FLIGHT, 0), count):
        receive(index)
    connection.close()


def fetch_all(port: int, batches: list[bytes], count: int) -> int:
    """Fetches every partition from its start; returns the bytes of records that came."""
    connection = wire.Connection(port)
    sums = [struct.unpack_from(">I", batch, 17)[0] for batch in batches]
    total = 0
    for partition in range(PARTITIONS):
        offset, index = 0, partition
        while index < count:
            fetched = connection.fetch("great", partition, offset, 8 * 1024 * 1024)
            check(fetched.error == 0, "a fetch succeeds", fetched.error)
            got = list(wire.batches(fetched.records))
            check(got, "a fetch below the end returns a batch", offset)
            for batch in got:
                check(batch.base_offset == offset and batch.crc_holds(), "batches are whole and in order", offset)
                (checksum,) = struct.unpack_from(">I", batch.raw, 17)
                check(checksum == sums[index % len(batches)], "a batch is the one that was sent", (partition, offset))
                offset, index, total = batch.next_offset, index + PARTITIONS, total + len(batch.raw)
    connection.close()
    return total


def run(options, folder: pathlib.Path) -> None:
    """Produce, fetch; then the same fetch after a restart."""
    batches = make_batches(37)
    count = options.megabytes * 1024 * 1024 // len(batches[0])
    broker = harness.Broker(options.broker, folder, SETTINGS)
    broker.start()
    try:
        setup = wire.Connection(broker.port)
        check(setup.create_topic("great", PARTITIONS) == 0, "a topic is created")
        setup.close()
        watcher = Watcher(broker)
        watcher.start()
        began = time.monotonic()
        produce_all(broker.port, batches, count)
        produced = time.monotonic()
        total = fetch_all(broker.port, batches, count)
        fetched = time.monotonic()
        most = watcher.stop()
        rates = total / 1e6 / (produced - began), total / 1e6 / (fetched - produced)
        print(f"{total} bytes, produced at {rates[0]:.0f} and fetched at {rates[1]:.0f} MB/s, {most >> 20} MiB resident")
        check(most < RESIDENT_BYTES_MAX, "resident memory stays bounded", most)
        passed(f"{total >> 20} MiB under a budget of {TAIL_BYTES >> 20} MiB are fetched completely")
        broker.stop()
        broker.start()
        check(fetch_all(broker.port, batches, count) == total, "the same is fetched after a restart")
        most = broker.resident_bytes_max()
        check(most < RESIDENT_BYTES_MAX, "resident memory stays bounded after a restart", most)
        passed(f"the same bytes are fetched after a restart, with {most >> 20} MiB resident")
    finally:
        if broker.process.poll() is None:
            broker.kill()


if __name__ == "__main__":
    parser = harness.arguments(__doc__)
    parser.add_argument("--megabytes", type=int, default=512)
    harness.main(run, parser)
