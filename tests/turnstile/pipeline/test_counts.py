"""Counts of batches: merged folders stay few, and a kill at any step loses and doubles nothing."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from turnstile.pipeline.counts import Batches, Counts, standing
from turnstile.pipeline.errors import NoInput

BATCHES = 40


class Killed(Exception):
    """kill -9, at that step."""


class Disk(Counts):
    """Folders in memory. Each step that changes one may be the last: then it is done by half, and nothing after it."""

    def __init__(self, merged: int, kill_at: int = -1) -> None:
        self.folders: dict[str, tuple[Counter[str], bool]] = {}
        self.steps = 0
        self._kill_at = kill_at
        self._files: Any = self
        self._out = "out"
        self._merged = merged

    def names(self, folder: str) -> list[str]:
        return sorted(name.removeprefix("out/") for name in self.folders)

    def is_there(self, place: str) -> bool:
        return self.folders[place.removesuffix("/_SUCCESS")][1]

    def delete(self, place: str) -> None:
        rows, _ = self.folders.pop(place)
        if self._is_killed():
            self.folders[place] = (rows, False)  # some of its files are gone
            raise Killed

    def _sum(self, batches: Sequence[Batches]) -> Any:
        return sum((self.folders[self._place(each)][0] for each in batches), Counter())

    def _write(self, rows: Any, batches: Batches) -> None:
        self.folders[self._place(batches)] = (Counter(), False)
        if self._is_killed():
            raise Killed
        self.folders[self._place(batches)] = (rows, True)

    def _is_killed(self) -> bool:
        self.steps += 1
        return self.steps - 1 == self._kill_at


def counted(disk: Disk) -> Counter[str]:
    return disk.read()  # type: ignore[return-value]  # rows here are Counters


def batch(number: int) -> Any:
    return Counter({"all": 1, f"minute {number // 6}": 1})


def expected(batches: int) -> Counter[str]:
    return sum((batch(number) for number in range(batches)), Counter())


def test_a_folder_that_another_covers_does_not_stand() -> None:
    stand = [Batches(0, 63), Batches(64, 64)]
    assert standing([Batches(3, 3), *stand, Batches(0, 7)]) == stand


@pytest.mark.parametrize("merged", [2, 3])
def test_folders_stay_few_and_their_sum_is_right_after_each_batch(merged: int) -> None:
    disk = Disk(merged)
    for number in range(BATCHES):
        disk.add(batch(number), number)
        assert counted(disk) == expected(number + 1)
        assert len(standing(disk.whole())) <= (merged - 1) * 6
    disk.add(batch(BATCHES), BATCHES)
    assert len(disk.folders) <= (merged - 1) * 6 + 1


def test_a_kill_at_any_step_loses_and_doubles_nothing() -> None:
    """The batch that was under way is run again, as Spark does; and once more, as after a kill before it was noted."""
    undisturbed = Disk(2)
    for number in range(BATCHES):
        undisturbed.add(batch(number), number)
    for kill_at in range(undisturbed.steps):
        disk = Disk(2, kill_at)
        for number in range(BATCHES):
            for _ in range(2):
                try:
                    disk.add(batch(number), number)
                except Killed:
                    disk.add(batch(number), number)
            assert counted(disk) == expected(number + 1), kill_at


def test_a_folder_without_counts_is_refused() -> None:
    with pytest.raises(NoInput, match="nothing that `turnstile report --follow`"):
        Disk(2).read()
