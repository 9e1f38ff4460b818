"""In a trace of the broker's system calls, no acknowledgement leaves before the sync that covers its bytes returned.

Every batch carries a marker, and every request a correlation id of its own. For each of them the trace must show, in this order: the marker
in a write to a file, the start and the return of a sync of that file, and the correlation id in a write to a socket.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import struct
import subprocess
import threading

import harness
import wire
from harness import check, passed

CONNECTIONS = 4
REQUESTS = 100
PIPELINED = 5
FIRST_CORRELATION = 0x5E_00_00_00
CALLS = "write,writev,sendto,sendmsg,pwrite64,pwritev,pwritev2,fdatasync,fsync,sync_file_range"
SYNCS = ("fdatasync", "fsync")

#: `PID SECONDS CALL(FD<…>, …`, `PID SECONDS CALL(… <unfinished ...>` or `PID SECONDS <... CALL resumed>…`
LINE = re.compile(r"^(\d+) +(\d+\.\d+) (?:<\.\.\. (\w+) resumed>|(\w+)\((\d+))")


@dataclasses.dataclass
class Call:
    """A system call: where in the trace it began and returned."""

    name: str
    descriptor: int
    began: int
    returned: int
    text: str


def read_trace(file: pathlib.Path) -> list[Call]:
    """The calls of a trace, in the order in which they began. The line numbers are the clock."""
    calls: list[Call] = []
    unfinished: dict[str, Call] = {}
    with open(file, encoding="ascii", errors="replace") as lines:
        for number, line in enumerate(lines):
            found = LINE.match(line)
            if found is None:
                continue
            thread, _, resumed, name, descriptor = found.groups()
            if resumed:
                call = unfinished.pop(thread, None)
                if call is not None:
                    call.returned = number
                    check(not failed(line), "no traced call failed", line[-200:])
                continue
            call = Call(name, int(descriptor), number, number, line)
            if line.rstrip().endswith("<unfinished ...>"):
                call.returned = 1 << 60
                unfinished[thread] = call
            else:
                check(name not in SYNCS or not failed(line), "no traced sync failed", line[-200:])
            calls.append(call)
    return calls


def failed(line: str) -> bool:
    """Whether a sync's line shows an error; a full socket's EAGAIN is none."""
    return re.search(r" = -1 (?!EAGAIN)", line) is not None


def marker(number: int) -> bytes:
    """Bytes that occur nowhere else."""
    return b"<marker %06d>" % number


def hexadecimal(raw: bytes) -> str:
    """As `strace -xx` prints bytes."""
    return "".join(f"\\x{byte:02x}" for byte in raw)


def produce_marked(port: int, topic: str, first: int, failures: list[str]) -> None:
    """Sends its share of the requests, some at a time, and reads as many responses."""
    try:
        connection = wire.Connection(port)
        for start in range(first, first + REQUESTS, PIPELINED):
            numbers = range(start, start + PIPELINED)
            connection.socket.sendall(b"".join(
                wire.produce(topic, first // REQUESTS, wire.batch([marker(n)]), FIRST_CORRELATION + n) for n in numbers
            ))  # fmt: skip
            for number in numbers:
                answer = connection.receive()
                (correlation,) = struct.unpack_from(">i", answer, 0)
                error, _ = wire.produced(answer[4:])
                check((correlation, error) == (FIRST_CORRELATION + number, 0), "a produce succeeds", (correlation, error))
        connection.close()
    except (harness.Failed, OSError) as failure:
        failures.append(str(failure))


def judge(calls: list[Call]) -> int:
    """Checks the order for each request; returns how many different syncs the requests shared."""
    writes: dict[int, Call] = {}
    answers: dict[int, Call] = {}
    syncs = [call for call in calls if call.name in SYNCS]
    marked = re.compile(re.escape(hexadecimal(b"<marker ")) + r"((?:\\x3\d){6})" + re.escape(hexadecimal(b">")))
    answered = re.compile(re.escape(hexadecimal(struct.pack(">i", FIRST_CORRELATION)[:2])) + r"\\x(..)\\x(..)")
    for call in calls:
        if call.name.startswith("pwrite") or (call.name.startswith("write") and marked.search(call.text)):
            for found in marked.finditer(call.text):
                writes.setdefault(int(found.group(1).replace("\\x3", "")), call)
        elif call.name in ("sendto", "sendmsg", "write", "writev"):
            for found in answered.finditer(call.text):
                answers.setdefault(int(found.group(1) + found.group(2), 16), call)
    covering = set()
    for number in range(CONNECTIONS * REQUESTS):
        check(number in writes, "a batch is written to a file", number)
        check(number in answers, "a request is answered", number)
        write, answer = writes[number], answers[number]
        cover = next(
            (
                sync
                for sync in syncs
                if sync.descriptor == write.descriptor and sync.began > write.returned and sync.returned < answer.began
            ),
            None,
        )
        check(cover is not None, "a sync of the written file returns before the answer", f"request {number}: {answer.text[:200]}")
        covering.add(cover.began)
    return len(covering)


def run(options, folder: pathlib.Path) -> None:
    """One traced broker, several connections that pipeline."""
    trace = folder / "trace.txt"
    broker = harness.Broker(options.broker, folder)
    broker.start(["strace", "-f", "-ttt", "-xx", "-s", "4194304", "-e", f"trace={CALLS}", "-o", str(trace)])
    try:
        setup = wire.Connection(broker.port)
        check(setup.create_topic("marked", CONNECTIONS) == 0, "a topic is created")
        setup.close()
        failures: list[str] = []
        threads = [
            threading.Thread(target=produce_marked, args=(broker.port, "marked", index * REQUESTS, failures))
            for index in range(CONNECTIONS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(not failures, "every produce succeeds under the trace", failures)
    finally:
        children = pathlib.Path(f"/proc/{broker.process.pid}/task/{broker.process.pid}/children").read_text().split()
        for child in children:
            subprocess.run(["kill", "-TERM", child], check=False)
        broker.process.wait(60)
    shared = judge(read_trace(trace))
    total = CONNECTIONS * REQUESTS
    passed(f"{total} acknowledgements each left after the sync of their bytes had returned ({shared} syncs)")


if __name__ == "__main__":
    harness.main(run, harness.arguments(__doc__))
