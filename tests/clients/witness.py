"""An ordinary kafka-python client that produces and consumes until its standard input ends. Any error ends it with an exit code other than 0."""

from __future__ import annotations

import argparse
import os
import select
import sys
import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

ROUND_TRIP_SECONDS_MAX = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True)
    options = parser.parse_args()

    producer = KafkaProducer(bootstrap_servers=options.address, acks="all", retries=0, enable_idempotence=False)
    consumer = KafkaConsumer(bootstrap_servers=options.address, group_id=None, enable_auto_commit=False)
    assigned = TopicPartition("witness", 0)
    times = []
    while True:
        began = time.monotonic()
        value = os.urandom(1000)
        producer.send("witness", value, partition=0).get(timeout=ROUND_TRIP_SECONDS_MAX)
        if not times:
            consumer.assign([assigned])
            consumer.seek_to_beginning(assigned)
        seen = False
        while not seen:
            records = consumer.poll(timeout_ms=100).get(assigned, [])
            seen = any(record.value == value for record in records)
            took = time.monotonic() - began
            if took > ROUND_TRIP_SECONDS_MAX:
                sys.exit(f"a round trip took more than {ROUND_TRIP_SECONDS_MAX} s")
        times.append(took)
        if len(times) == 1:
            print("ready", flush=True)
        if select.select([sys.stdin], [], [], 0.02)[0]:
            break
    producer.close()
    consumer.close()
    times.sort()
    print(f"{len(times)} round trips, median {times[len(times) // 2] * 1000:.1f} ms, longest {times[-1] * 1000:.0f} ms")


if __name__ == "__main__":
    main()
