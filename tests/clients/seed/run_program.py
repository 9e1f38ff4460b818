"""Runs one of the five programs in this process, with the values that it leaves open.

The programs in `kafka_python/` are kept as they were published. Their lines are indented with no-break spaces, which Python refuses,
and two of them use a `topic_name` that they do not define; so they are adapted here and not in their files.
"""

from __future__ import annotations

import pathlib
import sys

OPEN_ADDRESS, OPEN_TOPIC = '"<comma-separated list of IPs>"', "topic_name = #\n"


def filled(text: str, address: str, topic: str) -> str:
    """The program with ordinary spaces, the bootstrap server and the topic's name."""
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    return text.replace(OPEN_ADDRESS, repr(address)).replace(OPEN_TOPIC, f"topic_name = {topic!r}\n")


if __name__ == "__main__":
    _, file, address, topic = sys.argv
    code = compile(filled(pathlib.Path(file).read_text(encoding="utf-8"), address, topic), file, "exec")
    exec(code, {"__name__": "__main__", "topic_name": topic})
