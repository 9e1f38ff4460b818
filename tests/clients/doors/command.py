"""`broker sql`, the program's own client of Arrow Flight SQL."""

from __future__ import annotations

import datetime
import json
import pathlib
import subprocess

from doors import Answer, nested
from harness import check

ANSWER_SECONDS_MAX = 60


class Command:
    """Starts the program for every statement."""

    name = "broker sql"

    def __init__(self, program: pathlib.Path, port: int) -> None:
        self.program = program
        self.address = f"127.0.0.1:{port}"

    def run(self, sql: str, form: str) -> subprocess.CompletedProcess:
        """Runs the command in one of its formats."""
        words = [str(self.program), "sql", sql, "--format", form, "--address", self.address]
        return subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX, check=False
        )

    def printed(self, sql: str, form: str) -> str:
        """What the command prints for a statement that it must answer."""
        done = self.run(sql, form)
        check(done.returncode == 0, f"`broker sql` answers {sql}", done.stderr[-2000:])
        return done.stdout

    def ask(self, sql: str, kinds: list[str], before: tuple[str, ...] = ()) -> Answer:
        """The names are in every row, so that an answer without rows has none."""
        lines = self.printed("; ".join((*before, sql)), "json").splitlines()
        rows = [json.loads(line) for line in lines]
        for row in rows:
            check(len(row) == len(kinds), "a row has all columns, of different names", row)
        return Answer(list(rows[0]) if rows else [], [tuple(row.values()) for row in rows])

    def refusal(self, sql: str) -> str:
        """What the command says when it fails."""
        done = self.run(sql, "json")
        check(done.returncode != 0, f"`broker sql` refuses {sql}", done.stdout[-2000:])
        return done.stderr

    def shown(self, value: object, kind: str) -> object:
        """JSON has numbers, texts and truth; bytes are text where they can be."""
        if isinstance(value, datetime.datetime):
            # The fraction has as many digits as the column keeps.
            return value.isoformat(timespec="milliseconds" if value.microsecond else "seconds")
        if isinstance(value, datetime.date):
            return value.isoformat()
        return nested(value)
