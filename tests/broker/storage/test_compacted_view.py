"""A log shows a state: after each time it is brought up, its last records are the state, whoever wrote the log before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from shards_in_process import SPAWN, Broker

from broker.storage import compacted_view
from broker.storage.compacted_view import CompactedView
from broker.storage.log_segments import OutOfRange
from broker.storage.record_batches import Record, end_of, records_in
from broker.storage.records import Rejected
from broker.storage.shared_log import SharedLog
from shards.loop.turns import Turns

NOW = 1_700_000_000_000


def encode(key: str, value: Any) -> Record:
    return Record(key.encode(), None if value is None else str(value).encode(), -1)


class Shown:
    """A partition of a compacted topic, and its view."""

    def __init__(self, directory: Path) -> None:
        self.broker = Broker(directory, shards=1)
        self.broker.put_topic("t", cleanup_policy="compact")
        self.turns = Turns(SPAWN)
        self.again()

    def again(self) -> None:
        """As a process that finds the log."""
        self.broker.start_again(0)
        self.view = CompactedView(self.log, encode, self.turns)

    @property
    def log(self) -> SharedLog:
        return self.broker.logs[0].log("t", 0)

    async def show(self, **state: int) -> None:
        await self.view.bring_up(state, NOW)
        last = dict(self.records())
        assert {k: v for k, v in last.items() if v is not None} == {
            k.encode(): str(v).encode() for k, v in state.items()
        }

    def records(self, offset: int = -1) -> list[tuple[bytes, bytes | None]]:
        found: list[tuple[bytes, bytes | None]] = []
        offset = self.log.start_offset if offset < 0 else offset
        while data := self.log.read(offset, 1 << 20, True):
            found += records_in(data)
            offset = end_of(data, offset)
        return found


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path)


async def test_only_what_has_changed_is_appended(shown: Shown) -> None:
    await shown.show(a=1, b=2)
    await shown.show(a=1, b=2)
    assert shown.log.next_offset == 2
    await shown.show(a=1, b=3)
    await shown.show(a=1)
    assert shown.records(2) == [(b"b", b"3"), (b"b", None)]
    await shown.show(a=1, b=4)
    assert shown.log.next_offset == 5


async def test_a_successor_goes_on_where_the_log_ends(shown: Shown) -> None:
    await shown.show(a=1, b=2, c=3)
    shown.again()
    await shown.show(a=1, b=2, c=3)
    assert shown.log.next_offset == 3
    shown.again()
    await shown.show(a=1, b=5, d=6)  # what it missed: one changed, one gone, one new
    assert shown.records(3) == [(b"b", b"5"), (b"d", b"6"), (b"c", None)]
    shown.again()
    await shown.show(a=1, b=5, d=6)
    assert shown.log.next_offset == 6


async def test_what_retention_has_dropped_is_written_again(shown: Shown) -> None:
    await shown.show(a=1, b=2)
    await shown.show(a=1, b=3)
    shown.log.delete_before(2)
    assert shown.view.is_cut
    await shown.show(a=1, b=3)
    assert shown.records() == [(b"b", b"3"), (b"a", b"1")]
    assert not shown.view.is_cut


async def test_a_log_that_can_not_be_written_is_brought_up_later(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    await shown.show(a=1)

    def full(*_: object) -> None:
        raise Rejected(56, "full")

    with monkeypatch.context() as patched:
        patched.setattr(SharedLog, "append", full)
        with pytest.raises(Rejected):
            await shown.view.bring_up({"a": 2}, NOW)
    await shown.show(a=2)
    assert shown.records() == [(b"a", b"1"), (b"a", b"2")]


async def test_a_large_state_is_written_in_many_batches(shown: Shown, autojump_clock: trio.testing.MockClock) -> None:
    await shown.show(**{f"k{n}": n for n in range(2000)})
    assert shown.log.next_offset == 2000


async def test_a_log_is_bounded(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacted_view, "LEAST", 20)
    for n in range(100):
        await shown.show(a=n, b=1)
        assert shown.log.next_offset - shown.log.start_offset <= 21
    assert shown.log.start_offset > 50
    with pytest.raises(OutOfRange):
        shown.log.read(0, 1000, True)
