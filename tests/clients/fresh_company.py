"""Company for `fresh.py`: writes one topic, and creates, fills and deletes others, until its standard input ends.

Any error ends it with an exit code other than 0.
"""

from __future__ import annotations

import argparse
import select
import sys

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

LIVING_MAX = 3
PAUSE_SECONDS = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", required=True)
    options = parser.parse_args()

    producer = KafkaProducer(bootstrap_servers=options.address, acks="all")
    admin = KafkaAdminClient(bootstrap_servers=options.address)
    written, created, living = 0, 0, []
    while True:
        sent = [producer.send("company", b"%d" % (written + step), b"key-%d" % (step % 10)) for step in range(50)]
        name = f"passing-{created}"
        admin.create_topics([NewTopic(name, 2, 1)])
        created += 1
        living.append(name)
        sent.append(producer.send(name, b"here for a while", partition=created % 2))
        producer.flush(60)
        for future in sent:
            future.get(timeout=0)
        written += len(sent)
        if len(living) > LIVING_MAX:
            admin.delete_topics([living.pop(0)])
        if created == 1:
            print("ready", flush=True)
        if select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
            break
    producer.close()
    admin.close()
    print(f"{written} records, {created} topics created, {created - len(living)} deleted")


if __name__ == "__main__":
    main()
