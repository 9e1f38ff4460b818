"""Groups of 1, 2 and 20 members of many clients, in which every second somebody joins, leaves or is killed.

A producer writes all the time. Nothing may be lost, no partition may have two owners in one generation, and what is committed never goes
back: not in the answers to the members, and not as somebody sees it who only looks.
"""

from __future__ import annotations

import json
import pathlib
import random
import signal
import subprocess
import threading
import time

import harness
import rebalance_history
import wire
from fleet import Client, fleet
from harness import check, passed

PARTITIONS = 24
SIZES = (1, 2, 20)
STRATEGIES = ("range", "cooperative")
RECORDS_PER_SECOND = 200
# Somebody who was killed is missed before the next one is, so that groups come to rest between.
SESSION_TIMEOUT_MS = 3_000
KILL_EVERY = 6
SECONDS_PER_GENERATION_MAX = 10
DRAIN_SECONDS_MAX = 240.0
JVMS_MAX = 2


class Member:
    """A consumer in a process of its own, and the thread that reads what it tells."""

    def __init__(self, client: Client, command: list[str], name: str, folder: pathlib.Path, history) -> None:
        self.client = client
        self.name = name
        self.history = history
        self.generation: int | None = None
        self.delivered = 0
        self.log = folder / f"{name}.log"
        self.errors = open(self.log, "wb")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            # A killed member's last line may be cut.
            if line.startswith("{") and line.endswith("}\n"):
                self._tell(json.loads(line))

    def _tell(self, told: dict) -> None:
        if "gen" in told:
            # A client that is about to join again knows none.
            self.generation = told["gen"] if (told["gen"] or -1) >= 0 else None
        if "r" in told:
            partition, offset, value = told["r"]
            self.delivered += 1
            self.history.deliver(self.name, self.generation, partition, offset, value)
        for partition, offset in told.get("commit", {}).items():
            self.history.commit(self.name, self.generation, int(partition), offset)

    def leave(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.process.kill()

    def is_running(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """Leaves; a member that has not ended after a while is killed, which is no fault: others did not wait for it."""
        if self.is_running():
            self.leave()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(10)
        self.errors.close()


class Producer:
    """Writes to all partitions in turn until it is stopped; knows which value is at which offset."""

    def __init__(self, port: int, topic: str) -> None:
        self.connection = wire.Connection(port)
        self.topic = topic
        self.produced: dict[tuple[int, int], str] = {}
        self.stopped = threading.Event()
        self.failure: Exception | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            number = 0
            while not self.stopped.wait(PARTITIONS / 4 / RECORDS_PER_SECOND):
                for _ in range(PARTITIONS // 4):
                    value, partition = f"value-{number}", number % PARTITIONS
                    number += 1
                    error, offset = self.connection.produce(self.topic, partition, wire.batch([value.encode()]))
                    check(error == 0, f"{self.topic}: a record is taken", error)
                    self.produced[partition, offset] = value
        except Exception as failure:  # noqa: BLE001 - told by `stop`
            self.failure = failure

    def stop(self) -> dict[tuple[int, int], str]:
        self.stopped.set()
        self.thread.join()
        check(self.failure is None, f"{self.topic}: the producer goes on", self.failure)
        self.connection.close()
        return self.produced


class Onlooker:
    """Asks for the group's committed offsets all the time: none may ever be lower than it was."""

    def __init__(self, port: int, group: str, topic: str) -> None:
        self.connection = wire.Connection(port)
        self.group, self.topic = group, topic
        self.highest = {partition: -1 for partition in range(PARTITIONS)}
        self.looks = 0
        self.failure: str | None = None
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopped.wait(0.1) and self.failure is None:
            for partition, committed in self.connection.committed(self.group, self.topic, PARTITIONS).items():
                if committed.error != 0 or committed.offset < self.highest[partition]:
                    self.failure = f"partition {partition}: {committed} after {self.highest[partition]}"
                self.highest[partition] = committed.offset
            self.looks += 1

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join()
        self.connection.close()


class Churn:
    """One group: who is in it, and what happens to it next."""

    def __init__(self, broker: harness.Broker, folder: pathlib.Path, clients: list[Client], size: int, strategy: str):
        self.broker, self.folder, self.size, self.strategy = broker, folder, size, strategy
        self.clients = clients
        self.topic = self.group = f"churn-{strategy}-{size}"
        self.history = rebalance_history.History()
        self.members: list[Member] = []
        self.all: list[Member] = []
        self.chance = random.Random(size)

    def join(self) -> None:
        """The next client in turn, unless that would be one more JVM than the machine likes."""
        jvms = sum(member.client.is_heavy for member in self.members)
        number = len(self.all)
        in_turn = [self.clients[(number + step) % len(self.clients)] for step in range(len(self.clients))]
        client = next(one for one in in_turn if not one.is_heavy or jvms < JVMS_MAX)
        name = f"{self.group}-{number}-{client.name}"
        command = client.command(self.broker.address, "churn", topic=self.topic, group=self.group, id=name)
        command += [f"strategy={self.strategy}", f"session_ms={SESSION_TIMEOUT_MS}", "seconds=3600"]
        member = Member(client, command, name, self.folder, self.history)
        self.members.append(member)
        self.all.append(member)

    def step(self, number: int) -> None:
        """Somebody joins, leaves, joins, is killed, and so on; the group keeps about its size."""
        for member in [one for one in self.members if not one.is_running()]:
            code = member.process.returncode
            check(code == 0, f"{member.name} ends only when it is asked to", f"{code}: {tail(member.log)}")
            self.members.remove(member)
        if number % 2 == 0 or len(self.members) < max(1, self.size - 2):
            if len(self.members) < self.size + 1:
                self.join()
            return
        leaver = self.members.pop(self.chance.randrange(len(self.members)))
        leaver.kill() if number % KILL_EVERY == 1 else leaver.leave()

    def run(self, seconds: int) -> str:
        connection = wire.Connection(self.broker.port)
        check(connection.create_topic(self.topic, PARTITIONS) == 0, f"{self.topic} is created")
        connection.close()
        for _ in range(self.size):
            self.join()
        producer = Producer(self.broker.port, self.topic)
        onlooker = Onlooker(self.broker.port, self.group, self.topic)
        try:
            for number in range(seconds):
                time.sleep(1)
                self.step(number)
            while len(self.members) < self.size:
                self.join()
            produced = producer.stop()
            self._drain(onlooker, produced)
        finally:
            producer.stopped.set()
            onlooker.stop()
            for member in self.all:
                if member in self.members:
                    member.leave()
            for member in self.all:
                member.end()
        return self._judge(onlooker, produced, seconds)

    def _drain(self, onlooker: Onlooker, produced: dict[tuple[int, int], str]) -> None:
        """Waits until everything is committed by those who are left."""
        ends = {partition: -1 for partition in range(PARTITIONS)}
        for partition, offset in produced:
            ends[partition] = max(ends[partition], offset + 1)
        deadline = time.monotonic() + DRAIN_SECONDS_MAX
        while onlooker.highest != ends:
            check(onlooker.failure is None, f"{self.group}: committed offsets never go back", onlooker.failure)
            behind = {at: (onlooker.highest[at], end) for at, end in ends.items() if onlooker.highest[at] != end}
            running = [member.name for member in self.members if member.is_running()]
            check(time.monotonic() < deadline, f"{self.group}: the group catches up", f"{behind}, {running}")
            time.sleep(0.2)

    def _judge(self, onlooker: Onlooker, produced: dict[tuple[int, int], str], seconds: int) -> str:
        check(onlooker.failure is None, f"{self.group}: committed offsets never go back", onlooker.failure)
        faults = self.history.faults()
        check(not faults, f"{self.group}: one owner in a generation, commits only grow", faults[:10])
        missing = self.history.missing(produced)
        check(not missing, f"{self.group}: every record was delivered", f"{len(missing)}: {missing[:10]}")
        generations = {generation for _, generation in self.history.owners}
        shaken = len(generations) * SECONDS_PER_GENERATION_MAX >= seconds
        check(shaken, f"{self.group}: members worked in many generations", sorted(generations))
        return (
            f"{self.group}: {len(self.all)} members, {len(produced)} records, "
            f"{len(generations)} generations, {onlooker.looks} looks at the commits"
        )


def tail(log: pathlib.Path) -> str:
    return log.read_text(errors="replace")[-1500:]


def run(options, folder: pathlib.Path) -> None:
    rebalance_history.check_itself()
    clients = fleet(options.clients)
    with harness.running(options.broker, folder, f"[groups]\ninitial_rebalance_delay_ms = 0\nsession_timeout_min_ms = {SESSION_TIMEOUT_MS}\n") as broker:
        for strategy in STRATEGIES:
            able = [client for client in clients if strategy in client.strategies]
            check(len(able) >= 3, f"at least three clients can {strategy}", [client.name for client in able])
            for size in SIZES:
                logs = folder / f"{strategy}-{size}"
                logs.mkdir()
                passed(Churn(broker, logs, able, size, strategy).run(options.seconds))
        broker.stop()


if __name__ == "__main__":
    parser = harness.arguments(__doc__.splitlines()[0])
    parser.add_argument("--clients", type=pathlib.Path, required=True, help="where clients were installed")
    parser.add_argument("--seconds", type=int, default=20, help="how long each group is shaken")
    harness.main(run, parser)
