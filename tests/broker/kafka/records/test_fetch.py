"""Fetch: what comes back and how much of it, the wait for more, other shards, ids and errors."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio
from batches import batch, records_of, values_of, without_cut
from shards_in_process import SPAWN, Broker
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.kafka.records.fetch import routes as fetch_routes
from broker.kafka.records.fetch_sessions import FetchSessionCache
from broker.storage.append_notices import APPENDED
from broker.storage.partition_log import PartitionLog
from broker.storage.partitions import MOST_AT_ONCE
from broker.storage.segment import LogSegment
from broker.wire import apis, codes

FETCH = 1
VERSIONS = range(apis.APIS[FETCH].min_version, apis.APIS[FETCH].max_version + 1)
NOW = 1_700_000_000_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    broker.put_topic("t", 64)
    yield broker
    for logs in broker.logs:
        for log in logs._logs.values():
            assert not log.waiters, "a fetch still waits"
    broker.close()


def append(broker: Broker, number: int, *values: bytes) -> None:
    broker.partitions[broker.homes("t", 64)[number]].log("t", number).append(batch(*values), NOW)


def fetch(
    broker: Broker,
    offsets: dict[int, int],
    *,
    version: int = 12,
    shard: int = 0,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    topic: str = "t",
    topic_id: int = 1,
    **more: Any,
) -> Any:
    return broker.send(
        shard,
        FETCH,
        version,
        lambda types: types.FetchRequest(
            max_wait=wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            forgotten_topics_data=(),
            topics=[
                types.FetchTopic(
                    topic=topic,
                    topic_id=UUID(int=topic_id),
                    partitions=[
                        types.FetchPartition(
                            partition=number, fetch_offset=offset, partition_max_bytes=partition_max_bytes
                        )
                        for number, offset in offsets.items()
                    ],
                )
            ],
            **more,
        ),
    )


def partitions_of(response: Any) -> list[Any]:
    return list(response.responses[0].partitions)


def values(response: Any) -> list[list[bytes]]:
    return [values_of(without_cut(each.records or b"")) for each in partitions_of(response)]


def sizes(response: Any) -> list[int]:
    return [len(each.records or b"") for each in partitions_of(response)]


@pytest.mark.parametrize("version", VERSIONS)
def test_records_come_back_in_every_version(broker: Broker, version: int) -> None:
    here, there = broker.at("t", 0), broker.at("t", 1)
    append(broker, here, b"a", b"b")
    append(broker, there, b"c")
    response = fetch(broker, {here: 0, there: 0}, version=version)
    assert values(response) == [[b"a", b"b"], [b"c"]]
    assert [each.high_watermark for each in partitions_of(response)] == [2, 1]
    assert [each.last_stable_offset for each in partitions_of(response)] == [2, 1]


def test_what_is_here_and_enough_is_answered_at_once(broker: Broker) -> None:
    here = broker.at("t", 0)
    append(broker, here, b"a")
    assert not inspect.isawaitable(fetch(broker, {here: 0}, wait_ms=500))
    assert not inspect.isawaitable(fetch(broker, {here: 1}, wait_ms=0))


async def test_a_fetch_at_the_end_waits_until_its_time_is_over(broker: Broker, autojump_clock: MockClock) -> None:
    for number in (broker.at("t", 0), broker.at("t", 1)):
        before = trio.current_time()
        assert values(await fetch(broker, {number: 0}, wait_ms=500)) == [[]]
        assert trio.current_time() - before == pytest.approx(0.5)


async def test_an_append_ends_the_wait_wherever_it_happens(broker: Broker, autojump_clock: MockClock) -> None:
    here, there = broker.at("t", 0), broker.at("t", 1)
    for number, expected in ((here, [[b"new"], []]), (there, [[], [b"new"]])):
        got: list[Any] = []
        offsets = {each: broker.partitions[home].log("t", each).next_offset for home, each in enumerate((here, there))}

        async def consume(offsets: dict[int, int], got: list[Any]) -> None:
            got.append(await fetch(broker, offsets, wait_ms=60_000))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(consume, offsets, got)
            await wait_all_tasks_blocked()
            assert not got
            append(broker, number, b"new")
        assert values(got[0]) == expected
    assert trio.current_time() < 1


async def test_the_wait_is_for_min_bytes_over_all_partitions(broker: Broker, autojump_clock: MockClock) -> None:
    here, there = broker.at("t", 0), broker.at("t", 1)
    got: list[Any] = []

    async def consume() -> None:
        got.append(await fetch(broker, {here: 0, there: 0}, wait_ms=60_000, min_bytes=len(batch(b"one")) * 2))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(consume)
        await wait_all_tasks_blocked()
        append(broker, here, b"one")
        await wait_all_tasks_blocked()
        assert not got
        append(broker, there, b"two")
    assert values(got[0]) == [[b"one"], [b"two"]]


async def test_a_shard_that_waits_is_told_once(broker: Broker, autojump_clock: MockClock) -> None:
    there = broker.at("t", 1)
    waiting = fetch(broker, {there: 0}, wait_ms=60_000, min_bytes=3 * len(batch(b"new")))
    await wait_all_tasks_blocked()
    calls = broker.partitions[1].mesh.calls
    append(broker, there, b"new")
    assert calls == [APPENDED]
    append(broker, there, b"new")
    assert calls == [APPENDED] * 2, "it still waited"
    append(broker, there, b"new")
    assert values(await waiting) == [[b"new"] * 3]
    for _ in range(3):
        append(broker, there, b"new")
    assert calls == [APPENDED] * 4, "the first of these found the mark of a wait that was over"


async def test_a_shard_that_is_not_told_sees_what_came_when_its_wait_is_over(
    broker: Broker, autojump_clock: MockClock
) -> None:
    there = broker.at("t", 1)
    waiting = fetch(broker, {there: 0}, wait_ms=500)
    await wait_all_tasks_blocked()
    del broker.peers[0]
    append(broker, there, b"new")
    assert values(await waiting) == [[b"new"]]


async def test_no_fetch_waits_longer_than_a_minute(broker: Broker, autojump_clock: MockClock) -> None:
    before = trio.current_time()
    await fetch(broker, {broker.at("t", 0): 0}, wait_ms=2**31 - 1)
    assert trio.current_time() - before == pytest.approx(60)


async def test_a_batch_larger_than_the_limits_still_comes_first(broker: Broker) -> None:
    here = broker.at("t", 0)
    append(broker, here, b"x" * 5000)
    append(broker, here, b"y")
    assert values(fetch(broker, {here: 0}, max_bytes=10, partition_max_bytes=10)) == [[b"x" * 5000]]


SIZE = len(batch(b"x" * 1000))  # of every batch in the next tests


@pytest.mark.parametrize(
    ("max_bytes", "expected"),
    [
        (1, [SIZE, 0, 0]),  # the first comes whole, and is all
        (SIZE + 500, [SIZE + 500, 0, 0]),
        (3 * SIZE, [3 * SIZE, 0, 0]),
        (4 * SIZE - 1, [3 * SIZE, 0, 0]),  # not even one batch of the second fits
        (4 * SIZE, [3 * SIZE, SIZE, 0]),
        (5 * SIZE + 10, [3 * SIZE, 2 * SIZE + 10, 0]),
        (7 * SIZE - 1, [3 * SIZE, 3 * SIZE, 0]),
        (8 * SIZE - 1, [3 * SIZE, 3 * SIZE, 2 * SIZE - 1]),
    ],
)
@pytest.mark.parametrize("homes", [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1)])
async def test_partitions_are_filled_in_order_and_the_last_batch_is_cut(
    broker: Broker, homes: tuple[int, ...], max_bytes: int, expected: list[int]
) -> None:
    all_homes = broker.homes("t", 64)
    numbers = [[n for n, home in enumerate(all_homes) if home == wanted][place] for place, wanted in enumerate(homes)]
    for number in numbers:
        for value in (b"0", b"1", b"2"):
            append(broker, number, value * 1000)
    response = fetch(broker, dict.fromkeys(numbers, 0), max_bytes=max_bytes, wait_ms=1)
    response = await response if inspect.isawaitable(response) else response
    assert sizes(response) == expected
    whole = [[b"0" * 1000, b"1" * 1000, b"2" * 1000][: size // SIZE] for size in expected]
    assert values(response) == whole, "what is not cut is as it was written"


@pytest.mark.parametrize("home", [0, 1])
async def test_partition_max_bytes_cuts_each(broker: Broker, home: int) -> None:
    first, second = [number for number, at in enumerate(broker.homes("t", 64)) if at == home][:2]
    for number in (first, second):
        for _ in range(5):
            append(broker, number, b"x" * 1000)
    for asked, expected in ((SIZE + 1, [SIZE + 1] * 2), (3 * SIZE, [3 * SIZE] * 2), (10, [SIZE, 0]), (0, [SIZE, 0])):
        response = fetch(broker, {first: 0, second: 0}, partition_max_bytes=asked, wait_ms=1)
        response = await response if inspect.isawaitable(response) else response
        assert sizes(response) == expected


async def test_a_reader_that_goes_on_behind_a_cut_batch_need_not_look_for_its_place(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = broker.at("t", 0)
    for _ in range(20):
        append(broker, here, b"x" * 1000)
    assert sizes(fetch(broker, {here: 0}, partition_max_bytes=3 * SIZE + 100)) == [3 * SIZE + 100]
    monkeypatch.setattr(LogSegment, "position_of", None)
    for offset in range(3, 18, 3):
        response = fetch(broker, {here: offset}, partition_max_bytes=3 * SIZE + 100)
        assert records_of(without_cut(partitions_of(response)[0].records))[0].offset == offset


async def test_out_of_range_tells_nothing_of_the_log_as_in_kafka(broker: Broker) -> None:
    here, there = broker.at("t", 0), broker.at("t", 1)
    for number in (here, there):
        append(broker, number, b"a")
        for offset in (2, -1):
            response = fetch(broker, {number: offset}, wait_ms=500)
            (partition,) = partitions_of(await response if inspect.isawaitable(response) else response)
            assert (partition.error_code, partition.high_watermark) == (codes.OFFSET_OUT_OF_RANGE, -1)


async def test_errors_are_answered_at_once(broker: Broker) -> None:
    broker.put_topic("far", leaders=[1], topic_id=2)
    for asked, code in (
        ({"topic": "nope"}, codes.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic": "far"}, codes.NOT_LEADER_OR_FOLLOWER),
        ({"version": 13, "topic_id": 9}, codes.UNKNOWN_TOPIC_ID),
    ):
        response = fetch(broker, {0: 0}, wait_ms=60_000, **asked)
        assert partitions_of(response)[0].error_code == code


@pytest.mark.parametrize("home", [0, 1])
async def test_a_topic_deleted_meanwhile_ends_the_wait(broker: Broker, home: int, autojump_clock: MockClock) -> None:
    got: list[Any] = []

    async def consume() -> None:
        got.append(await fetch(broker, {broker.at("t", home): 0}, wait_ms=60_000))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(consume)
        await wait_all_tasks_blocked()
        broker.drop_topic("t")
    assert partitions_of(got[0])[0].error_code == codes.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_fetch_that_is_cancelled_waits_nowhere_any_more(broker: Broker) -> None:
    numbers = [broker.at("t", home) for home in (0, 1)]
    logs = [broker.partitions[0].log("t", number) for number in numbers]
    waiting = fetch(broker, dict.fromkeys(numbers, 0), wait_ms=60_000)
    await wait_all_tasks_blocked()
    assert [len(log.waiters) for log in logs] == [1, 1]
    waiting.cancel()
    await wait_all_tasks_blocked()
    assert [len(log.waiters) for log in logs] == [0, 0]


async def test_a_fetch_that_one_partition_ends_waits_for_no_other(broker: Broker) -> None:
    here, there = (broker.at("t", home) for home in (0, 1))
    waiting = fetch(broker, {here: 0, there: 0}, wait_ms=60_000)
    await wait_all_tasks_blocked()
    append(broker, here, b"a")
    assert values(await waiting) == [[b"a"], []]
    await wait_all_tasks_blocked()
    assert not broker.partitions[1].log("t", there).waiters


def test_a_partition_that_is_named_a_thousand_times_is_read_once_as_it_was_named_last(broker: Broker) -> None:
    here = broker.at("t", 0)
    append(broker, here, b"a")
    append(broker, here, b"b")

    def build(types: Any) -> Any:
        parts = [
            types.FetchPartition(partition=here, fetch_offset=offset, partition_max_bytes=1 << 20)
            for offset in [0] * 999 + [1]
        ]
        return types.FetchRequest(
            replica_id=-1, max_wait=0, min_bytes=0, max_bytes=1 << 20, isolation_level=0,
            topics=[types.FetchTopic(topic="t", partitions=parts)],
        )  # fmt: skip

    assert values(broker.send(0, FETCH, 4, build)) == [[b"b"]]


async def test_many_partitions_are_answered_in_order(broker: Broker) -> None:
    here = broker.at("t", 0)
    append(broker, here, b"a")
    offsets = {here: 0, **dict.fromkeys(range(1000, 1000 + 2 * MOST_AT_ONCE), 0)}
    response = await fetch(broker, offsets, wait_ms=0)
    assert [each.partition_index for each in partitions_of(response)] == [*offsets]
    assert values(response)[0] == [b"a"]


def test_aborted_transactions_are_a_list_for_readers_of_committed_records(broker: Broker) -> None:
    here = broker.at("t", 0)
    assert partitions_of(fetch(broker, {here: 0}, isolation_level=1))[0].aborted_transactions == ()
    assert partitions_of(fetch(broker, {here: 0}, isolation_level=0))[0].aborted_transactions is None


async def test_a_fetch_that_waited_reads_what_there_is_room_for_by_then(
    broker: Broker, autojump_clock: MockClock
) -> None:
    """It asks for more than there is room for when the records come, and is not kept waiting for the rest."""
    here = broker.at("t", 0)
    room = [1 << 20]
    broker.routes[0][FETCH] = fetch_routes(
        broker.partitions[0], SPAWN, FetchSessionCache(0, 2), lambda most: min(most, room[0])
    )[0]
    waiting = fetch(broker, {here: 0}, wait_ms=5000, min_bytes=3 * SIZE)
    await wait_all_tasks_blocked()
    room[0] = 0
    for _ in range(3):
        append(broker, here, b"x" * 1000)
    began_s = trio.current_time()
    assert sizes(await waiting) == [SIZE], "one batch in any case"
    assert trio.current_time() == began_s


@pytest.mark.parametrize("home", [0, 1])
async def test_a_read_that_finds_no_memory_is_a_storage_error_and_the_next_goes_well(
    broker: Broker, home: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = broker.at("t", home)
    append(broker, number, b"a")

    def out_of_memory(*_: Any, **__: Any) -> bytes:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(PartitionLog, "read", out_of_memory)
        response = fetch(broker, {number: 0}, wait_ms=500)
        (partition,) = partitions_of(await response if inspect.isawaitable(response) else response)
        assert partition.error_code == codes.KAFKA_STORAGE_ERROR
    response = fetch(broker, {number: 0})
    assert values(await response if inspect.isawaitable(response) else response) == [[b"a"]]


def test_a_withheld_answer_of_a_session_is_told_the_next_time(broker: Broker) -> None:
    """A quota withholds it (throttling.py): the client knows the session, and nothing of its partitions."""
    here = broker.at("t", 0)
    withheld: list[Any] = []
    route = broker.routes[0][FETCH]

    def keep(request: Any, call: Any) -> Any:
        answer = route.function(request, call)
        withheld.append(call.withheld)
        return answer

    broker.routes[0][FETCH] = route._replace(function=keep)
    session = fetch(broker, {here: 0}, session_epoch=0, session_id=0).session_id
    append(broker, here, b"new")
    answered = [fetch(broker, {}, session_id=session, session_epoch=epoch) for epoch in (1,)]
    empty = withheld[-1]()
    assert (empty.session_id, empty.error_code, [*empty.responses]) == (session, codes.NONE, [])
    answered.append(fetch(broker, {here: 1}, session_id=session, session_epoch=2))
    assert [[each.high_watermark for each in partitions_of(one)] for one in answered] == [[1], [1]]
    lost = fetch(broker, {here: 0}, session_epoch=0, session_id=0).session_id
    assert withheld[-1]().session_id == 0
    gone = fetch(broker, {}, session_id=lost, session_epoch=1)
    assert gone.error_code == codes.FETCH_SESSION_ID_NOT_FOUND


def test_partitions_that_ask_for_more_than_a_fetch_may_have_get_equal_shares(broker: Broker) -> None:
    """`kafka_max_bytes_per_fetch`; the first batch is whole all the same."""
    numbers = [number for number, home in enumerate(broker.homes("t", 64)) if home == 0][:3]
    for number in numbers:
        for _ in range(10):
            append(broker, number, b"x" * 1000)
    asked = dict.fromkeys(numbers, 0)
    (batch_size,) = {size // 10 for size in sizes(fetch(broker, asked))}
    for most, shares in ((batch_size * 9, [batch_size * 3] * 3), (90, [batch_size, 0, 0])):
        broker.image.apply(broker.image.version + 1, [("setting", "/kafka_max_bytes_per_fetch", str(most))])
        assert sizes(fetch(broker, asked)) == shares
    assert sizes(fetch(broker, {numbers[0]: 0}, partition_max_bytes=batch_size)) == [batch_size], "it asks for no more"
