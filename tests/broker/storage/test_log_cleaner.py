"""The cleaner of a shard: which logs it takes, in pieces, and when it leaves one alone."""

from collections.abc import AsyncIterator

import pytest
import structlog
import trio
from batches import batch
from cleaned import read_all
from shards_in_process import SPAWN, Broker

from broker.storage import log_cleaner
from broker.storage.log_cleaner import LogCleaner
from broker.storage.shared_log import SharedLog
from shards.loop.turns import Turns

NOW = 1_700_000_000_000
SEGMENT = 1 << 20
COMPACT = {"cleanup_policy": "compact", "segment_bytes": str(SEGMENT), "min_cleanable_dirty_ratio": "0.01"}


@pytest.fixture
async def cleaner(broker: Broker) -> AsyncIterator[LogCleaner]:
    """The cleaner of shard 0."""
    yield LogCleaner(broker.logs[0], Turns(SPAWN), lambda: NOW + 1000)


def log_of(broker: Broker, topic: str, partition: int, shard: int = 0) -> SharedLog:
    return broker.logs[shard].log(topic, partition)


def fill(broker: Broker, topic: str, partition: int, count: int = 40, shard: int = 1) -> None:
    """Appends by another shard than the one that cleans."""
    for number in range(count):
        log_of(broker, topic, partition, shard).append(batch(b"%d" % number * 20_000, keys=[b"%d" % (number % 3)]), NOW)


def overwrite(path: str) -> None:
    """Damages two batches of a segment."""
    with open(path, "r+b") as file:
        file.seek(40_000)
        file.write(bytes(40_000))


async def until_done(cleaner: LogCleaner) -> int:
    rounds = 0
    while await cleaner.clean_one():
        rounds += 1
        assert rounds < 10
    return rounds


async def test_a_log_is_cleaned_by_its_home_and_read_by_all(
    broker: Broker, cleaner: LogCleaner, autojump_clock: trio.abc.Clock
) -> None:
    broker.put_topic("c", 8, topic_id=2, **COMPACT)
    here, elsewhere = broker.at("c", 0), broker.at("c", 1)
    for partition in (here, elsewhere):
        fill(broker, "c", partition)
    fill(broker, "t", here)
    assert await until_done(cleaner) == 1
    sizes = [log_of(broker, "c", here, shard).size_bytes for shard in (0, 1)]
    assert sizes[0] == sizes[1] < 3 * SEGMENT
    assert log_of(broker, "c", elsewhere).size_bytes == log_of(broker, "t", here).size_bytes > sizes[0]
    assert [record.value[:2] for record in read_all(log_of(broker, "c", here, 1)) if record.value][-1] == b"39"


async def test_a_log_that_is_clean_is_not_opened(
    broker: Broker, cleaner: LogCleaner, autojump_clock: trio.abc.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.put_topic("c", 8, topic_id=2, **COMPACT)
    fill(broker, "c", broker.at("c", 0))
    await until_done(cleaner)
    broker.start_again(0)
    opened: list[object] = []
    monkeypatch.setattr(broker.logs[0], "log", lambda *place: opened.append(place))
    assert not await LogCleaner(broker.logs[0], Turns(SPAWN), lambda: NOW).clean_one()
    assert opened == []


async def test_a_piece_at_a_time(
    broker: Broker, cleaner: LogCleaner, autojump_clock: trio.abc.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_cleaner, "PIECE_S", 0)
    broker.put_topic("c", 8, topic_id=2, **COMPACT)
    here, rounds = broker.at("c", 0), 0
    fill(broker, "c", here)

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await trio.sleep(0.0001)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        assert await cleaner.clean_one()
        nursery.cancel_scope.cancel()
    assert rounds > 40, "others had their turn between batches"


@pytest.mark.parametrize("change", ["deleted", "another", "not compacted"])
async def test_a_topic_that_changes_meanwhile_is_left_alone(
    broker: Broker, cleaner: LogCleaner, autojump_clock: trio.abc.Clock, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(log_cleaner, "PIECE_S", 0)
    broker.put_topic("c", 8, topic_id=2, **COMPACT)
    here = broker.at("c", 0)
    fill(broker, "c", here)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cleaner.clean_one)
        await trio.sleep(0.001)
        if change == "deleted":
            broker.drop_topic("c")
        elif change == "another":
            broker.put_topic("c", 8, topic_id=3, **COMPACT)
            fill(broker, "c", here, 2)
        else:
            broker.put_topic("c", 8, topic_id=2)
    if change != "deleted":
        left = read_all(log_of(broker, "c", here))
        assert len(left) == (2 if change == "another" else 40)
    assert not [*broker.directory.glob("topics/c-*/*-*.log")]


async def test_a_log_that_can_not_be_written_is_for_the_next_time(
    broker: Broker, cleaner: LogCleaner, autojump_clock: trio.abc.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.put_topic("c", 8, topic_id=2, **COMPACT)
    here, other = broker.homes("c", 8).index(0), broker.homes("c", 8).index(0, 1 + broker.homes("c", 8).index(0))
    for partition in (here, other):
        fill(broker, "c", partition)
    replace = SharedLog.replace_segments

    def full(log: SharedLog, *more: object) -> bool:
        if log.directory.endswith(f"-{here}"):
            raise OSError(28, "No space left on device")
        return replace(log, *more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, structlog.testing.capture_logs() as lines:
        patch.setattr(SharedLog, "replace_segments", full)
        assert await until_done(cleaner) == 2
        assert [line["event"] for line in lines].count("a log was cleaned") == 1
    assert not [*broker.directory.glob("topics/*/cleaner.tmp")]
    cleaner._left_alone.clear()  # as `run` does when there is nothing more to clean
    assert await until_done(cleaner) == 1
    assert log_of(broker, "c", here).size_bytes == log_of(broker, "c", other).size_bytes


async def test_damage_is_mended_and_the_rest_is_cleaned(
    broker: Broker, cleaner: LogCleaner, autojump_clock: trio.abc.Clock
) -> None:
    broker.put_topic("c", 8, topic_id=2, **COMPACT)
    here = broker.at("c", 0)
    fill(broker, "c", here, 150)
    overwrite(log_of(broker, "c", here)._segments[0].path)
    assert await until_done(cleaner) >= 1
    cleaner._left_alone.clear()
    await until_done(cleaner)
    left = {record.key: record.offset for record in read_all(log_of(broker, "c", here, 1))}
    assert left == {b"0": 147, b"1": 148, b"2": 149}


async def test_it_runs_unless_it_is_switched_off(
    broker: Broker, cleaner: LogCleaner, autojump_clock: trio.abc.Clock
) -> None:
    broker.put_topic("c", 8, topic_id=2, **COMPACT)
    here = broker.at("c", 0)
    fill(broker, "c", here)
    before = log_of(broker, "c", here).size_bytes
    broker.image.apply(broker.image.version + 1, [("static", "/log.cleaner.enable", "false")])
    with trio.move_on_after(60):
        await cleaner.run()
    assert log_of(broker, "c", here).size_bytes == before
    broker.image.apply(broker.image.version + 1, [("static", "/log.cleaner.enable", None)])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cleaner.run)
        while log_of(broker, "c", here).size_bytes == before:  # noqa: ASYNC110 - nothing tells it
            await trio.sleep(1)
        nursery.cancel_scope.cancel()
