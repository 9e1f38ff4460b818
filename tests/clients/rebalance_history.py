"""What the members of a group did while it was rebalanced, and what must hold of it whatever the order of events."""

from __future__ import annotations

import collections
import dataclasses
import threading

Partition = int
Generation = int


@dataclasses.dataclass
class History:
    """Deliveries and commits as the members told them, in the order in which each member told them.

    A delivery or commit of a member that has not told its generation does not count for ownership, but for completeness.
    """

    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    delivered: dict[tuple[Partition, int], str] = dataclasses.field(default_factory=dict)
    differing: list[str] = dataclasses.field(default_factory=list)
    owners: dict[tuple[Partition, Generation], set[str]] = dataclasses.field(
        default_factory=lambda: collections.defaultdict(set)
    )
    commits: dict[Partition, list[tuple[Generation, str, int]]] = dataclasses.field(
        default_factory=lambda: collections.defaultdict(list)
    )

    def deliver(self, member: str, generation: Generation | None, partition: Partition, offset: int, value: str) -> None:
        """A member was given a record."""
        with self.lock:
            before = self.delivered.setdefault((partition, offset), value)
            if before != value:
                self.differing.append(f"partition {partition}, offset {offset}: `{before}` and `{value}`")
            if generation is not None:
                self.owners[partition, generation].add(member)

    def commit(self, member: str, generation: Generation | None, partition: Partition, offset: int) -> None:
        """A member was told that its commit is done."""
        if generation is None:
            return
        with self.lock:
            self.owners[partition, generation].add(member)
            self.commits[partition].append((generation, member, offset))

    def faults(self) -> list[str]:
        """What does not hold: one owner in a generation, commits that only grow, one value at an offset."""
        with self.lock:
            found = list(self.differing)
            for (partition, generation), members in self.owners.items():
                if len(members) > 1:
                    found.append(f"partition {partition} belongs to {sorted(members)} in generation {generation}")
            for partition, commits in self.commits.items():
                found += commits_that_went_back(partition, commits)
        return found

    def missing(self, produced: dict[tuple[Partition, int], str]) -> list[tuple[Partition, int]]:
        """Records that were produced and that nobody was given, or another one in their place."""
        with self.lock:
            return [place for place, value in produced.items() if self.delivered.get(place) != value]


def commits_that_went_back(partition: Partition, commits: list[tuple[Generation, str, int]]) -> list[str]:
    """Commits of one partition below what an earlier generation, or the same member before, had committed."""
    found = []
    in_order = sorted(enumerate(commits), key=lambda item: (item[1][0], item[0]))
    highest = (-1, "", -1)
    for _, commit in in_order:
        if commit[2] < highest[2]:
            found.append(f"partition {partition}: {commit} (generation, member, offset) after {highest}")
        else:
            highest = commit
    return found


def check_itself() -> None:
    """The rules catch what they are for."""
    twice = History()
    twice.deliver("one", 3, 0, 7, "v")
    twice.deliver("two", 4, 0, 7, "v")
    assert not twice.faults()
    twice.deliver("two", 3, 0, 8, "w")
    assert twice.faults() == ["partition 0 belongs to ['one', 'two'] in generation 3"]
    back = History()
    back.commit("one", 3, 0, 10)
    back.commit("two", 4, 0, 9)
    assert len(back.faults()) == 1
    other = History()
    other.deliver("one", 1, 0, 1, "v")
    other.deliver("two", 2, 0, 1, "w")
    assert len(other.faults()) == 1
    assert other.missing({(0, 1): "v", (0, 2): "x"}) == [(0, 2)]
