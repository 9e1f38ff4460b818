"""The few requests of the Kafka protocol that the programs make without a client library.

It is written from the protocol's description and shares nothing with the broker. All versions are of the classic encoding, without
tagged fields.
"""

from __future__ import annotations

import dataclasses
import socket
import struct
import time

import crc32c

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_FETCH, API_VERSIONS, CREATE_TOPICS = 0, 1, 2, 3, 9, 18, 19
CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
Headers = tuple[tuple[str, bytes | None], ...]
BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")


def text(value: str | None) -> bytes:
    """`STRING => length:INT16 byte*length`, -1 for null."""
    if value is None:
        return b"\xff\xff"
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


def frame(key: int, version: int, correlation: int, body: bytes) -> bytes:
    """A request with its header (version 1) and its length."""
    header = struct.pack(">hhi", key, version, correlation) + text("wire.py")
    return struct.pack(">i", len(header) + len(body)) + header + body


def varint(value: int) -> bytes:
    """A zigzag varint, as records have them."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized(value: bytes | None) -> bytes:
    """Bytes with their length before them, as records have them; -1 for null."""
    return varint(-1) if value is None else varint(len(value)) + value


def record(delta: int, key: bytes | None, value: bytes | None, headers: Headers = ()) -> bytes:
    """One record at the batch's base timestamp."""
    body = b"\x00" + varint(0) + varint(delta) + sized(key) + sized(value) + varint(len(headers))
    body += b"".join(sized(name.encode()) + sized(content) for name, content in headers)
    return varint(len(body)) + body


def batch(values: list[bytes], timestamp_ms: int | None = None) -> bytes:
    """An uncompressed batch of magic 2 without a producer id."""
    timestamp_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    return batch_of([record(delta, None, value) for delta, value in enumerate(values)], timestamp_ms)


def batch_of(records: list[bytes], timestamp_ms: int) -> bytes:
    """The same of records that are encoded already; -1 for no timestamp."""
    last, payload = len(records) - 1, b"".join(records)
    checked = struct.pack(">hiqqqhii", 0, last, timestamp_ms, timestamp_ms, -1, -1, -1, len(records)) + payload
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, crc32c.crc32c(checked)) + checked


def produce(topic: str, partition: int, records: bytes, correlation: int, acks: int = -1) -> bytes:
    """A Produce request, version 7, of one batch."""
    body = text(None) + struct.pack(">hii", acks, 30_000, 1) + text(topic)
    body += struct.pack(">iii", 1, partition, len(records)) + records
    return frame(PRODUCE, 7, correlation, body)


def fetch(topic: str, partition: int, offset: int, correlation: int, max_bytes: int, wait_ms: int = 100) -> bytes:
    """A Fetch request, version 10, of one partition and without a session."""
    body = struct.pack(">iiiibii", -1, wait_ms, 1, max_bytes, 0, 0, -1)
    body += struct.pack(">i", 1) + text(topic)
    body += struct.pack(">iiiqqi", 1, partition, -1, offset, -1, max_bytes)
    body += struct.pack(">i", 0)
    return frame(FETCH, 10, correlation, body)


@dataclasses.dataclass
class Fetched:
    """One partition's part of a Fetch response."""

    error: int
    high_watermark: int
    log_start: int
    records: memoryview


@dataclasses.dataclass(frozen=True)
class Committed:
    """What a group has committed for one partition; the offset is -1 if nothing."""

    offset: int
    leader_epoch: int
    metadata: str
    error: int


