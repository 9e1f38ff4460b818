"""ADBC, with the driver of Arrow Flight SQL."""

from __future__ import annotations

import adbc_driver_flightsql.dbapi
import adbc_driver_manager
import pyarrow

from doors import Answer
from harness import Failed


class Adbc:
    """One connection for all statements; values are Arrow's as Python sees them."""

    name = "ADBC"

    def __init__(self, port: int) -> None:
        self.connection = adbc_driver_flightsql.dbapi.connect(f"grpc://127.0.0.1:{port}", autocommit=True)

    def table(self, sql: str, parameters: tuple | None = None) -> pyarrow.Table:
        """The answer as columns."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetch_arrow_table()

    def ask(self, sql: str, kinds: list[str], before: tuple[str, ...] = ()) -> Answer:
        """What goes before is asked in the same session."""
        for statement in before:
            self.table(statement)
        table = self.table(sql)
        # A dictionary would lose columns of the same name.
        columns = [column.to_pylist() for column in table.columns]
        return Answer(table.column_names, list(zip(*columns)) if table.num_rows else [])

    def refusal(self, sql: str) -> str:
        """What the driver raises."""
        try:
            self.table(sql)
        except adbc_driver_manager.Error as error:
            return str(error)
        raise Failed(f"ADBC raises an error for {sql}")

    def shown(self, value: object, kind: str) -> object:
        """What is expected is written as ADBC has it."""
        return value

    def close(self) -> None:
        self.connection.close()
