"""One side of the SQL benchmark that speaks Python: a rival on Parquet files, or the broker through ADBC.

A line of JSON in, a line of JSON out:
    {"sql": "SELECT 1", "times": 3}  ->  {"ms": [0.2, 0.1, 0.1], "rows": [[1]]}
The first line out names the versions. The clock covers planning and running up to the last Arrow batch; turning the rows into
JSON comes after it.
"""

import argparse
import glob
import json
import os
import sys
import time
from decimal import Decimal

FILE_ROWS_OF_A_GROUP = 131_072


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    parquet = commands.add_parser("parquet", help="turn files of tab-separated rows into Parquet, zstd")
    parquet.add_argument("folder")
    for name in ("datafusion", "duckdb"):
        side = commands.add_parser(name)
        side.add_argument("folder")
        side.add_argument("--threads", type=int, default=2)
    adbc = commands.add_parser("adbc")
    adbc.add_argument("uri")
    arguments = parser.parse_args()
    if arguments.command == "parquet":
        write_parquet(arguments.folder)
        return
    run, version = SIDES[arguments.command](arguments)
    say({"version": version})
    for line in sys.stdin:
        say(answer(run, json.loads(line)))


def write_parquet(folder):
    """Each `N.tsv` becomes `N.parquet` with page index, so that the rivals can leave out what they need not read."""
    import pyarrow as pa
    from pyarrow import csv
    from pyarrow import parquet as pq

    types = {
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.int64(),
        "key": pa.string(),
        "value": pa.string(),
    }
    read = csv.ReadOptions(column_names=list(types), block_size=16 << 20)
    parse = csv.ParseOptions(delimiter="\t", quote_char=False)
    convert = csv.ConvertOptions(column_types=types)
    for path in sorted(glob.glob(os.path.join(folder, "*.tsv"))):
        table = csv.read_csv(path, read, parse, convert)
        stamps = table["timestamp"].cast(pa.timestamp("ms"))
        table = table.set_column(2, "timestamp", stamps)
        pq.write_table(
            table,
            path[: -len("tsv")] + "parquet",
            compression="zstd",
            row_group_size=FILE_ROWS_OF_A_GROUP,
            write_page_index=True,
        )
        os.remove(path)


def datafusion(arguments):
    import datafusion as df

    context = df.SessionContext(df.SessionConfig().with_target_partitions(arguments.threads))
    context.register_parquet("events", arguments.folder)
    return lambda sql: context.sql(sql).collect(), f"DataFusion {df.__version__} (Python)"


def duckdb(arguments):
    import duckdb as duck

    connection = duck.connect(config={"threads": arguments.threads})
    files = os.path.join(arguments.folder, "*.parquet").replace("'", "''")
    connection.execute(f"CREATE VIEW events AS SELECT * FROM read_parquet('{files}')")
    return lambda sql: connection.sql(sql).to_arrow_table().to_batches(), f"DuckDB {duck.__version__} (Python)"


def adbc(arguments):
    import adbc_driver_flightsql
    from adbc_driver_flightsql import dbapi

    cursor = dbapi.connect(arguments.uri, autocommit=True).cursor()

    def run(sql):
        cursor.execute(sql)
        return cursor.fetch_arrow_table().to_batches()

    return run, f"adbc-driver-flightsql {adbc_driver_flightsql.__version__}"


SIDES = {"datafusion": datafusion, "duckdb": duckdb, "adbc": adbc}


def answer(run, request):
    times = []
    try:
        for _ in range(request["times"]):
            begun = time.perf_counter()
            batches = run(request["sql"])
            times.append((time.perf_counter() - begun) * 1e3)
        rows = [[plain(value) for value in row.values()] for batch in batches for row in batch.to_pylist()]
    except Exception as error:  # whatever a library raises is told to the driver, which stops
        return {"error": f"{type(error).__name__}: {error}"}
    return {"ms": times, "rows": rows}


def plain(value):
    """Sums are decimals with one rival, texts are bytes with the broker: the answers are compared as JSON."""
    if isinstance(value, Decimal):
        return int(value)
    return value.decode() if isinstance(value, bytes) else value


def say(message):
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
