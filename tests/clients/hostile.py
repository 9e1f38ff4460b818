"""Thousands of idle, slow, stalled and lying connections, beside clients that must not notice.

| connections | do |
| --- | --- |
| 15,000 | connect and say nothing |
| 200 | declare a frame of 90 MiB and send a byte a second |
| 50 | pipeline fetches of 10 MiB and never read |
| 10 | send the length 2^31-1 |

Meanwhile kafka-python produces and consumes in a process of its own. The broker's memory stays bounded, and when all have left it holds as many
sockets as before.
"""

from __future__ import annotations

import contextlib
import pathlib
import random
import resource
import socket
import struct
import subprocess
import sys
import time

import harness
import wire
from harness import check, passed

IDLE, SLOW, STALLED, LYING = 15_000, 200, 50, 10
FILES_MAX = 20_000
RESIDENT_BYTES_MAX = 300 * 1000 * 1000
DECLARED_BYTES = 90 * 1024 * 1024
FETCH_BYTES = 10 * 1024 * 1024
PIPELINED = 20
LEFT_SECONDS_MAX = 60


def connect(port: int) -> socket.socket:
    """A connection whose writes never block."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setblocking(False)
    return connection


def fill(port: int) -> None:
    """A topic with enough in it for each of the large fetches."""
    connection = wire.Connection(port)
    check(connection.create_topic("great", 1) == 0, "a topic is created")
    chance = random.Random(1)
    records = wire.batch([chance.randbytes(1000) for _ in range(900)])
    for _ in range(2 * FETCH_BYTES // len(records) + 1):
        error, _ = connection.produce("great", 0, records)
        check(error == 0, "a produce succeeds", error)
    connection.close()


def send(connection: socket.socket, data: bytes) -> None:
    """Sends what the socket takes now. That the broker may have closed it is the broker's right."""
    with contextlib.suppress(OSError):
        connection.send(data)


class Resident:
    """The most memory that the broker was seen to hold."""

    def __init__(self, broker: harness.Broker) -> None:
        self.broker, self.most = broker, 0

    def wait(self, seconds: float) -> None:
        """Samples at least once, and for that long."""
        deadline = time.monotonic() + seconds
        self.most = max(self.most, self.broker.resident_bytes())
        while time.monotonic() < deadline:
            time.sleep(0.05)
            self.most = max(self.most, self.broker.resident_bytes())


def arrive(port: int, resident: Resident) -> dict[str, list[socket.socket]]:
    """Opens all connections; each does what makes it hostile."""
    groups: dict[str, list[socket.socket]] = {"idle": [], "slow": [], "stalled": [], "lying": []}
    for number in range(IDLE):
        groups["idle"].append(connect(port))
        if number % 1000 == 0:
            resident.wait(0)
    # The head of a Produce request that the broker serves, so that nothing but its length is wrong.
    head = struct.pack(">i", DECLARED_BYTES) + wire.frame(wire.PRODUCE, 7, 1, b"")[4:]
    for _ in range(SLOW):
        groups["slow"].append(connect(port))
        send(groups["slow"][-1], head)
    for _ in range(STALLED):
        groups["stalled"].append(connect(port))
        for correlation in range(PIPELINED):
            send(groups["stalled"][-1], wire.fetch("great", 0, 0, correlation, FETCH_BYTES))
    for _ in range(LYING):
        groups["lying"].append(connect(port))
        send(groups["lying"][-1], struct.pack(">i", 2**31 - 1) + b"\x00\x00\x00\x07")
    return groups


def closed(connection: socket.socket) -> bool:
    """Whether the broker has closed it."""
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def run(options, folder: pathlib.Path) -> None:
    """Fill, connect, wait under load, leave, count."""
    harness.files_allowed(FILES_MAX)
    broker = harness.Broker(options.broker, folder)
    broker.start()
    witness = None
    try:
        limit = resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE)[0]
        check(limit >= FILES_MAX, "the broker raised its limit of open files", limit)
        fill(broker.port)
        time.sleep(1)
        at_start = broker.sockets()
        program = pathlib.Path(__file__).with_name("witness.py")
        witness = subprocess.Popen(
            [sys.executable, str(program), "--address", broker.address],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        check(witness.stdout.readline() == "ready\n", "kafka-python makes a round trip before the load")

        resident = Resident(broker)
        groups = arrive(broker.port, resident)
        check(broker.sockets() >= IDLE, "the broker holds the idle connections", broker.sockets())
        for second in range(options.seconds):
            for connection in groups["slow"]:
                send(connection, b"\x00")
            resident.wait(1)
        check(all(closed(connection) for connection in groups["lying"]), "a frame of 2^31-1 bytes closes its connection")
        idle_closed = sum(closed(connection) for connection in groups["idle"])
        check(idle_closed == 0, "idle connections stay open", idle_closed)

        report, _ = witness.communicate("", timeout=120)
        check(witness.returncode == 0, "kafka-python's round trips go on without an error", report)
        print(f"{report.strip()}; {resident.most / 1e6:.0f} MB resident at most")
        check(resident.most < RESIDENT_BYTES_MAX, "resident memory stays bounded", resident.most)
        check(broker.resident_bytes_max() < RESIDENT_BYTES_MAX, "and never exceeded that", broker.resident_bytes_max())
        passed(f"{IDLE} idle, {SLOW} slow, {STALLED} stalled and {LYING} lying connections do not disturb others")

        for connections in groups.values():
            for connection in connections:
                connection.close()
        deadline = time.monotonic() + LEFT_SECONDS_MAX
        while broker.sockets() > at_start and time.monotonic() < deadline:
            time.sleep(0.1)
        check(broker.sockets() <= at_start, "all sockets are closed when all have left", (broker.sockets(), at_start))
        broker.stop()
        passed("the broker holds as many sockets as before when they have left, and stops in order")
    finally:
        if witness is not None:
            witness.kill()
        if broker.process.poll() is None:
            broker.kill()


if __name__ == "__main__":
    parser = harness.arguments(__doc__)
    parser.add_argument("--seconds", type=int, default=15)
    harness.main(run, parser)
