"""The broker as a process, and the outcome of checks as lines that the test command counts."""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Callable, Iterator

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 30.0


class Failed(Exception):
    """Something that must hold did not."""


def check(holds: bool, sentence: str, detail: object = "") -> None:
    """Ends the program unless `holds`; `sentence` says what must hold."""
    if not holds:
        raise Failed(f"{sentence}: {detail}" if detail != "" else sentence)


def passed(sentence: str) -> None:
    """One line for one thing that was seen to hold."""
    print(f"ok: {sentence}", flush=True)


def wait_until(holds: Callable[[], bool], sentence: str, seconds: float = 60.0) -> None:
    """Ends the program unless something holds in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < deadline, sentence, f"not within {seconds} s")
        time.sleep(0.01)


def arguments(description: str, given: bool = False) -> argparse.ArgumentParser:
    """The options that all programs share; with `given` a program can also be run on a broker that somebody else started."""
    parser = argparse.ArgumentParser(description=description)
    brokers = parser.add_mutually_exclusive_group(required=True)
    brokers.add_argument("--broker", type=pathlib.Path, help="the broker's program")
    if given:
        brokers.add_argument("--port", type=int, help="the port of a broker that runs on this machine")
    parser.add_argument("--scratch", type=pathlib.Path, required=True, help="where folders for data are made")
    return parser


def main(run, parser: argparse.ArgumentParser) -> None:
    """Runs a program in a scratch folder that is removed afterwards, unless something failed."""
    options = parser.parse_args()
    if options.broker is not None:
        options.broker = options.broker.resolve()
    options.scratch.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=pathlib.Path(sys.argv[0]).stem + "-", dir=options.scratch.resolve()))
    try:
        run(options, folder)
    except Failed as failure:
        print(f"kept: {folder}\nfailed: {failure}", flush=True)
        sys.exit(1)
    shutil.rmtree(folder)


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def files_allowed(count: int) -> None:
    """Raises this process's limit of open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = count if hard == resource.RLIM_INFINITY else max(hard, count)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


class Broker:
    """A broker process on one data folder; it may be started, stopped and killed many times. It answers SQL with `sql`."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path, settings: str = "", sql: bool = False) -> None:
        self.program = program
        self.folder = folder
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.sql_port = free_port() if sql else None
        self.postgres_port = free_port() if sql else None
        self.settings = settings
        self.process: subprocess.Popen | None = None
        self.log = open(folder / "broker.log", "ab")

    def command(self) -> list[str]:
        """The command line; what flags cannot say is in a settings file."""
        words = [str(self.program), "--listen", self.address, "--data-dir", str(self.folder / "data")]
        if self.sql_port is None:
            words += ["--sql", "none"]
        else:
            words += ["--sql", f"127.0.0.1:{self.sql_port}", "--postgres", f"127.0.0.1:{self.postgres_port}"]
        if self.settings:
            file = self.folder / "broker.toml"
            file.write_text(self.settings)
            words += ["--config", str(file)]
        return words

    def spawn(self, prefix: list[str] | None = None) -> None:
        """Starts the process and does not wait for it."""
        self.process = subprocess.Popen(
            (prefix or []) + self.command(), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )

    def start(self, prefix: list[str] | None = None) -> float:
        """Starts the process and waits until it accepts connections; the seconds that took."""
        began = time.monotonic()
        self.spawn(prefix)
        ports = [port for port in (self.port, self.sql_port, self.postgres_port) if port is not None]
        while time.monotonic() - began < START_SECONDS_MAX:
            check(self.process.poll() is None, "the broker starts", self.tail())
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", ports[0]), timeout=1).close()
                ports.pop(0)
                if not ports:
                    return time.monotonic() - began
            time.sleep(0.001)
        raise Failed(f"the broker listens within {START_SECONDS_MAX} s: {self.tail()}")

    def kill(self) -> None:
        """Signal 9, and waits until the process is gone."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Asks the process to stop; it must do so by itself, with exit code 0."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"the broker stops within {STOP_SECONDS_MAX} s of SIGTERM: {self.tail()}") from None
        check(code == 0, "the broker stops with exit code 0", f"{code}: {self.tail()}")

    def tail(self) -> str:
        """The last lines that the broker printed."""
        self.log.flush()
        return (self.folder / "broker.log").read_text(errors="replace")[-3000:]

    def resident_bytes(self) -> int:
        """The memory of the process that is resident now."""
        return self._status("VmRSS")

    def resident_bytes_max(self) -> int:
        """The most memory that was ever resident."""
        return self._status("VmHWM")

    def sockets(self) -> int:
        """How many sockets the process holds."""
        folder = f"/proc/{self.process.pid}/fd"
        count = 0
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                count += os.readlink(f"{folder}/{name}").startswith("socket:")
        return count

    def _status(self, key: str) -> int:
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith(key + ":"):
                    return int(line.split()[1]) * 1024
        raise Failed(f"/proc has {key} of the broker")


@contextlib.contextmanager
def running(program: pathlib.Path, folder: pathlib.Path, settings: str = "", sql: bool = False) -> Iterator[Broker]:
    """A broker that runs inside the `with` block and is killed at its end if it was not stopped."""
    broker = Broker(program, folder, settings, sql)
    broker.start()
    try:
        yield broker
    finally:
        if broker.process.poll() is None:
            broker.kill()
        broker.log.close()


class Given:
    """A broker that somebody else started, on this machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.address = f"127.0.0.1:{port}"


@contextlib.contextmanager
def running_or_given(options: argparse.Namespace, folder: pathlib.Path, settings: str = "") -> Iterator[Broker | Given]:
    """The broker that the command line names: one of our own, as in [`running`], or one that runs already."""
    if options.port is not None:
        yield Given(options.port)
        return
    with running(options.broker, folder, settings) as broker:
        yield broker
