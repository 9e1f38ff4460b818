"""Statements and exactly what they answer, whatever they are asked through."""

from __future__ import annotations

import dataclasses
import datetime

from sql_topics import DAY_MS, EVENTS, ORDERS, USERS, when

BERLIN = datetime.timezone(datetime.timedelta(hours=1))


@dataclasses.dataclass(frozen=True)
class Statement:
    """`columns` are names and kinds, `before` what is asked before in the same session."""

    about: str
    sql: str
    columns: str
    rows: list[tuple]
    before: tuple[str, ...] = ()

    def names(self) -> list[str]:
        return [column.split()[0] for column in self.columns.split(",")]

    def kinds(self) -> list[str]:
        return [column.split()[1] for column in self.columns.split(",")]


ALL_COLUMNS = "partition int, offset int, timestamp time, key bytes, value bytes, headers nested"
ROWS = [row.columns(partition, offset) for partition, rows in enumerate(EVENTS) for offset, row in enumerate(rows)]

STATEMENTS = [
    Statement(
        "every column and its type",
        'SELECT * FROM events ORDER BY partition, "offset"',
        ALL_COLUMNS,
        ROWS,
    ),
    Statement(
        "count, min and max",
        'SELECT count(*) AS n, min("offset") AS first, max("offset") AS last,'
        " min(timestamp) AS earliest, max(timestamp) AS latest FROM events",
        "n int, first int, last int, earliest time, latest time",
        [(9, 0, 5, when(0), when(DAY_MS + 1))],
    ),
    Statement(
        "nulls",
        'SELECT partition, "offset", key IS NULL AS k, value IS NULL AS v, timestamp IS NULL AS t FROM events'
        ' WHERE key IS NULL OR value IS NULL OR timestamp IS NULL ORDER BY partition, "offset"',
        "partition int, offset int, k bool, v bool, t bool",
        [(0, 2, True, False, False), (0, 3, False, True, False), (1, 2, True, False, True)],
    ),
    Statement(
        "counts of columns leave nulls out",
        "SELECT count(*) AS n, count(key) AS k, count(value) AS v, count(timestamp) AS t, count(DISTINCT key) AS d FROM events",
        "n int, k int, v int, t int, d int",
        [(9, 7, 8, 8, 6)],
    ),
    Statement(
        "keys and values are compared with texts",
        "SELECT partition, \"offset\" FROM events WHERE key = 'alice' OR key IN ('bob', 'nobody') OR value = 'not JSON'"
        ' ORDER BY partition, "offset"',
        "partition int, offset int",
        [(0, 0), (0, 1), (0, 2), (1, 0)],
    ),
    Statement(
        "LIKE, with an escape, and without regard to case",
        "SELECT key, key LIKE 'al\\%%' AS percent, value ILIKE '%USER\": \"AL%' AS al FROM events"
        " WHERE key LIKE 'al%' AND key NOT LIKE '%z' ORDER BY key, partition",
        "key bytes, percent bool, al bool",
        [(b"al%ce", True, True), (b"alice", False, True), (b"alice", False, True)],
    ),
    Statement(
        "the last rows of a partition",
        'SELECT "offset", value FROM events WHERE partition = 1 ORDER BY "offset" DESC LIMIT 2',
        "offset int, value bytes",
        [(2, EVENTS[1][2].value), (1, EVENTS[1][1].value)],
    ),
    Statement(
        "a range of offsets and one of time",
        'SELECT partition, "offset" FROM events WHERE "offset" BETWEEN 1 AND 4'
        " AND timestamp >= TIMESTAMP '2023-11-14 22:13:21' AND timestamp < TIMESTAMP '2023-11-14 22:13:23.001'"
        ' ORDER BY partition, "offset"',
        "partition int, offset int",
        [(0, 1), (0, 2), (1, 1)],
    ),
    Statement(
        "JSON in values: text, integer, float and truth",
        "SELECT json_get_str(value, 'user') AS u, json_get_int(value, 'amount') AS i, json_get_float(value, 'ratio') AS f,"
        " json_get_bool(value, 'ok') AS b FROM events ORDER BY partition, \"offset\"",
        "u text, i int, f float, b bool",
        [
            ("alice", 5, 0.5, True),
            ("bob", 7, 1.25, False),
            (None, None, None, None),
            (None, None, None, None),
            ("al%ce", -3, None, None),
            (None, None, None, None),
            ("alice", 11, 2.0, True),
            ('dave "d" ü', 1 << 40, None, None),
            (None, None, None, None),
        ],
    ),
    Statement(
        "JSON within JSON, and JSON of any type",
        "SELECT json_get_int(value, 'nested', 'x') AS x, json_get_str(value, 'tags', 1) AS tag, json_get(value, 'amount') AS j"
        ' FROM events WHERE partition = 0 AND "offset" < 2 ORDER BY "offset"',
        "x int, tag text, j text",
        [(1, "b", "5"), (None, None, "7")],
    ),
    Statement(
        "grouping by what is in JSON",
        "SELECT json_get_str(value, 'user') AS u, count(*) AS n, sum(json_get_int(value, 'amount')) AS s,"
        " avg(json_get_float(value, 'ratio')) AS a FROM events GROUP BY u HAVING count(*) > 1 ORDER BY u",
        "u text, n int, s int, a float",
        [("alice", 2, 16, 1.25), (None, 4, None, None)],
    ),
    Statement(
        "headers: doubled names, nulls and bytes",
        'SELECT "offset", array_length(headers) AS n, headers[1][\'key\'] AS name, headers[1][\'value\'] AS first,'
        " headers[2]['value'] AS second FROM events WHERE partition = 0 AND \"offset\" IN (1, 2, 4) ORDER BY \"offset\"",
        "offset int, n int, name text, first bytes, second bytes",
        [(1, 2, "h1", b"a", b"b"), (2, 2, "empty", None, b"\x00\xff\x80"), (4, 1, "h", b"", None)],
    ),
    Statement(
        "a row for each header",
        "SELECT h['key'] AS name, count(*) AS n FROM (SELECT unnest(headers) AS h FROM events) GROUP BY name ORDER BY name",
        "name text, n int",
        [("bin", 1), ("empty", 1), ("h", 1), ("h1", 2)],
    ),
    Statement(
        "days, and a time in another zone",
        "SELECT date_trunc('day', timestamp) AS day, count(*) AS n,"
        " CAST(min(timestamp) AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin' AS text) AS berlin"
        " FROM events WHERE timestamp IS NOT NULL GROUP BY day ORDER BY day",
        "day time, n int, berlin text",
        [
            (datetime.datetime(2023, 11, 14), 6, "2023-11-14T23:13:20+01:00"),
            (datetime.datetime(2023, 11, 15), 2, "2023-11-15T23:13:20+01:00"),
        ],
    ),
    Statement(
        "the session's time zone",
        "SELECT \"offset\", TIMESTAMPTZ '2023-11-14 23:13:21' AS here FROM events"
        " WHERE partition = 0 AND timestamp = TIMESTAMPTZ '2023-11-14 22:13:21+00:00'",
        "offset int, here zoned",
        [(1, datetime.datetime(2023, 11, 14, 23, 13, 21, tzinfo=BERLIN))],
        before=("SET TIME ZONE 'Europe/Berlin'",),
    ),
    Statement(
        "quoted names, in every catalog",
        'SELECT (SELECT count(*) FROM "Orders.v1") AS a, (SELECT count(*) FROM vast."kafka/kafka_topics"."Orders.v1") AS b,'
        ' (SELECT max(value) FROM kolumn."kafka/kafka_topics"."Orders.v1") AS "C.d"',
        'a int, b int, C.d bytes',
        [(2, 2, ORDERS[1][0].value)],
    ),
    Statement(
        "a join of two topics",
        "SELECT e.partition, e.\"offset\", json_get_str(u.value, 'name') AS name FROM events e JOIN users u ON e.key = u.key"
        ' ORDER BY e.partition, e."offset"',
        "partition int, offset int, name text",
        [(0, 0, "Alice A."), (0, 1, "Bob B."), (1, 0, "Alice A.")],
    ),
    Statement(
        "a join that keeps those without a match",
        "SELECT u.key, count(e.\"offset\") AS n FROM users u LEFT JOIN events e ON e.key = u.key GROUP BY u.key ORDER BY u.key",
        "key bytes, n int",
        [(USERS[0][0].key, 2), (USERS[0][1].key, 1), (USERS[0][2].key, 0)],
    ),
    Statement(
        "windows over the offset",
        'SELECT partition, "offset", lag("offset") OVER (PARTITION BY partition ORDER BY "offset") AS before,'
        ' sum("offset") OVER (PARTITION BY partition ORDER BY "offset") AS running,'
        ' row_number() OVER (ORDER BY partition DESC, "offset") AS nth'
        ' FROM events WHERE "offset" < 3 ORDER BY partition, "offset"',
        "partition int, offset int, before int, running int, nth int",
        [(0, 0, None, 0, 4), (0, 1, 0, 1, 5), (0, 2, 1, 3, 6), (1, 0, None, 0, 1), (1, 1, 0, 1, 2), (1, 2, 1, 3, 3)],
    ),
    Statement(
        "CASE, COALESCE and functions of texts",
        "SELECT CASE WHEN value IS NULL THEN 'gone' ELSE 'there' END AS there,"
        " coalesce(json_get_str(value, 'user'), 'nobody') AS u, upper(CAST(key AS text)) AS k, octet_length(value) AS len"
        ' FROM events WHERE partition = 0 AND "offset" < 4 ORDER BY "offset"',
        "there text, u text, k text, len int",
        [
            ("there", "alice", "ALICE", len(EVENTS[0][0].value)),
            ("there", "bob", "BOB", len(EVENTS[0][1].value)),
            ("there", "nobody", None, 8),
            ("gone", "nobody", "CAROL", None),
        ],
    ),
    Statement(
        "a named query, a union and a limit",
        'WITH both_topics AS (SELECT key FROM events UNION ALL SELECT key FROM "Orders.v1")'
        " SELECT DISTINCT key FROM both_topics WHERE key IS NOT NULL ORDER BY key LIMIT 3 OFFSET 1",
        "key bytes",
        [(b"alice",), (b"bob",), (b"carol",)],
    ),
    Statement(
        "an offset without its quotes, although the word is SQL's",
        "SELECT offset, key FROM events WHERE offset > 3 ORDER BY offset DESC LIMIT 1 OFFSET 1",
        "offset int, key bytes",
        [(4, EVENTS[0][4].key)],
    ),
    Statement(
        "no rows",
        "SELECT \"offset\", value FROM events WHERE key = 'nobody'",
        "offset int, value bytes",
        [],
    ),
    Statement(
        "values that are in no topic",
        "SELECT 1 AS i, -2.5 AS f, true AS b, 'it''s' AS t, CAST(NULL AS bigint) AS n, DATE '2024-02-29' AS d",
        "i int, f float, b bool, t text, n int, d date",
        [(1, -2.5, True, "it's", None, datetime.date(2024, 2, 29))],
    ),
    Statement(
        "the topics",
        "SELECT bucket, topic, partitions, rows FROM system.topics ORDER BY topic",
        "bucket text, topic text, partitions int, rows int",
        [("kafka", "Orders.v1", 2, 2), ("kafka", "events", 2, 9), ("kafka", "users", 1, 3)],
    ),
    Statement(
        "their partitions",
        "SELECT topic, partition, log_start_offset, high_watermark, rows FROM system.partitions"
        " WHERE topic <> 'users' ORDER BY topic, partition",
        "topic text, partition int, log_start_offset int, high_watermark int, rows int",
        [("Orders.v1", 0, 0, 1, 1), ("Orders.v1", 1, 0, 1, 1), ("events", 0, 0, 6, 6), ("events", 1, 0, 3, 3)],
    ),
    Statement(
        "the groups, their members and how far they are behind",
        "SELECT group_id, state, members, topic, partition, committed_offset, committed_metadata, high_watermark, lag, client_id"
        " FROM system.groups ORDER BY group_id, topic, partition",
        "group_id text, state text, members int, topic text, partition int, committed_offset int, committed_metadata text,"
        " high_watermark int, lag int, client_id text",
        [
            ("idle", "Empty", 0, "users", 0, 1, "one", 3, 2, None),
            ("readers", "Stable", 1, "events", 0, 2, "", 6, 4, "reader"),
            ("readers", "Stable", 1, "events", 1, None, None, 3, None, "reader"),
        ],
    ),
    Statement(
        "SHOW TABLES",
        "SHOW TABLES",
        "Table text",
        [("Orders.v1",), ("events",), ("users",)],
    ),
    Statement(
        "SHOW TABLES LIKE",
        "SHOW TABLES IN vast.\"kafka/kafka_topics\" LIKE '%e%s'",
        "Table text",
        [("events",), ("users",)],
    ),
    Statement(
        "SHOW SCHEMAS",
        "SHOW SCHEMAS IN vast",
        "Schema text",
        [("information_schema",), ("kafka/kafka_topics",), ("system",)],
    ),
    Statement(
        "the columns, as the information schema has them",
        "SELECT column_name, ordinal_position, is_nullable FROM information_schema.columns"
        " WHERE table_catalog = 'kolumn' AND table_name = 'users' ORDER BY ordinal_position",
        "column_name text, ordinal_position int, is_nullable text",
        [
            ("partition", 0, "NO"),
            ("offset", 1, "NO"),
            ("timestamp", 2, "YES"),
            ("key", 3, "YES"),
            ("value", 4, "YES"),
            ("headers", 5, "NO"),
        ],
    ),
]
