#!/bin/sh
# librdkafka's tests call this by the name that it has in Apache Kafka's distribution.
exec "$SUITES_PYTHON" "$(dirname "$0")/../tool.py" topics "$@"
