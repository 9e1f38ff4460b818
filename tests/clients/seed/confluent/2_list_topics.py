"""Lists the topics; the second of the five programs, with confluent-kafka."""

from confluent_kafka.admin import AdminClient

BOOTSTRAP_SERVER = "<comma-separated list of IPs>"
admin_client = AdminClient({"bootstrap.servers": BOOTSTRAP_SERVER})
topics = list(admin_client.list_topics().topics)
print("Kafka Topics:", topics)
