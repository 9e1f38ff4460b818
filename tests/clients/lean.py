"""A broker that was built without SQL serves Kafka's protocol, and says that it has no SQL."""

from __future__ import annotations

import pathlib
import subprocess

import harness
import wire
from harness import check, passed

ANSWER_SECONDS_MAX = 60


def kcat(address: str, *words: str, stdin: str | None = None) -> str:
    """Runs kcat, which must succeed, and returns its output."""
    done = subprocess.run(
        ["kcat", "-q", "-b", address, *words], input=stdin, capture_output=True, text=True, timeout=60, check=False
    )
    check(done.returncode == 0, "kcat succeeds", f"{words}: {done.stderr[-2000:]}")
    return done.stdout


def run(options, folder: pathlib.Path) -> None:
    with harness.running(options.broker, folder) as broker:
        sent = [f"record {number}" for number in range(1000)]
        kcat(broker.address, "-P", "-t", "lean", stdin="\n".join(sent) + "\n")
        read = kcat(broker.address, "-C", "-t", "lean", "-o", "beginning", "-e").splitlines()
        check(read == sent, "kcat reads what kcat wrote", (len(read), read[:3]))
        connection = wire.Connection(broker.port)
        error, offset = connection.produce("lean", 0, wire.batch([b"one more"]))
        check((error, offset) == (0, len(sent)), "a raw request is answered", (error, offset))
        connection.close()
        passed(f"a broker without SQL takes and gives {len(sent)} records")
        broker.stop()
    asked = subprocess.run(
        [str(options.broker), "sql", "SELECT 1"], capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX, check=False
    )
    check(asked.returncode != 0 and "no SQL" in asked.stderr, "the command says that there is no SQL", asked)
    check(not asked.stdout, "it prints no answer", asked.stdout)
    passed(f"`broker sql` ends with exit code {asked.returncode}: {asked.stderr.strip()}")


if __name__ == "__main__":
    harness.main(run, harness.arguments(__doc__))
