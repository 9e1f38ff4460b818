"""kafka-python and kcat produce and consume 100,000 records each, and read what the other wrote.

For every codec: the stored batches name it, their checksums hold, and the bytes, timestamps and offsets that each client reads are
those that were sent.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

import harness
import records
import wire
from harness import check, passed
from records import PARTITIONS, Record, Stored

PYTHON_CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
KCAT_CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
RECORDS_PER_CLIENT = 100_000
# Batches of no more may be longer when compressed.
FEW_RECORDS = 3
FIELD, MESSAGE = b"\x1f", b"\x1e"


def produce_with_kafka_python(address: str, topic: str, codec: str, sent: list[Record], idempotent: bool) -> list[int]:
    """Sends the records and returns the offset that each was acknowledged with."""
    producer = KafkaProducer(
        bootstrap_servers=address,
        acks="all",
        enable_idempotence=idempotent,
        compression_type=None if codec == "none" else codec,
        linger_ms=100,
        batch_size=64 * 1024,
        max_request_size=1_000_000,
    )
    futures = [
        producer.send(
            topic, record.value, record.key, list(record.headers), record.partition, record.timestamp
        )
        for record in sent
    ]
    producer.flush(120)
    offsets = []
    for record, future in zip(sent, futures):
        report = future.get(timeout=60)
        check(report.partition == record.partition, "a record goes to its partition", report)
        check(report.timestamp == record.timestamp, "an acknowledgement names the producer's timestamp", report)
        offsets.append(report.offset)
    producer.close()
    return offsets


def consume_with_kafka_python(address: str, topic: str, partition: int) -> list[Stored]:
    """Everything in a partition, as kafka-python reads it from an assigned partition."""
    consumer = KafkaConsumer(
        bootstrap_servers=address, group_id=None, enable_auto_commit=False, check_crcs=True, fetch_max_wait_ms=100
    )
    assigned = TopicPartition(topic, partition)
    consumer.assign([assigned])
    end = consumer.end_offsets([assigned])[assigned]
    consumer.seek_to_beginning(assigned)
    read: list[Stored] = []
    last_news = time.monotonic()
    while consumer.position(assigned) < end:
        for record in consumer.poll(timeout_ms=500, max_records=5000).get(assigned, []):
            read.append(Stored(record.offset, record.timestamp, record.key, record.value, tuple(record.headers)))
            last_news = time.monotonic()
        check(time.monotonic() - last_news < 60, "kafka-python reads to the end", f"{len(read)} of {end}")
    consumer.close()
    return read


def kcat(address: str, *words: str, stdin: bytes | None = None) -> bytes:
    """Runs kcat, which must succeed, and returns its output."""
    command = ["kcat", "-q", "-b", address, *words]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=180, check=False)
    check(done.returncode == 0, "kcat succeeds", f"{words}: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout


def consume_with_kcat(address: str, topic: str, partition: int) -> list[Stored]:
    """Everything in a partition, as kcat reads it. It prints headers as text, a null value of one as NULL."""
    output = kcat(
        address, "-C", "-t", topic, "-p", str(partition), "-o", "beginning", "-e",
        "-X", "check.crcs=true", "-f", "%o %T %K %S\n%k%s%h\x1e\x1f\n",
    )  # fmt: skip
    read, at = [], 0
    head = re.compile(rb"(-?\d+) (-?\d+) (-?\d+) (-?\d+)\n")
    while at < len(output):
        found = head.match(output, at)
        check(found is not None, "kcat's output is framed", output[at : at + 100])
        offset, timestamp, key_len, value_len = (int(number) for number in found.groups())
        at = found.end()
        key = None if key_len < 0 else output[at : at + key_len]
        at += max(key_len, 0)
        value = None if value_len < 0 else output[at : at + value_len]
        at += max(value_len, 0)
        end = output.index(b"\x1e\x1f\n", at)
        headers = ((("shown by kcat", output[at:end]),) if end > at else ())
        read.append(Stored(offset, timestamp, key, value, headers))
        at = end + 3
    return read


def shown_by_kcat(headers: tuple[tuple[str, bytes | None], ...]) -> tuple[tuple[str, bytes | None], ...]:
    """Headers as kcat prints them: null as a word, and values up to their first zero byte."""
    if not headers:
        return ()
    shown = [name.encode() + b"=" + (b"NULL" if value is None else value.split(b"\0")[0]) for name, value in headers]
    return (("shown by kcat", b",".join(shown)),)


def batches_of(connection: wire.Connection, topic: str, partition: int) -> list[wire.Batch]:
    """Every stored batch of a partition, by raw requests."""
    found, offset = [], 0
    while True:
        fetched = connection.fetch(topic, partition, offset, 4 * 1024 * 1024)
        check(fetched.error == 0, "a raw fetch succeeds", fetched.error)
        got = list(wire.batches(fetched.records))
        check(got or offset >= fetched.high_watermark, "a fetch below the end returns a whole batch", offset)
        if not got:
            return found
        for batch in got:
            check(batch.base_offset == offset, "batches follow each other without a gap", (batch.base_offset, offset))
            check(batch.crc_holds(), "a stored batch's checksum holds", offset)
            check(batch.magic == 2, "a stored batch is of magic 2", batch.magic)
            check(batch.record_count == batch.last_offset_delta + 1, "a batch covers its offsets", offset)
            found.append(batch)
            offset = batch.next_offset


def compare(what: str, read: list[Stored], expected: list[Stored]) -> None:
    """Ends the program at the first record that differs."""
    check(len(read) == len(expected), f"{what}: as many records as were sent", (len(read), len(expected)))
    for got, wanted in zip(read, expected):
        check(got == wanted, f"{what}: a record comes back as it was sent", f"{str(got)[:600]} != {str(wanted)[:600]}")


def stored_batches(port: int, topic: str, codec: str, client: str, spans: dict[int, tuple[int, int]]) -> None:
    """Every batch names the codec; its timestamps lie in what was sent."""
    connection = wire.Connection(port)
    plain = total = 0
    for partition in range(PARTITIONS):
        for batch in batches_of(connection, topic, partition):
            # Of a few records kafka-python sends what compression would make longer as it is.
            is_plain = batch.codec == "none" and batch.record_count <= FEW_RECORDS
            is_right = batch.codec == codec or is_plain
            check(is_right, f"{client}'s batches name {codec}", (batch.codec, batch.base_offset, batch.record_count))
            plain += is_plain
            total += 1
            earliest, latest = spans[partition]
            inside = earliest <= batch.base_timestamp and batch.max_timestamp <= latest
            check(inside, "a batch's timestamps are the producer's", (batch.base_timestamp, batch.max_timestamp))
    connection.close()
    check(codec == "none" or plain * 2 < total, f"most of {client}'s batches are compressed", (plain, total))
    passed(f"every batch that {client} sent with {codec} is stored with {codec}")


def kafka_python_round(broker: harness.Broker, codec: str, count: int) -> None:
    """kafka-python writes; kafka-python, kcat and raw requests read."""
    topic = f"python-{codec}"
    first_timestamp = int(time.time() * 1000) - count
    sent = records.make(count, first_timestamp)
    offsets = produce_with_kafka_python(broker.address, topic, codec, sent, idempotent=codec != "gzip")
    spans = {}
    for partition in range(PARTITIONS):
        expected = [
            Stored(offset, record.timestamp, record.key, record.value, record.headers)
            for record, offset in zip(sent, offsets)
            if record.partition == partition
        ]
        check([record.offset for record in expected] == list(range(len(expected))), "offsets are dense and in order")
        compare("kafka-python", consume_with_kafka_python(broker.address, topic, partition), expected)
        shown = [
            Stored(record.offset, record.timestamp, record.key, record.value, shown_by_kcat(record.headers))
            for record in expected
        ]
        compare("kcat", consume_with_kcat(broker.address, topic, partition), shown)
        spans[partition] = (expected[0].timestamp, expected[-1].timestamp)
        if partition == 0:
            look_up_by_time(broker.port, topic, expected)
    passed(f"{count} records from kafka-python with {codec} come back the same in kafka-python and kcat")
    stored_batches(broker.port, topic, codec, "kafka-python", spans)


def look_up_by_time(port: int, topic: str, expected: list[Stored]) -> None:
    """The first record at or after a time is found, in the middle and at both ends."""
    connection = wire.Connection(port)
    middle = expected[len(expected) // 2]
    for asked, wanted in [
        (middle.timestamp, (0, middle.timestamp, middle.offset)),
        (middle.timestamp - 1, (0, middle.timestamp, middle.offset)),
        (expected[0].timestamp - 1000, (0, expected[0].timestamp, 0)),
        (expected[-1].timestamp + 1, (0, -1, -1)),
        (-1, (0, -1, len(expected))),
        (-2, (0, -1, 0)),
    ]:
        found = connection.offset_at(topic, 0, asked)
        check(found == wanted, f"the offset at {asked} is found", f"{found} != {wanted}")
    connection.close()


def kcat_round(broker: harness.Broker, codec: str, count: int, folder: pathlib.Path) -> None:
    """kcat writes; kcat, kafka-python and raw requests read."""
    topic = f"kcat-{codec}"
    began = int(time.time() * 1000)
    sent = records.make(count, 0)
    spans, total = {}, 0
    for partition in range(PARTITIONS):
        words = ["-P", "-t", topic, "-p", str(partition), "-z", codec, "-X", "acks=all", "-X", "linger.ms=50"]
        plain = [record for record in sent if record.partition == partition]
        plain = [record for record in plain if len(record.value or b"") < records.GREAT_LEN]
        lines = [(record.key or b"") + FIELD + (record.value or b"") + MESSAGE for record in plain]
        kcat(broker.address, *words, "-Z", "-K", "\x1f", "-D", "\x1e", stdin=b"".join(lines))
        expected = [(record.key or None, record.value or None, ()) for record in plain]

        headers = (("x", b"1"), ("x", b"2"), ("nothing", None), ("empty", b""))
        flags = [word for header in ("x=1", "x=2", "nothing", "empty=") for word in ("-H", header)]
        lines = [b"k" + FIELD + b"with headers, again and again and again and again %d" % i + MESSAGE for i in range(500)]
        kcat(broker.address, *words, *flags, "-K", "\x1f", "-D", "\x1e", stdin=b"".join(lines))
        expected += [(b"k", line.split(FIELD)[1][:-1], headers) for line in lines]

        great = folder / "great.bin"
        great.write_bytes((b"nine hundred kilobytes from a file " * (records.GREAT_LEN // 35 + 1))[: records.GREAT_LEN])
        kcat(broker.address, *words, str(great))
        expected.append((None, great.read_bytes(), ()))
        total += len(expected)

        by_kcat = consume_with_kcat(broker.address, topic, partition)
        by_python = consume_with_kafka_python(broker.address, topic, partition)
        compare("kcat", by_kcat, [
            Stored(offset, record.timestamp, key, value, shown_by_kcat(shown))
            for offset, (record, (key, value, shown)) in enumerate(zip(by_python, expected))
        ])  # fmt: skip
        compare("kafka-python", by_python, [
            Stored(offset, record.timestamp, key, value, shown)
            for offset, (record, (key, value, shown)) in enumerate(zip(by_kcat, expected))
        ])  # fmt: skip
        check(len(by_python) == len(expected), "as many records as kcat sent", (len(by_python), len(expected)))
        now = int(time.time() * 1000)
        timestamps = [record.timestamp for record in by_python]
        check(began <= min(timestamps) and max(timestamps) <= now, "timestamps are those of sending", timestamps[:1])
        spans[partition] = (began, now)
    passed(f"{total} records from kcat with {codec} come back the same in kcat and kafka-python")
    stored_batches(broker.port, topic, codec, "kcat", spans)


def run(options, folder: pathlib.Path) -> None:
    """One broker, every codec of both clients; then the same reads after a restart."""
    broker = harness.Broker(options.broker, folder)
    broker.start()
    try:
        setup = wire.Connection(broker.port)
        for client, codecs in (("python", PYTHON_CODECS), ("kcat", KCAT_CODECS)):
            for codec in codecs:
                error = setup.create_topic(f"{client}-{codec}", PARTITIONS)
                check(error == 0, "a topic is created", error)
        setup.close()
        for codec in PYTHON_CODECS:
            kafka_python_round(broker, codec, options.records // len(PYTHON_CODECS))
        for codec in KCAT_CODECS:
            kcat_round(broker, codec, options.records // len(KCAT_CODECS), folder)
        if options.restart:
            before = consume_with_kafka_python(broker.address, "python-zstd", 1)
            broker.stop()
            broker.start()
            compare("after a restart", consume_with_kafka_python(broker.address, "python-zstd", 1), before)
            passed("what was stored before an orderly restart is there after it")
    finally:
        if broker.process.poll() is None:
            broker.kill()


if __name__ == "__main__":
    parser = harness.arguments(__doc__)
    parser.add_argument("--records", type=int, default=RECORDS_PER_CLIENT, help="per client, over all codecs")
    parser.add_argument("--no-restart", dest="restart", action="store_false", help="for brokers that keep nothing")
    harness.main(run, parser)
