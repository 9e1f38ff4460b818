"""A producer in a process of its own that logs what it sent and each delivery report, until it is told to stop.

```text
log => line*      line => "S" n            record n was handed to the client library
                        | "A" n offset     record n was acknowledged at that offset
                        | "F" n reason     record n failed, finally
```
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time

from kafka import KafkaProducer

OUTSTANDING_MAX = 2000
BURST = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--rate", type=int, required=True, help="records a second")
    parser.add_argument("--idempotent", action="store_true")
    options = parser.parse_args()

    log = os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    outstanding = threading.Semaphore(OUTSTANDING_MAX)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())

    # Without idempotence nothing is sent twice, so that a record which is found twice is the broker's doing.
    retries = {} if options.idempotent else {"retries": 0}
    producer = KafkaProducer(
        bootstrap_servers=options.address,
        acks="all",
        enable_idempotence=options.idempotent,
        batch_size=4096,
        retry_backoff_ms=20,
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=200,
        delivery_timeout_ms=120_000,
        request_timeout_ms=20_000,
        **retries,
    )

    def acknowledged(n: int, report) -> None:
        os.write(log, b"A %d %d\n" % (n, report.offset))
        outstanding.release()

    def failed(n: int, reason: BaseException) -> None:
        os.write(log, b"F %d %s\n" % (n, type(reason).__name__.encode()))
        outstanding.release()

    n = 0
    while not stopping.is_set():
        for _ in range(BURST):
            outstanding.acquire()
            os.write(log, b"S %d\n" % n)
            value = b"%d " % n + b"x" * (n % 200)
            try:
                future = producer.send(options.topic, value, partition=0)
            except Exception as reason:  # the library refuses records while it knows no broker
                failed(n, reason)
            else:
                future.add_callback(acknowledged, n)
                future.add_errback(failed, n)
            n += 1
        time.sleep(BURST / options.rate)
    producer.flush(120)
    producer.close(120)


if __name__ == "__main__":
    main()
