"""Sends 2,400 messages; the third of the five programs, with confluent-kafka."""

import json

from confluent_kafka import Producer

BOOTSTRAP_SERVERS = "<comma-separated list of IPs>"
producer = Producer({"bootstrap.servers": BOOTSTRAP_SERVERS})
for i in range(100, 2500):
    key = str(i)
    message = {"name": "vast", "id": i}
    producer.produce(topic_name, key=key.encode("utf-8"), value=json.dumps(message).encode("utf-8"))
producer.flush()
print("Message sent to Kafka topic")
