"""The records that are sent, and how they are told apart from anything else that might come back."""

from __future__ import annotations

import dataclasses

Headers = list[tuple[str, bytes | None]]


@dataclasses.dataclass(frozen=True)
class Record:
    """A record as a producer gives it."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int | None


@dataclasses.dataclass(frozen=True)
class Stored:
    """A record as somebody read it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


GREAT_LEN = 900 * 1024
PARTITIONS = 2
FIRST_TIMESTAMP = 1_700_000_000_000
BIG_LEN = 900_000


def make(count: int, first_timestamp: int) -> list[Record]:
    """`count` records: null and empty keys and values, repeated header keys, binary header values, one of 900 KiB.

    kafka-python refuses to send null header values; those are sent by kcat. All compress well, so that producers which send what does not shrink uncompressed have no reason to.
    """
    return [_record(index, count, first_timestamp + index) for index in range(count)]


def _record(index: int, count: int, timestamp: int) -> Record:
    key = None if index % 7 == 0 else b"" if index % 101 == 0 else b"key-%d" % (index % 1000)
    value = b"record %d " % index + b"all work and no play " * (index % 13 + 4)
    if index % 11 == 3 and key is not None:
        value = None
    elif index % 103 == 5:
        value = b""
    elif index == count // 2:
        value = (b"a record of nine hundred kilobytes " * (GREAT_LEN // 35 + 1))[:GREAT_LEN]
    headers: Headers = []
    if index % 5 == 0:
        headers += [("x", b"1"), ("x", b"2"), ("x", b"1")]
    if index % 17 == 0:
        headers += [("empty", b"")]
    if index % 29 == 0:
        headers += [("schlüssel", bytes(range(256)))]
    return Record(index % PARTITIONS, key, value, tuple(headers), timestamp)


def seeded(seed: int, count: int, partitions: int, big: bool = False) -> list[Record]:
    """The records that a client program writes; every program makes the same ones from their numbers.

    With `big` one more follows, of 900,000 bytes.
    """
    made = [_seeded(seed, index, partitions) for index in range(count)]
    if big:
        made.append(Record(count % partitions, b"big", b"y" * BIG_LEN, (), FIRST_TIMESTAMP + count))
    return made


def _seeded(seed: int, index: int, partitions: int) -> Record:
    key = None if index % 7 == 3 else b"k-%d-%d" % (seed, index)
    value = b"v-%d-%d-" % (seed, index) + b"x" * (index * 37 % 300)
    if index % 11 == 5 and key is not None:
        value = None
    headers: tuple[tuple[str, bytes], ...] = ()
    if index % 3 == 1:
        headers = (("h1", b"a"), ("h1", b"b"))
    elif index % 3 == 2:
        headers = (("empty", b""), ("bin", b"\x00\xff\x80"))
    return Record(index % partitions, key, value, headers, FIRST_TIMESTAMP + index)


def header_shapes(some: list[Record]) -> list[tuple[tuple[str, bytes | None], ...]]:
    """The different headers of records, in the order in which they first occur."""
    return list(dict.fromkeys(record.headers for record in some))


def as_written(sent: list[Record], shapes: list[str]) -> list[Record]:
    """What a writer that leaves out some shapes stores, in its order; a timestamp that it chooses itself is None."""
    stored = sent
    if "timestamp" in shapes:
        stored = [dataclasses.replace(record, timestamp=None) for record in stored]
    if "order" in shapes:
        partitions = [[record for record in stored if record.partition == at] for at in range(PARTITIONS)]
        stored = [
            record
            for mine in partitions
            for headers in header_shapes(mine)
            for record in mine
            if record.headers == headers
        ]
    if "nul-header" in shapes:
        stored = [_with_headers(record, [(n, c) for n, c in record.headers if b"\0" not in c]) for record in stored]
    if "duplicate-header" in shapes:
        stored = [_with_headers(record, sorted(dict(record.headers).items())) for record in stored]
    return stored


def as_read(stored: list[Record], shapes: list[str]) -> list[Record]:
    """What a reader that leaves out some shapes shows."""
    shown = stored
    if "nul-header" in shapes:
        shown = [_with_headers(record, [(n, c.split(b"\0")[0]) for n, c in record.headers]) for record in shown]
    if "duplicate-header" in shapes:
        shown = [_with_headers(record, sorted(dict(record.headers).items())) for record in shown]
    return shown


def _with_headers(record: Record, headers: list[tuple[str, bytes]]) -> Record:
    return dataclasses.replace(record, headers=tuple(headers))
