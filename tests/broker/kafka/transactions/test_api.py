"""Whole transactions over two shards, by both versions of the protocol: commits, aborts, offsets, fencing, timeouts, kills."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from committed import committed as committed_of
from transactional import TransactionalBroker, TransactionalClient
from trio.testing import MockClock

from broker.wire import codes

BOTH = pytest.mark.parametrize("second", [False, True])
PARTITIONS = range(4)


@pytest.fixture
async def broker(tmp_path: Path, autojump_clock: MockClock) -> AsyncIterator[TransactionalBroker]:
    broker = TransactionalBroker(tmp_path)
    broker.put_topic("t", len(PARTITIONS))
    async with trio.open_nursery() as nursery:
        broker.run(nursery)
        broker.nursery = nursery  # type: ignore[attr-defined]
        try:
            yield broker
        finally:
            nursery.cancel_scope.cancel()
    broker.close()


async def client(broker: TransactionalBroker, name: str = "one", *, second: bool) -> TransactionalClient:
    made = TransactionalClient(broker, name, second=second)
    assert await made.init() == 0
    return made


async def state(broker: TransactionalBroker, name: str = "one") -> str:
    answer = await broker.ask(0, 65, 0, lambda types: types.DescribeTransactionsRequest(transactional_ids=[name]))
    (described,) = answer.transaction_states
    assert described.error_code == 0
    return str(described.transaction_state)


async def settled(broker: TransactionalBroker, name: str = "one") -> str:
    """The state of an id whose markers are written."""
    with trio.fail_after(60):
        return await _settled(broker, name)


async def _settled(broker: TransactionalBroker, name: str) -> str:
    while (now := await state(broker, name)).startswith("Prepare"):  # noqa: ASYNC110 - nothing tells it
        await trio.sleep(0.01)
    return now


def committed(broker: TransactionalBroker) -> list[bytes]:
    """Of all partitions."""
    logs = [broker.partitions[home].log("t", number) for number, home in enumerate(broker.homes("t", len(PARTITIONS)))]
    return sorted(value for log in logs for value in committed_of(log))


async def offset_of(broker: TransactionalBroker, group: str) -> tuple[int, int]:
    """(code, committed offset) of partition 0, as a consumer sees it that asks for stable offsets."""
    answer = await broker.ask(
        0, 9, 7,
        lambda types: types.OffsetFetchRequest(
            group_id=group, require_stable=True, topics=[types.OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
        ),
    )  # fmt: skip
    (partition,) = answer.topics[0].partitions
    return partition.error_code, partition.committed_offset


@BOTH
async def test_a_commit_is_seen_whole_and_an_abort_never(broker: TransactionalBroker, second: bool) -> None:
    one = await client(broker, second=second)
    for number in PARTITIONS:
        assert await one.produce(number, b"a%d" % number) == 0
    assert (await state(broker), committed(broker)) == ("Ongoing", [])
    assert await one.end(commit=True) == 0
    assert await settled(broker) == "CompleteCommit"
    assert committed(broker) == [b"a0", b"a1", b"a2", b"a3"]
    other = await client(broker, "other", second=second)
    for number in PARTITIONS:
        assert await other.produce(number, b"b") == 0
    assert await other.end(commit=False) == 0
    assert await settled(broker, "other") == "CompleteAbort"
    assert committed(broker) == [b"a0", b"a1", b"a2", b"a3"]


@BOTH
async def test_offsets_are_seen_when_their_transaction_is_committed(broker: TransactionalBroker, second: bool) -> None:
    one = await client(broker, second=second)
    for commit, offset in ((True, 5), (False, 9)):
        assert await one.produce(0, b"x") == 0
        assert await one.commit_offsets("g", offset) == 0
        assert await offset_of(broker, "g") == (codes.UNSTABLE_OFFSET_COMMIT, -1)
        assert await one.end(commit=commit) == 0
        await settled(broker)
        assert await offset_of(broker, "g") == (0, 5)


@BOTH
async def test_a_new_producer_fences_the_old_one_and_aborts_what_it_left(
    broker: TransactionalBroker, second: bool
) -> None:
    old = await client(broker, second=second)
    assert await old.produce(1, b"left") == 0
    old.epoch, sequences, old.sequences = old.epoch + 1, old.sequences, {}
    assert await old.append(1, b"an epoch that was never given out") == codes.INVALID_PRODUCER_EPOCH
    old.epoch, old.sequences = old.epoch - 1, sequences
    new = TransactionalClient(broker, "one", second=second, shard=1)
    assert await new.init() == codes.CONCURRENT_TRANSACTIONS
    await new.init_until_done()
    assert new.epoch > old.epoch + 1
    assert await old.append(1, b"late") == codes.INVALID_PRODUCER_EPOCH
    assert await old.add(0) == [codes.PRODUCER_FENCED]
    assert await old.end(commit=True) == codes.PRODUCER_FENCED
    assert await new.produce(1, b"new") == 0
    assert await new.end(commit=True) == 0
    await settled(broker)
    assert committed(broker) == [b"new"]


@BOTH
async def test_a_transaction_whose_timeout_is_over_is_aborted(broker: TransactionalBroker, second: bool) -> None:
    one = TransactionalClient(broker, "one", second=second)
    assert await one.init(timeout_ms=1000) == 0
    assert await one.produce(2, b"slow") == 0
    broker.now_ms += 1001
    for coordinator in broker.coordinators:
        coordinator.abort_timed_out()
    assert await settled(broker) == "CompleteAbort"
    assert await one.append(2, b"late") == codes.INVALID_PRODUCER_EPOCH
    assert committed(broker) == []


@BOTH
@pytest.mark.parametrize("killed", [0, 1])
async def test_a_killed_shard_loses_nothing_decided(broker: TransactionalBroker, second: bool, killed: int) -> None:
    """It is away while the transaction is decided, if it is not the coordinator's home; else right after."""
    nursery = broker.nursery  # type: ignore[attr-defined]
    one = await client(broker, second=second)
    for number in PARTITIONS:
        assert await one.produce(number, b"a%d" % number) == 0
    assert await one.commit_offsets("g", 5) == 0
    gone = broker.peers.pop(1)
    answer = await one.end(commit=True)
    broker.peers[1] = gone
    broker.start_shard_again(killed, nursery)
    with trio.fail_after(60):
        while answer and await one.end(commit=True):  # noqa: ASYNC110 - as clients do
            await trio.sleep(0.1)
    assert await settled(broker) == "CompleteCommit"
    assert committed(broker) == [b"a0", b"a1", b"a2", b"a3"]
    assert await offset_of(broker, "g") == (0, 5)


