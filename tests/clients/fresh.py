"""What was flushed is in the answer to the next question, round after round, while others write, create and delete topics."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time

from kafka import KafkaProducer

import harness
import wire
from doors.adbc import Adbc
from harness import check, passed

TOPIC = "fresh"
PARTITIONS = 2
KEYS = 7
RECORDS_PER_ROUND_MAX = 4
COMPANY = pathlib.Path(__file__).resolve().parent / "fresh_company.py"


class Expected:
    """What the topic holds: every value by its key, and the number of records in each partition."""

    def __init__(self) -> None:
        self.lengths = [0] * PARTITIONS
        self.values: dict[bytes, list[bytes]] = {}

    def add(self, partition: int, key: bytes, value: bytes) -> None:
        self.lengths[partition] += 1
        self.values.setdefault(key, []).append(value)


def rows(adbc: Adbc, sql: str) -> list[tuple]:
    table = adbc.table(sql)
    return list(zip(*(column.to_pylist() for column in table.columns)))


def one_round(number: int, producer: KafkaProducer, adbc: Adbc, expected: Expected) -> None:
    """Writes a few records and asks at once, in three ways."""
    sent = []
    for step in range(1 + number % RECORDS_PER_ROUND_MAX):
        key, value, partition = b"k-%d" % ((number + step) % KEYS), b"v-%d-%d" % (number, step), (number + step) % PARTITIONS
        sent.append(producer.send(TOPIC, value, key, partition=partition))
        expected.add(partition, key, value)
    producer.flush(60)
    counted = rows(adbc, f"SELECT count(*) FROM {TOPIC}")
    check(counted == [(sum(expected.lengths),)], "the count is exact", (number, counted, expected.lengths))
    last = rows(adbc, f'SELECT max("offset") FROM {TOPIC} WHERE partition = {partition}')
    check(last == [(expected.lengths[partition] - 1,)], "the last offset is exact", (number, last, expected.lengths))
    found = rows(
        adbc,
        f'SELECT count(*), max(CASE WHEN partition = {partition} THEN "offset" END) FROM {TOPIC} WHERE key = \'{key.decode()}\'',
    )
    wanted = (len(expected.values[key]), expected.lengths[partition] - 1)
    check(found == [wanted], "the rows of a key are exact", (number, key, found, wanted))
    for future in sent:
        future.get(timeout=0)


def run(options, folder: pathlib.Path) -> None:
    with harness.running(options.broker, folder, sql=True) as broker:
        connection = wire.Connection(broker.port)
        check(connection.create_topic(TOPIC, PARTITIONS) == 0, "the topic is created")
        connection.close()
        company = subprocess.Popen(
            [sys.executable, str(COMPANY), "--address", broker.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        check(company.stdout.readline() == "ready\n", "the company writes")
        producer = KafkaProducer(bootstrap_servers=broker.address, acks="all")
        adbc, expected, times = Adbc(broker.sql_port), Expected(), []
        for number in range(options.rounds):
            began = time.monotonic()
            one_round(number, producer, adbc, expected)
            times.append(time.monotonic() - began)
            check(company.poll() is None, "the company goes on", company.returncode)
        everything(adbc, expected)
        told, _ = company.communicate("\n", timeout=60)
        check(company.returncode == 0, "the company leaves", told)
        producer.close()
        adbc.close()
        broker.stop()
    times.sort()
    passed(
        f"{options.rounds} rounds of flush, count, max and a filter by key were exact, median {times[len(times) // 2] * 1000:.1f} ms,"
        f" beside {told.strip()}"
    )


def everything(adbc: Adbc, expected: Expected) -> None:
    """Every value is there once, below its key."""
    found: dict[bytes, list[bytes]] = {}
    for key, value in rows(adbc, f'SELECT key, value FROM {TOPIC} ORDER BY partition, "offset"'):
        found.setdefault(key, []).append(value)
    for key, values in expected.values.items():
        check(sorted(found.get(key, [])) == sorted(values), "every value is there once", key)
    check(found.keys() == expected.values.keys(), "there is nothing else", found.keys())


if __name__ == "__main__":
    parser = harness.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    harness.main(run, parser)
