"""ShareFetch and ShareAcknowledge through the shards of a broker: waits, locks, ends of sessions and of shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from batches import batch, values_of
from sharing import TOPIC_ID, ShareMember, SharingBroker, acquired, records
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.kafka.share.share_homes import SharePlace
from broker.kafka.share.share_store import duration_ms
from broker.storage.records import TRANSACTIONAL
from broker.wire import codes
from shards.loop.deferred import Deferred

ACCEPT, RELEASE, RENEW = 1, 2, 4


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[SharingBroker]:
    broker = SharingBroker(tmp_path)
    broker.put_topic("t")
    yield broker
    for logs in broker.logs:
        for log in logs._logs.values():
            assert not log.waiters, "a fetch still waits"
    broker.close()


@pytest.fixture(params=[0, 1])
def away(request: pytest.FixtureRequest, broker: SharingBroker) -> int:
    """The shard that members are connected to: the home of the group, or the other one."""
    return broker.home if request.param == 0 else 1 - broker.home


def append(broker: SharingBroker, *values: bytes, shard: int = 0, **fields: int) -> None:
    records, do = batch(*values, **fields), broker.partitions[shard].do
    code, *_, told = do("append", ("t", 0, records))
    if code and fields:
        code, *_ = do("append", ("t", 0, records, *told))
    assert not code


async def test_each_record_goes_to_one_member(broker: SharingBroker, away: int) -> None:
    append(broker, b"a", b"b", b"c")
    one, two = ShareMember(broker, "one", away), ShareMember(broker, "two", 0)
    first = await one.ask()
    assert acquired(first) == [(0, 2, 1)]
    assert values_of(records(first)) == [b"a", b"b", b"c"]
    assert await two.acquire() == []
    assert await one.acquire((0, 0, [ACCEPT]), (1, 2, [RELEASE])) == [(1, 2, 2)]


async def test_all_that_was_acquired_is_in_the_answer_whichever_segments_it_is_in(
    broker: SharingBroker, away: int
) -> None:
    """A client takes what it was given and does not find for a gap, which nobody gets again."""
    for value in (b"a", b"b", b"c"):
        append(broker, value)
        log = broker.logs[0].log("t", 0)
        with log:
            log._roll()
    answer = await ShareMember(broker, shard=away).ask()
    assert sum(last - first + 1 for first, last, _ in acquired(answer)) == 3
    assert values_of(records(answer)) == [b"a", b"b", b"c"]


async def test_a_fetch_waits_for_records(broker: SharingBroker, away: int, autojump_clock: MockClock) -> None:
    waiting = ShareMember(broker, shard=away).send(wait_ms=10_000)
    assert isinstance(waiting, Deferred)
    await wait_all_tasks_blocked()
    append(broker, b"a", shard=1)
    assert acquired(await waiting) == [(0, 0, 1)]
    assert trio.current_time() < 1


async def test_a_fetch_waits_no_longer_than_it_says(broker: SharingBroker, autojump_clock: MockClock) -> None:
    began = trio.current_time()
    assert acquired(await ShareMember(broker).send(wait_ms=500)) == []
    assert trio.current_time() - began == pytest.approx(0.5)


async def test_records_that_become_available_end_a_wait(broker: SharingBroker, autojump_clock: MockClock) -> None:
    append(broker, b"a", b"b")
    one, two = ShareMember(broker, "one"), ShareMember(broker, "two")
    assert await one.acquire() == [(0, 1, 1)]
    waiting = two.send(wait_ms=60_000)
    await wait_all_tasks_blocked()
    await one.ask((1, 1, [RELEASE]), max_records=0)
    assert acquired(await waiting) == [(1, 1, 2)]


async def test_a_lock_that_runs_out_ends_a_wait(broker: SharingBroker, away: int, autojump_clock: MockClock) -> None:
    append(broker, b"a", b"b")
    async with trio.open_nursery() as nursery:
        broker.run(nursery)
        one, two = ShareMember(broker, "one", away), ShareMember(broker, "two", away)
        assert await one.acquire() == [(0, 1, 1)]
        await trio.sleep(20)
        assert await one.acquire((1, 1, [RENEW]), is_renew_ack=True, max_bytes=0, min_bytes=0, max_records=0) == []
        assert acquired(await two.send(wait_ms=60_000)) == [(0, 0, 2)]
        assert trio.current_time() == pytest.approx(30, abs=0.1)
        assert acquired(await two.send(wait_ms=60_000)) == [(1, 1, 2)]
        assert trio.current_time() == pytest.approx(50, abs=0.1)
        nursery.cancel_scope.cancel()


async def test_a_session_that_ends_releases(broker: SharingBroker, away: int) -> None:
    append(broker, b"a", b"b")
    one, two = ShareMember(broker, "one", away), ShareMember(broker, "two", away)
    await one.acquire()
    assert await one.acquire((0, 0, [ACCEPT]), epoch=-1) == []
    assert await two.acquire() == [(1, 1, 2)]
    assert (await one.ask()).error_code == codes.SHARE_SESSION_NOT_FOUND


async def test_a_connection_that_ends_ends_its_session(broker: SharingBroker) -> None:
    append(broker, b"a")
    assert await ShareMember(broker, "one").acquire() == [(0, 0, 1)]
    manager = broker.managers[broker.home]
    manager.disconnected("g", "one", (0, 99))
    assert await ShareMember(broker, "two").acquire() == []
    manager.disconnected("g", "one", (0, 0))
    assert await ShareMember(broker, "three").acquire() == [(0, 0, 2)]


async def test_a_shard_that_dies_takes_the_sessions_of_its_connections(broker: SharingBroker) -> None:
    append(broker, b"a")
    await ShareMember(broker, "one", 1 - broker.home).acquire()
    broker.managers[broker.home].peer_gone(1 - broker.home)
    assert await ShareMember(broker, "two", broker.home).acquire() == [(0, 0, 2)]


async def test_a_home_that_dies_loses_nothing_that_was_acknowledged(broker: SharingBroker, away: int) -> None:
    append(broker, b"a", b"b", b"c")
    one = ShareMember(broker, "one", away)
    await one.acquire()
    await one.acquire((1, 1, [ACCEPT]), max_records=0)
    broker.start_again(broker.home)
    assert (await one.ask()).error_code == codes.SHARE_SESSION_NOT_FOUND
    assert await ShareMember(broker, "two", away).acquire() == [(0, 0, 2), (2, 2, 2)]


async def test_a_client_of_a_home_that_is_gone_is_to_begin_anew(
    broker: SharingBroker, autojump_clock: MockClock
) -> None:
    del broker.peers[broker.home]
    response = await ShareMember(broker, shard=1 - broker.home).send()
    assert response.error_code == codes.SHARE_SESSION_NOT_FOUND


async def test_no_more_sessions_than_the_setting_says(broker: SharingBroker) -> None:
    broker.set("group.share.max.share.sessions", "2")
    assert not (await ShareMember(broker, "one").ask()).error_code
    assert (await ShareMember(broker, "two").ask()).error_code == codes.SHARE_SESSION_LIMIT_REACHED


async def test_no_more_share_partitions_than_the_setting_says(broker: SharingBroker) -> None:
    broker.set("turnstile.share.partitions.max", "1")
    broker.managers[broker.home].alter("g", [("f" * 32, 0, 5)])
    (topic,) = (await ShareMember(broker).ask()).responses
    assert topic.partitions[0].error_code == codes.UNKNOWN_SERVER_ERROR
    assert "turnstile.share.partitions.max" in topic.partitions[0].error_message


async def test_aborted_records_are_passed_over_by_readers_of_committed_records(broker: SharingBroker) -> None:
    broker.configure("g", share_auto_offset_reset="earliest", share_isolation_level="read_committed")
    append(broker, b"a")
    append(broker, b"b", b"c", producer_id=7, epoch=0, sequence=0, attributes=TRANSACTIONAL)
    member = ShareMember(broker)
    assert await member.acquire() == [(0, 0, 1)]
    broker.partitions[0].do("end_transaction", ("t", 0, 7, 0, False, 0))
    append(broker, b"d")
    assert await member.acquire((0, 0, [ACCEPT])) == [(3, 4, 1)]


async def test_what_the_log_has_dropped_is_not_waited_for(broker: SharingBroker) -> None:
    append(broker, b"a", b"b")
    append(broker, b"c")
    member = ShareMember(broker)
    assert await member.acquire(max_records=1) == [(0, 1, 1)]
    broker.partitions[1].do("delete_before", ("t", 0, 2))
    assert await member.acquire((0, 1, [ACCEPT])) == [(2, 2, 1)]


async def test_an_answer_is_not_larger_than_was_asked_for_but_by_one_batch(broker: SharingBroker) -> None:
    broker.put_topic("t", 4)
    for number in range(4):
        assert not broker.partitions[0].do("append", ("t", number, batch(b"x" * 1000)))[0]
    member = ShareMember(broker)
    response = await member.ask(places=range(4), max_bytes=800)
    assert 1000 < len(records(response)) < 1200
    assert 3000 < len(records(await member.ask(max_bytes=4 * 1200))) < 3600


async def test_a_group_begins_where_its_config_says(broker: SharingBroker) -> None:
    append(broker, b"a")
    broker.configure("g", share_auto_offset_reset="latest")
    member = ShareMember(broker)
    assert await member.acquire() == []
    append(broker, b"b")
    assert await member.acquire() == [(1, 1, 1)]


@pytest.mark.parametrize(
    ("text", "ms"), [("PT1H", 3_600_000), ("P1DT2M", 86_520_000), ("PT0.5S", 500), ("P2D", 172_800_000)]
)
def test_durations_are_read(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


async def test_offsets_are_told_and_set_for_administrators(broker: SharingBroker, away: int) -> None:
    append(broker, b"a", b"b", b"c")
    homes = broker.share_homes[away]
    place, other = SharePlace(TOPIC_ID, 0), SharePlace(TOPIC_ID, 9)

    async def there(answer):
        return await answer if isinstance(answer, Deferred) else answer

    assert [each.start_offset for each in await there(homes.offsets("g", [place]))] == [-1]
    member = ShareMember(broker, shard=away)
    await member.acquire()
    await member.acquire((0, 0, [ACCEPT]), max_records=0)
    told = await there(homes.offsets("g", [place, other]))
    assert told == [(0, 1, 0, 2), (codes.UNKNOWN_TOPIC_OR_PARTITION, -1, 0, -1)]
    assert await there(homes.places("g")) == [place]
    assert await there(homes.alter("g", [(place, 2)])) == [0]
    assert await ShareMember(broker, "two", away).acquire() == [(2, 2, 1)]
    assert await there(homes.delete("g", None)) == 0
    assert await there(homes.places("g")) == []


async def test_a_group_obeys_its_own_delivery_count_limit(broker: SharingBroker) -> None:
    broker.configure("g", share_auto_offset_reset="earliest", share_delivery_count_limit="2")
    append(broker, b"a")
    member = ShareMember(broker)
    assert await member.acquire() == [(0, 0, 1)]
    assert await member.acquire((0, 0, [RELEASE])) == [(0, 0, 2)]
    assert await member.acquire((0, 0, [RELEASE])) == []


async def test_a_group_has_no_more_records_in_flight_than_its_own_config_says(broker: SharingBroker) -> None:
    broker.configure("g", share_auto_offset_reset="earliest", share_partition_max_record_locks="100")
    for _ in range(150):
        append(broker, b"a")
    first, last, _ = (await ShareMember(broker).acquire())[0]
    assert (first, last) == (0, 99)


async def test_a_group_that_does_not_renew_refuses_to(broker: SharingBroker) -> None:
    broker.configure("g", share_auto_offset_reset="earliest", share_renew_acknowledge_enable="false")
    append(broker, b"a")
    member = ShareMember(broker)
    assert await member.acquire() == [(0, 0, 1)]
    answer = await member.ask((0, 0, [RENEW]), is_renew_ack=True, max_bytes=0, min_bytes=0, max_records=0)
    (partition,) = answer.responses[0].partitions
    assert partition.acknowledge_error_code == codes.INVALID_RECORD_STATE
    assert partition.acknowledge_error_message == "Renewing acquisition locks is not enabled for the group."