async def test_wrong_requests_have_kafkas_codes(broker: TransactionalBroker) -> None:
    one = TransactionalClient(broker, "one", second=False)
    assert await one.add(0) == [codes.INVALID_PRODUCER_ID_MAPPING]
    assert await one.end(commit=True) == codes.INVALID_PRODUCER_ID_MAPPING
    assert await one.init(timeout_ms=900_001) == codes.INVALID_TRANSACTION_TIMEOUT
    assert await one.init(timeout_ms=0) == codes.INVALID_TRANSACTION_TIMEOUT
    assert await one.init() == 0
    assert await one.end(commit=True) == codes.INVALID_TXN_STATE
    assert await one.append(0, b"not added") == codes.INVALID_TXN_STATE
    assert await one.send_offsets("g", 1) == codes.INVALID_TXN_STATE
    assert await one.add(0, 9) == [codes.OPERATION_NOT_ATTEMPTED, codes.UNKNOWN_TOPIC_OR_PARTITION]
    one.epoch += 1
    assert await one.add(0) == [codes.PRODUCER_FENCED]
    one.id, one.epoch = one.id + 1, 0
    assert await one.add(0) == [codes.INVALID_PRODUCER_ID_MAPPING]
    assert await one.init(known=True) == codes.PRODUCER_FENCED


