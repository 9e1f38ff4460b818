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
    timestamp: int


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