@dataclasses.dataclass
class Batch:
    """The header of a stored batch, and all its bytes."""

    base_offset: int
    leader_epoch: int
    magic: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    record_count: int
    raw: memoryview

    @property
    def codec(self) -> str:
        """The name of the codec that the attributes say."""
        return CODECS.get(self.attributes & 7, "unknown")

    @property
    def next_offset(self) -> int:
        """The first offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    def crc_holds(self) -> bool:
        """Whether the checksum covers what it should."""
        return struct.unpack_from(">I", self.raw, 17)[0] == crc32c.crc32c(self.raw[21:])


def batches(records: memoryview):
    """The whole batches of a Fetch response; what is cut off at the end is left out."""
    at = 0
    while at + 61 <= len(records):
        fields = BATCH_HEADER.unpack_from(records, at)
        end = at + 12 + fields[1]
        if end > len(records):
            return
        yield Batch(
            fields[0], fields[2], fields[3], fields[5], fields[6], fields[7], fields[8], fields[9], fields[12],
            records[at:end],
        )
        at = end


class Connection:
    """A blocking connection that sends one frame and receives one."""

    def __init__(self, port: int, timeout: float = 60.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation = 0

    def close(self) -> None:
        self.socket.close()

    def receive(self) -> memoryview:
        """The next response without its length."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, length: int) -> memoryview:
        buffer = memoryview(bytearray(length))
        filled = 0
        while filled < length:
            got = self.socket.recv_into(buffer[filled:])
            if got == 0:
                raise ConnectionError("the broker closed the connection")
            filled += got
        return buffer

    def call(self, request: bytes) -> memoryview:
        """Sends a request and returns its response's body after the correlation id."""
        self.socket.sendall(request)
        return self.receive()[4:]

    def next_correlation(self) -> int:
        self.correlation += 1
        return self.correlation

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str] | None = None) -> int:
        """CreateTopics, version 2; the error code of the topic."""
        body = struct.pack(">i", 1) + text(topic) + struct.pack(">ihi", partitions, 1, 0)
        configs = configs or {}
        body += struct.pack(">i", len(configs)) + b"".join(text(key) + text(value) for key, value in configs.items())
        body += struct.pack(">ib", 30_000, 0)
        answer = self.call(frame(CREATE_TOPICS, 2, self.next_correlation(), body))
        (name_length,) = struct.unpack_from(">h", answer, 8)
        return struct.unpack_from(">h", answer, 10 + name_length)[0]

    def produce(self, topic: str, partition: int, records: bytes) -> tuple[int, int]:
        """Produces one batch; the error code and the base offset."""
        answer = self.call(produce(topic, partition, records, self.next_correlation()))
        return produced(answer)

    def fetch(self, topic: str, partition: int, offset: int, max_bytes: int, wait_ms: int = 100) -> Fetched:
        """Fetches one partition."""
        answer = self.call(fetch(topic, partition, offset, self.next_correlation(), max_bytes, wait_ms))
        at = 4 + 2 + 4 + 4
        (name_length,) = struct.unpack_from(">h", answer, at)
        at += 2 + name_length + 4
        _, error, high_watermark, _, log_start, aborted = struct.unpack_from(">ihqqqi", answer, at)
        at += struct.calcsize(">ihqqqi") + 16 * max(aborted, 0)
        (length,) = struct.unpack_from(">i", answer, at)
        at += 4
        return Fetched(error, high_watermark, log_start, answer[at : at + max(length, 0)])

    def offset_at(self, topic: str, partition: int, timestamp: int) -> tuple[int, int, int]:
        """ListOffsets, version 1; the error code, the timestamp and the offset."""
        body = struct.pack(">ii", -1, 1) + text(topic) + struct.pack(">iiq", 1, partition, timestamp)
        answer = self.call(frame(LIST_OFFSETS, 1, self.next_correlation(), body))
        (name_length,) = struct.unpack_from(">h", answer, 4)
        _, error, found, offset = struct.unpack_from(">ihqq", answer, 4 + 2 + name_length + 4)
        return error, found, offset


    def committed(self, group: str, topic: str, partitions: int) -> dict[int, Committed]:
        """OffsetFetch, version 5, of the first `partitions` partitions."""
        body = text(group) + struct.pack(">i", 1) + text(topic) + struct.pack(">i", partitions)
        body += b"".join(struct.pack(">i", partition) for partition in range(partitions))
        answer = self.call(frame(OFFSET_FETCH, 5, self.next_correlation(), body))
        at = 8 + 2 + struct.unpack_from(">h", answer, 8)[0] + 4
        found = {}
        for _ in range(partitions):
            partition, offset, epoch, length = struct.unpack_from(">iqih", answer, at)
            at += 18
            metadata = bytes(answer[at : at + max(length, 0)]).decode()
            at += max(length, 0)
            found[partition] = Committed(offset, epoch, metadata, struct.unpack_from(">h", answer, at)[0])
            at += 2
        return found


def produced(answer: memoryview) -> tuple[int, int]:
    """The error code and the base offset in the body of a Produce response of one partition."""
    (name_length,) = struct.unpack_from(">h", answer, 4)
    _, error, base = struct.unpack_from(">ihq", answer, 4 + 2 + name_length + 4)
    return error, base
