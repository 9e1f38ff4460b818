"""psycopg: PostgreSQL's extended protocol, with results as texts or binary."""

from __future__ import annotations

import decimal

import psycopg

from doors import Answer, nested
from harness import Failed


class Extended:
    """One connection for all statements. psycopg prepares a statement, binds it and runs it."""

    def __init__(self, port: int, binary: bool) -> None:
        self.name = f"psycopg, {'binary' if binary else 'text'}"
        self.connection = psycopg.connect(
            f"host=127.0.0.1 port={port} user=reader dbname=vast sslmode=disable", autocommit=True
        )
        self.binary = binary

    def rows(self, sql: str, parameters: tuple | None = None) -> tuple[list[str], list[tuple]]:
        """The names and the rows; none for a statement that has no answer."""
        with self.connection.cursor(binary=self.binary) as cursor:
            cursor.execute(sql, parameters, prepare=True)
            if cursor.description is None:
                return [], []
            return [column.name for column in cursor.description], cursor.fetchall()

    def ask(self, sql: str, kinds: list[str], before: tuple[str, ...] = ()) -> Answer:
        """What goes before is asked in the same session."""
        for statement in before:
            self.rows(statement)
        names, rows = self.rows(sql)
        return Answer(names, [tuple(_read(cell, kind) for cell, kind in zip(row, kinds, strict=True)) for row in rows])

    def refusal(self, sql: str) -> str:
        """The SQLSTATE and what psycopg raises."""
        try:
            self.rows(sql)
        except psycopg.Error as error:
            return f"{error.sqlstate}: {error}"
        raise Failed(f"psycopg raises an error for {sql}")

    def shown(self, value: object, kind: str) -> object:
        """psycopg makes of PostgreSQL's types what is expected, but of JSON."""
        return nested(value) if kind == "nested" else value

    def close(self) -> None:
        self.connection.close()


def _read(cell: object, kind: str) -> object:
    """What has no sign and 64 bits fits only into PostgreSQL's numeric type."""
    return int(cell) if kind == "int" and isinstance(cell, decimal.Decimal) else cell
