"""SQL over the topics while they are written, and the same statements with the same answers through every door.

The doors are `broker sql` and ADBC, which speak Arrow Flight SQL, and psql and psycopg, which speak PostgreSQL's protocol.
"""

from __future__ import annotations

import pathlib
import re
import threading

import pyarrow
from kafka import KafkaProducer

import harness
import sql_topics
from doors.adbc import Adbc
from doors.command import Command
from doors.extended import Extended
from doors.psql import Psql
from harness import check, passed
from sql_statements import STATEMENTS, Statement

PARTITIONS = 3
LOOKS = 10
# A topic by its own name, and in full as another system calls it.
NAMES = ("my_topic", 'vast."kafka/kafka_topics".my_topic')
EVENTS_COLUMNS = {
    "partition": "int32",
    "offset": "int64",
    "timestamp": "timestamp[ms]",
    "key": "binary",
    "value": "binary",
    "headers": "list<item: struct<key: string not null, value: binary> not null>",
}
# What the error must say, in lower case, and the SQLSTATE where there is one.
REFUSED = [
    ("SELECT * FROM nothing_here", "nothing_here", "42P01"),
    ("SELECT nothing_here FROM events", "nothing_here", "42703"),
    ("INSERT INTO events SELECT * FROM events", "`insert` is refused", "25006"),
    ("DROP TABLE events", "`drop table` is refused", "25006"),
    ("SELECT 1 / (\"offset\" - \"offset\") FROM events", "zero", "22000"),
    ("SELEKT 1", "selekt", "42601"),
]


class Writer:
    """A kafka-python producer that sends all the time, and knows how many records were sent and how many acknowledged."""

    def __init__(self, address: str, topic: str) -> None:
        self.producer = KafkaProducer(bootstrap_servers=address, acks="all", linger_ms=5)
        self.topic = topic
        self.sent = 0
        self.acknowledged = 0
        self.failure: object = None
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopped.wait(0.002):
            for _ in range(5):
                self.sent += 1
                value = b'{"n": %d}' % self.sent
                future = self.producer.send(self.topic, value, b"key-%d" % (self.sent % 10))
                future.add_callback(self._taken)
                future.add_errback(self._lost)

    def _taken(self, _: object) -> None:
        # All callbacks come from the producer's one thread.
        self.acknowledged += 1

    def _lost(self, error: object) -> None:
        self.failure = error

    def stop(self) -> int:
        """How many records there are, all of them acknowledged."""
        self.stopped.set()
        self.thread.join()
        self.producer.flush(60)
        self.producer.close()
        check(self.failure is None, "every record is taken", self.failure)
        check(self.acknowledged == self.sent, "every record is acknowledged", (self.acknowledged, self.sent))
        return self.sent


def lines(printed: str) -> list[str]:
    """The cells of a table of one column, as it is printed for people."""
    name, rule, *rows, _ = printed.splitlines()
    check(set(rule) <= set("-+"), "a line is under the names", rule)
    return [name.strip(), *(row.strip() for row in rows)]


def while_a_producer_writes(broker: harness.Broker, command: Command) -> None:
    """Counts lie between what was acknowledged before they were asked for and what was sent when they were answered."""
    writer = Writer(broker.address, "my_topic")
    harness.wait_until(lambda: writer.acknowledged > 0, "the first record is acknowledged")
    seen = []
    for look in range(LOOKS):
        name = NAMES[look % len(NAMES)]
        before = writer.acknowledged
        printed = command.printed(f"SELECT count(*) FROM {name}", "table")
        after = writer.sent
        (count,) = (int(found) for found in re.findall(r"^ *(\d+) *$", printed, re.MULTILINE))
        check(before <= count <= after, f"the count of {name} is of now", (before, count, after))
        seen.append(count)
    check(seen == sorted(seen) and seen[0] < seen[-1], "counts grow while a producer writes", seen)
    schemas = lines(command.printed("show schemas in vast", "table"))
    check(schemas[0] == "Schema" and schemas[1:] == sorted(schemas[1:]), "show schemas prints one sorted column", schemas)
    check({"information_schema", "kafka/kafka_topics"} <= set(schemas), "show schemas has the topics' schema", schemas)
    tables = lines(command.printed('show tables in vast."kafka/kafka_topics"', "table"))
    check(tables == ["Table", "Orders.v1", "events", "my_topic", "users"], "show tables prints one column", tables)
    sent = writer.stop()
    for name in NAMES:
        printed = command.printed(f"SELECT count(*) AS n, count(DISTINCT value) AS d FROM {name}", "csv")
        check(printed.split() == ["n,d", f"{sent},{sent}"], f"{name} has every record once", (printed, sent))
    passed(f"counts of a topic that is written are of now, {seen[0]} to {seen[-1]} of {sent}, and exact afterwards")


