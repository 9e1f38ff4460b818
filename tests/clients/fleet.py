"""The foreign clients: where each one's program lies once it is installed, and which kinds of groups it can be a member of.

The programs speak one command line, `PROGRAM BOOTSTRAP SCENARIO key=value...`, which README.md describes.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Client:
    """One version of one client library."""

    name: str
    words: tuple[str, ...]
    strategies: frozenset[str] = frozenset()
    is_static: bool = False
    is_heavy: bool = False

    def command(self, address: str, scenario: str, **arguments: object) -> list[str]:
        """The command line of a scenario."""
        return [*self.words, address, scenario, *(f"{key}={value}" for key, value in arguments.items())]


def fleet(folder: pathlib.Path) -> list[Client]:
    """All clients, which were installed below `folder`."""
    folder = folder.resolve()
    eager, both = frozenset(["range"]), frozenset(["range", "cooperative"])
    return [
        Client("kafka-python-3.0.12", _python(folder, "kafka_python", "3.0.12"), both, is_static=True),
        Client("kafka-python-2.0.2", _python(folder, "kafka_python", "2.0.2"), eager),
        Client("confluent-kafka-2.4.0", _python(folder, "confluent", "2.4.0"), both, is_static=True),
        Client("confluent-kafka-2.8.2", _python(folder, "confluent", "2.8.2"), both, is_static=True),
        Client("confluent-kafka-2.16.1", _python(folder, "confluent", "2.16.1"), both, is_static=True),
        Client("kcat", (sys.executable, str(HERE / "kcat/program.py"))),
        Client("sarama-1.61.1", (str(folder / "sarama/sarama"),), both, is_static=True),
        Client("franz-go-1.22.3", (str(folder / "franz_go/franz_go"),), both, is_static=True),
        Client("kafkajs-2.2.4", ("node", str(folder / "kafkajs/program.mjs")), eager),
        Client("java-4.4.0", _java(folder, "4.4.0"), both, is_static=True, is_heavy=True),
        Client("java-3.9.2", _java(folder, "3.9.2"), both, is_static=True, is_heavy=True),
        Client("rskafka-0.6.0", (str(folder / "rskafka/debug/rskafka"),)),
    ]


def _python(folder: pathlib.Path, library: str, version: str) -> tuple[str, ...]:
    return str(folder / f"venv-{library}-{version}/bin/python"), str(HERE / library / "program.py")


def _java(folder: pathlib.Path, version: str) -> tuple[str, ...]:
    # A virtual machine that lives for seconds is done before a better compiler or collector pays.
    options = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
    home = folder / "java" / version
    return "java", *options, "-cp", f"{home}/classes:{home}/lib/*", "Program"
