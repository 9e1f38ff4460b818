"""What the client programs in Python share: their command line, and the lines in which they tell what they read.

The command line is `PROGRAM BOOTSTRAP SCENARIO key=value...`; README.md describes the scenarios.
"""

from __future__ import annotations

import hashlib
import json
import signal
import sys
import threading
from typing import Callable, Iterable

Headers = Iterable[tuple[str, bytes | None]]

SHOWN_BYTES_MAX = 256
POLL_SECONDS = 0.2
# Rebalances that a test starts every second need members that notice them at once.
SESSION_TIMEOUT_MS = 6000
HEARTBEAT_INTERVAL_MS = 500


class Arguments:
    """The `key=value` words of a command line."""

    def __init__(self, bootstrap: str, words: list[str]) -> None:
        self.bootstrap = bootstrap
        self._values = dict(word.split("=", 1) for word in words)

    def text(self, key: str, default: str | None = None) -> str:
        """A value that must be there unless it has a default."""
        if key in self._values:
            return self._values[key]
        if default is None:
            sys.exit(f"`{key}=` is missing")
        return default

    def number(self, key: str, default: int | None = None) -> int:
        """A value that is a whole number."""
        return int(self.text(key, None if default is None else str(default)))


def main(scenarios: dict[str, Callable[[Arguments], None]]) -> None:
    """Runs the scenario that the command line names."""
    _, bootstrap, name, *words = sys.argv
    if name in scenarios:
        scenarios[name](Arguments(bootstrap, words))
    else:
        cannot(f"the scenario {name} does not exist here")


def emit(line: dict) -> None:
    """One line of output, which is out when this returns."""
    print(json.dumps(line), flush=True)


def cannot(reason: str) -> None:
    """The one line of a program that its library leaves unable to do what was asked."""
    emit({"cannot": reason})


def emit_record(
    partition: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers
) -> None:
    """One record as somebody read it."""
    emit(shown(partition, offset, timestamp, key, value, headers))


def shown(
    partition: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers
) -> dict:
    """The line for one record; a long value is shown by its SHA-256."""
    line = {"p": partition, "o": offset, "t": timestamp, "k": _hex(key)}
    if value is not None and len(value) > SHOWN_BYTES_MAX:
        line["vs"] = hashlib.sha256(value).hexdigest()
    else:
        line["v"] = _hex(value)
    line["h"] = [[name, _hex(content)] for name, content in headers]
    return line


def until_sigterm() -> threading.Event:
    """An event that SIGTERM sets, for members that then leave their group."""
    event = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: event.set())
    return event


def _hex(content: bytes | None) -> str | None:
    return None if content is None else content.hex()
