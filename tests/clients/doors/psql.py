"""psql, PostgreSQL's own terminal: texts in the simple protocol."""

from __future__ import annotations

import csv
import datetime
import io
import json
import subprocess

from doors import Answer, nested
from harness import check

ANSWER_SECONDS_MAX = 60
# Nothing that a value could be.
NULL = "(null)"


class Psql:
    """Starts the program for every statement."""

    name = "psql"

    def __init__(self, port: int) -> None:
        self.port = port

    def run(self, *commands: str) -> subprocess.CompletedProcess:
        """Runs commands in one session; the first that fails ends it."""
        words = ["psql", "--no-psqlrc", "--quiet", "--csv", f"--pset=null={NULL}", "--set=ON_ERROR_STOP=1", "--set=VERBOSITY=verbose"]
        words += ["--host=127.0.0.1", f"--port={self.port}", "--username=reader", "--dbname=kolumn", "--no-password"]
        words += [f"--command={command}" for command in commands]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX, check=False)

    def printed(self, *commands: str) -> str:
        """What psql prints for commands that must all succeed without a word of complaint."""
        done = self.run(*commands)
        check(done.returncode == 0 and not done.stderr, f"psql runs {commands}", f"{done.returncode} {done.stderr[-2000:]}")
        return done.stdout

    def ask(self, sql: str, kinds: list[str], before: tuple[str, ...] = ()) -> Answer:
        """The rows that psql prints."""
        names, *rows = csv.reader(io.StringIO(self.printed(*before, sql)))
        return Answer(names, [tuple(self._read(cell, kind) for cell, kind in zip(row, kinds, strict=True)) for row in rows])

    def refusal(self, sql: str) -> str:
        """What psql prints when it fails, which begins with the SQLSTATE."""
        done = self.run(sql)
        check(done.returncode != 0, f"psql refuses {sql}", done.stdout[-2000:])
        return done.stderr

    def _read(self, cell: str, kind: str) -> object:
        """Numbers and JSON may be written in more than one way; everything else is compared as it is printed."""
        if cell == NULL:
            return None
        readers = {"int": int, "float": float, "nested": json.loads}
        return readers.get(kind, str)(cell)

    def shown(self, value: object, kind: str) -> object:
        """The texts of PostgreSQL's types."""
        if isinstance(value, bool):
            return "t" if value else "f"
        if kind == "nested":
            return nested(value)
        if isinstance(value, bytes):
            return "\\x" + value.hex()
        if isinstance(value, datetime.datetime):
            return _time(value)
        if isinstance(value, datetime.date):
            return value.isoformat()
        return value


def _time(value: datetime.datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    text = text.rstrip("0") if "." in text else text
    if value.tzinfo is None:
        return text
    hours, minutes = divmod(int(value.utcoffset().total_seconds()) // 60, 60)
    return f"{text}{hours:+03d}" + (f":{minutes:02d}" if minutes else "")
