"""The parts of Apache Kafka's command line tools that librdkafka's tests call, over an admin client of Python.

    topics --bootstrap-server S (--create | --alter | --delete) --topic T [--partitions N] [--config key=value]…
    acls   --bootstrap-server S (--add | --remove --force) --(allow|deny)-principal P --operation O --topic T
"""

from __future__ import annotations

import argparse
import sys

from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, ResourcePattern, ResourcePatternFilter
from kafka.admin import ACLResourcePatternType, ResourceType


def topics(words: list[str]) -> None:
    """Creates, widens or deletes a topic."""
    parser = argparse.ArgumentParser(prog="kafka-topics.sh")
    parser.add_argument("--bootstrap-server", required=True)
    action = parser.add_mutually_exclusive_group(required=True)
    for name in ("--create", "--alter", "--delete"):
        action.add_argument(name, action="store_true")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=-1)
    parser.add_argument("--replication-factor", type=int, default=-1)
    parser.add_argument("--config", action="append", default=[])
    options = parser.parse_args(words)
    with KafkaAdminClient(bootstrap_servers=options.bootstrap_server) as admin:
        if options.create:
            topic = {
                "num_partitions": options.partitions,
                "replication_factor": options.replication_factor,
                "configs": dict(entry.split("=", 1) for entry in options.config),
            }
            admin.create_topics({options.topic: topic})
        elif options.alter:
            admin.create_partitions({options.topic: options.partitions})
        else:
            admin.delete_topics([options.topic])


def acls(words: list[str]) -> None:
    """Adds or removes one binding of a topic."""
    parser = argparse.ArgumentParser(prog="kafka-acls.sh")
    parser.add_argument("--bootstrap-server", required=True)
    action = parser.add_mutually_exclusive_group(required=True)
    for name in ("--add", "--remove"):
        action.add_argument(name, action="store_true")
    parser.add_argument("--force", action="store_true")
    principal = parser.add_mutually_exclusive_group(required=True)
    for name in ("--allow-principal", "--deny-principal"):
        principal.add_argument(name)
    for name in ("--allow-host", "--deny-host"):
        parser.add_argument(name, default="*")
    parser.add_argument("--operation", required=True)
    parser.add_argument("--topic", required=True)
    options = parser.parse_args(words)
    permission = ACLPermissionType.ALLOW if options.allow_principal else ACLPermissionType.DENY
    who = options.allow_principal or options.deny_principal
    host = options.allow_host if options.allow_principal else options.deny_host
    operation = ACLOperation[options.operation.upper()]
    with KafkaAdminClient(bootstrap_servers=options.bootstrap_server) as admin:
        if options.add:
            outcome = admin.create_acls([ACL(who, host, operation, permission, _topic(ResourcePattern, options.topic))])
            failed = outcome["failed"]
        else:
            wanted = ACLFilter(who, host, operation, permission, _topic(ResourcePatternFilter, options.topic))
            failed = [error for _, _, error in admin.delete_acls([wanted]) if error.errno != 0]
    if failed:
        sys.exit(f"kafka-acls.sh: {failed}")


def _topic(pattern: type, name: str) -> ResourcePattern:
    return pattern(ResourceType.TOPIC, name, ACLResourcePatternType.LITERAL)


if __name__ == "__main__":
    {"topics": topics, "acls": acls}[sys.argv[1]](sys.argv[2:])
