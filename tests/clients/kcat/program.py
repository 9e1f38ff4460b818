"""The scenarios of the client matrix with kcat, which is librdkafka on a command line.

What a command line cannot say (a timestamp, a zero byte in a header, headers of its own for each record) is told as `shape_skipped`.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

import cell  # noqa: E402
import records  # noqa: E402

FIELD, MESSAGE, END = b"\x1f", b"\x1e", b"\x1e\x1f\n"
FORMAT = "%p %o %T %K %S\n%k%s%h\x1e\x1f\n"
HEAD = re.compile(rb"(-?\d+) (-?\d+) (-?\d+) (-?\d+) (-?\d+)\n")


def produce(arguments: cell.Arguments) -> None:
    """Sends the seeded records: of each partition those with the same headers after each other."""
    for shape in ("timestamp", "order", "nul-header"):
        cell.emit({"shape_skipped": shape})
    partitions = arguments.number("partitions", 1)
    sent = records.seeded(
        arguments.number("seed"), arguments.number("count"), partitions, arguments.number("big", 0) == 1
    )
    for partition in range(partitions):
        mine = [record for record in sent if record.partition == partition]
        for headers in records.header_shapes(mine):
            flags = [f"{name}={content.decode()}" for name, content in headers if b"\0" not in content]
            lines = [
                (record.key or b"") + FIELD + (record.value or b"") + MESSAGE
                for record in mine
                if record.headers == headers
            ]
            kcat(
                arguments.bootstrap, "-P", "-Z", "-K", FIELD.decode(), "-D", MESSAGE.decode(),
                "-t", arguments.text("topic"), "-p", str(partition), "-z", arguments.text("codec"),
                "-X", "acks=all", "-X", "linger.ms=100",
                *(word for flag in flags for word in ("-H", flag)),
                stdin=b"".join(lines),
            )  # fmt: skip
    cell.emit({"produced": len(sent)})


def read(arguments: cell.Arguments) -> None:
    """Reads all partitions from their start to their end, without a group."""
    cell.emit({"shape_skipped": "nul-header"})
    emit_records(
        kcat(
            arguments.bootstrap, "-C", "-t", arguments.text("topic"), "-o", "beginning", "-e",
            "-X", "check.crcs=true", "-f", FORMAT,
        ),
        arguments.number("expect"),
    )  # fmt: skip


def group(arguments: cell.Arguments) -> None:
    """Reads as the only member of a group; kcat commits when it leaves, and does not tell what."""
    cell.emit({"shape_skipped": "nul-header"})
    cell.emit({"shape_skipped": "committed"})
    expected = arguments.number("expect")
    emit_records(
        kcat(
            arguments.bootstrap, "-G", arguments.text("group"), "-c", str(expected),
            "-X", "auto.offset.reset=earliest", "-f", FORMAT, arguments.text("topic"),
            seconds=arguments.number("timeout", 60),
        ),
        expected,
    )  # fmt: skip


def churn(_: cell.Arguments) -> None:
    """Not possible."""
    cell.cannot("kcat tells neither its generation nor its commits")


def kcat(bootstrap: str, *words: str, stdin: bytes = b"", seconds: int = 60) -> bytes:
    """Runs kcat, which must succeed, and returns its output."""
    done = subprocess.run(
        ["kcat", "-q", "-b", bootstrap, *words], input=stdin, capture_output=True, timeout=seconds, check=False
    )
    if done.returncode != 0:
        sys.exit(f"kcat {words[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def emit_records(output: bytes, expected: int) -> None:
    """Tells the records in kcat's output. Of a header's value it shows what is before the first zero byte."""
    at = seen = 0
    while at < len(output):
        found = HEAD.match(output, at)
        if found is None:
            sys.exit(f"kcat's output is not as it was asked for: {output[at : at + 100]!r}")
        partition, offset, timestamp, key_len, value_len = (int(number) for number in found.groups())
        at = found.end()
        key = None if key_len < 0 else output[at : at + key_len]
        at += max(key_len, 0)
        value = None if value_len < 0 else output[at : at + value_len]
        at += max(value_len, 0)
        end = output.index(END, at)
        shown = output[at:end].decode()
        headers = [header.split("=", 1) for header in shown.split(",")] if shown else []
        cell.emit_record(
            partition, offset, timestamp, key, value, [(name, content.encode()) for name, content in headers]
        )
        at, seen = end + len(END), seen + 1
    if seen != expected:
        sys.exit(f"kcat read {seen} records, not {expected}")


if __name__ == "__main__":
    cell.main({"produce": produce, "read": read, "group": group, "churn": churn})
