"""Prints messages until it is stopped; the fourth of the five programs, with confluent-kafka."""

from confluent_kafka import Consumer

BOOTSTRAP_SERVERS = "<comma-separated list of IPs>"
consumer = Consumer({
    "bootstrap.servers": BOOTSTRAP_SERVERS,
    "auto.offset.reset": "earliest",
    "group.id": "your-consumer-group-name",
})
consumer.subscribe([topic_name])
while True:
    message = consumer.poll(1.0)
    if message is None:
        continue
    if message.error():
        print(f"Error: {message.error()}")
        break
    print(f"Received message: {message.value().decode('utf-8')}")