async def test_the_number_of_ids_is_bounded_and_expired_ones_make_room(broker: TransactionalBroker) -> None:
    broker.image.apply(broker.image.version + 1, [("setting", "/turnstile.transactional.ids.max", "2")])
    codes_there = [await TransactionalClient(broker, f"id {n}", second=True).init() for n in range(8)]
    assert codes_there.count(0) == 4
    assert set(codes_there) == {0, codes.POLICY_VIOLATION}
    broker.now_ms += 604_800_000
    for coordinator in broker.coordinators:
        coordinator.expire()
    assert await TransactionalClient(broker, "id 7", second=True).init() == 0


async def test_a_new_id_ends_the_session_used_least_recently_and_aborts_its_transaction(
    broker: TransactionalBroker,
) -> None:
    """Redpanda's max_transactions_per_coordinator, of one shard."""
    one = broker.coordinators[0]

    def known() -> set[str]:
        return {row[0] for row in one.listing([], [], -1, "")}

    for number in range(20):
        await client(broker, f"id {number}", second=True)
    here = sorted(known())[:4]
    for coordinator in broker.coordinators:
        coordinator.reset()
    broker.image.apply(broker.image.version + 1, [("setting", "/max_transactions_per_coordinator", "2")])
    clients = []
    for name in here[:3]:
        clients.append(await client(broker, name, second=True))
        broker.now_ms += 1
        if name == here[1]:
            assert await clients[1].produce(0, b"lost") == 0
    assert known() == {here[1], here[2]}
    assert await clients[0].add(0) == [codes.INVALID_PRODUCER_ID_MAPPING]
    await client(broker, here[3], second=True)
    with trio.fail_after(30):
        while here[1] in known():  # noqa: ASYNC110 - nothing tells it
            await trio.sleep(0.01)
    assert committed(broker) == []
    assert known() == {here[2], here[3]}
    assert await clients[1].end(commit=True) == codes.INVALID_PRODUCER_ID_MAPPING
    assert await clients[2].produce(0, b"there") == 0


async def test_transactions_are_listed_and_hanging_ones_ended_by_an_administrator(broker: TransactionalBroker) -> None:
    one = await client(broker, second=False)
    assert await one.produce(0, b"a") == 0
    await client(broker, "idle", second=False)

    async def listed(version: int = 2, **filters: Any) -> list[str]:
        fields = {"state_filters": (), "producer_id_filters": (), **filters}
        answer = await broker.ask(0, 66, version, lambda types: types.ListTransactionsRequest(**fields))
        return sorted(each.transactional_id for each in answer.transaction_states)

    assert await listed() == ["idle", "one"]
    assert await listed(state_filters=["Ongoing"]) == ["one"]
    assert await listed(state_filters=["NoSuchState"]) == []
    assert await listed(producer_id_filters=[one.id]) == ["one"]
    assert await listed(transactional_id_pattern="i.*") == ["idle"]
    broker.now_ms += 100
    assert await listed(duration_filter=50) == ["one"]
    assert await listed(duration_filter=500) == []

    async def producers() -> Any:
        topics = lambda types: [types.TopicRequest(name="t", partition_indexes=[0])]  # noqa: E731
        answer = await broker.ask(0, 61, 0, lambda types: types.DescribeProducersRequest(topics=topics(types)))
        (producer,) = answer.topics[0].partitions[0].active_producers
        return producer

    found = await producers()
    assert (found.producer_id, found.producer_epoch, found.current_txn_start_offset) == (one.id, one.epoch, 0)
    answer = await broker.ask(
        0, 27, 1,
        lambda types: types.WriteTxnMarkersRequest(
            markers=[
                types.WritableTxnMarker(
                    producer_id=one.id, producer_epoch=one.epoch, transaction_result=False, coordinator_epoch=0,
                    topics=[types.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
                )
            ]
        ),
    )  # fmt: skip
    assert answer.markers[0].topics[0].partitions[0].error_code == 0
    assert (await producers()).current_txn_start_offset == -1
