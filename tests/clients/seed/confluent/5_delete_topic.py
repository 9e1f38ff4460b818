"""Deletes the topic; the last of the five programs, with confluent-kafka."""

from confluent_kafka.admin import AdminClient

BOOTSTRAP_SERVER = "<comma-separated list of IPs>"
TOPIC_TO_DELETE = "my_topic"
admin_client = AdminClient({"bootstrap.servers": BOOTSTRAP_SERVER})
try:
    for deleted in admin_client.delete_topics([TOPIC_TO_DELETE]).values():
        deleted.result()
    print(f"Topic '{TOPIC_TO_DELETE}' deleted successfully.")
except Exception as e:
    print(f"Failed to delete topic '{TOPIC_TO_DELETE}': {e}")
