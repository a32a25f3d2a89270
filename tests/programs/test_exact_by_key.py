"""The check of these tests finds a record that was lost on its way through a cluster, one that came twice, and a wrong count."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import running, until
from programs import Desk, Wrong, copy, last_count, wrong


@pytest.fixture
def desk(tmp_path: Path):
    with running(tmp_path / "data", shards=1) as cluster, Desk(cluster.bootstrap, {"copies": 2}) as desk:
        yield desk


def read_all(desk: Desk, count: int) -> None:
    def all_read() -> bool:
        desk.read("copies", copy)
        return desk.got.total() == count

    until(all_read, within_s=60, what=f"{count} records")


@pytest.mark.parametrize(
    ("copies", "found"),
    [
        ("abc", None),
        ("ac", "b': Wrong(expected=1, found=0)"),
        ("abbc", "b': Wrong(expected=1, found=2)"),
        ("abcx", "x': Wrong(expected=0, found=1)"),
    ],
    ids=["exact", "lost", "doubled", "strange"],
)
def test_copies_are_held_against_what_was_given(desk: Desk, copies: str, found: str | None) -> None:
    desk.said.update("abc")
    for value in copies:
        desk.produce("copies", value)
    desk.flush()
    if found is None:
        desk.until_exact("copies", copy)
        return
    read_all(desk, len(copies))
    with pytest.raises(AssertionError) as fault:
        desk.until_exact("copies", copy, within_s=0)
    assert "1 keys are wrong" in str(fault.value) and found in str(fault.value)


def test_a_count_is_the_last_one(desk: Desk) -> None:
    desk.said.update({"word": 3})
    for count in "123":
        desk.produce("copies", count, key="word")
    desk.flush()
    desk.until_exact("copies", last_count)
    desk.produce("copies", "4", key="word")
    desk.flush()
    with pytest.raises(AssertionError, match=r"Wrong\(expected=3, found=4\)"):
        while True:  # until the fourth is read
            desk.until_exact("copies", last_count, within_s=0)


def test_keys_of_either_side_are_compared() -> None:
    assert wrong({"a": 1, "b": 2}, {"b": 2, "c": 1}) == {"a": Wrong(1, 0), "c": Wrong(0, 1)}
