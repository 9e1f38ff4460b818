"""Creates a topic; the first of the five programs, with confluent-kafka."""

from confluent_kafka.admin import AdminClient, NewTopic

BOOTSTRAP_SERVERS = "<comma-separated list of IPs>"
topic_name = #
admin_client = AdminClient({"bootstrap.servers": BOOTSTRAP_SERVERS, "client.id": "python-admin-client"})
num_partitions = 2
replication_factor = 1
topic = NewTopic(topic_name, num_partitions=num_partitions, replication_factor=replication_factor)
try:
    for created in admin_client.create_topics([topic], validate_only=False).values():
        created.result()
    print(f"Topic '{topic_name}' created successfully with {num_partitions} partitions and replication factor {replication_factor}.")
except Exception as e:
    print(f"Error creating topic: {e}")