def answers(door, statement: Statement) -> None:
    """Ends the program unless the door answers exactly what is expected."""
    kinds, names = statement.kinds(), statement.names()
    answer = door.ask(statement.sql, kinds, statement.before)
    what = f"{door.name}: {statement.about}"
    check(not statement.rows or answer.names == names, f"{what}: columns have their names", (answer.names, names))
    wanted = [tuple(door.shown(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in statement.rows]
    check(len(answer.rows) == len(wanted), f"{what}: as many rows", f"{answer.rows} != {wanted}")
    for got, expected in zip(answer.rows, wanted):
        check(got == expected, f"{what}: a row is exact", f"{got} != {expected}")
        types = [(type(a), type(b)) for a, b in zip(got, expected) if type(a) is not type(b)]
        check(not types, f"{what}: values are of their types", types)


def refusals(door, has_states: bool) -> None:
    """Ends the program unless the door tells each error so that somebody can act on it."""
    for sql, word, state in REFUSED:
        told = door.refusal(sql)
        check(word in told.lower(), f"{door.name} says what is wrong with {sql}", told)
        check(not has_states or state in told, f"{door.name} tells the SQLSTATE of {sql}", told)


def types_in_arrow(adbc: Adbc) -> None:
    """The columns of a topic, in a query, in what is known of the table, and with parameters."""
    answered = adbc.table("SELECT * FROM events").schema
    check(columns(answered) == EVENTS_COLUMNS, "an answer has a topic's columns", answered)
    known = adbc.connection.adbc_get_table_schema("events", db_schema_filter="kafka/kafka_topics")
    check(columns(known) == EVENTS_COLUMNS, "the driver knows a topic's columns", known)
    listed = adbc.connection.adbc_get_objects(depth="tables").read_all().to_pylist()
    tables = {
        (catalog["catalog_name"], schema["db_schema_name"], table["table_name"])
        for catalog in listed
        for schema in catalog["catalog_db_schemas"]
        for table in schema["db_schema_tables"]
    }
    for topic in sql_topics.TOPICS:
        check(("kolumn", "kafka/kafka_topics", topic) in tables, "the driver lists the topics", sorted(tables))
    with adbc.connection.cursor() as cursor:
        cursor.adbc_prepare('SELECT "offset" FROM events WHERE key = $1 AND partition = $2')
        for key, partition, offset in ((b"alice", 0, 0), (b"bob", 0, 1), (b"dave", 1, 1)):
            cursor.execute('SELECT "offset" FROM events WHERE key = $1 AND partition = $2', (key, partition))
            check(cursor.fetchall() == [(offset,)], "a prepared statement answers its parameters", (key, partition))
    passed("ADBC knows topics, their Arrow types and prepared statements")


def columns(schema: pyarrow.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}


def parameters(extended: Extended) -> None:
    """A prepared statement sees what is there when it runs."""
    sql = 'SELECT "offset", key, timestamp FROM events WHERE key = %s AND "offset" >= %s ORDER BY partition, "offset"'
    for key, least, wanted in ((b"alice", 0, [0, 0]), (b"carol", 3, [3]), (b"carol", 4, [])):
        _, rows = extended.rows(sql, (key, least))
        check([row[0] for row in rows] == wanted, f"{extended.name}: parameters are bound", (key, least, rows))
        check(all(row[1] == key for row in rows), f"{extended.name}: rows are those asked for", rows)


def terminal(psql: Psql) -> None:
    """What people type first into psql."""
    for command, words in {
        "\\d": list(sql_topics.TOPICS),
        "\\dt": list(sql_topics.TOPICS),
        "\\d+": list(sql_topics.TOPICS),
        "\\dn": ["kafka/kafka_topics", "system"],
        "\\l": ["kolumn"],
        "\\d events": ["partition", "offset", "timestamp", "key", "value", "headers", "integer", "bigint", "bytea"],
        '\\d "Orders.v1"': ["partition", "offset", "headers"],
        "\\dv": [],
        "\\df": [],
        "\\du": [],
        "\\conninfo": ["127.0.0.1"],
        "\\timing on": [],
    }.items():
        printed = psql.printed(command)
        missing = [word for word in words if word not in printed]
        check(not missing, f"psql's {command} tells all", f"{missing} in {printed}")
    passed("psql's own commands describe the databases, schemas, topics and columns")


def run(options, folder: pathlib.Path) -> None:
    with harness.running(options.broker, folder, SETTINGS, sql=True) as broker:
        sql_topics.fill(broker)
        command, adbc, psql = Command(options.broker, broker.sql_port), Adbc(broker.sql_port), Psql(broker.postgres_port)
        extended = [Extended(broker.postgres_port, binary) for binary in (False, True)]
        doors = (command, adbc, psql, *extended)
        with sql_topics.groups(broker):
            for door in doors:
                for statement in STATEMENTS:
                    answers(door, statement)
                passed(f"{door.name} answers {len(STATEMENTS)} statements exactly")
        for door in doors:
            refusals(door, has_states=door not in (command, adbc))
        passed(f"{len(REFUSED)} errors are told through all doors")
        types_in_arrow(adbc)
        for door in extended:
            parameters(door)
        passed("psycopg binds parameters of prepared statements")
        terminal(psql)
        while_a_producer_writes(broker, command)
        adbc.close()
        for door in extended:
            door.close()
        broker.stop()


SETTINGS = f"""
[topics]
default_partitions = {PARTITIONS}
[groups]
initial_rebalance_delay_ms = 0
"""

if __name__ == "__main__":
    harness.main(run, harness.arguments(__doc__.splitlines()[0]))
