"""The cache of fetch sessions: who gets one, who loses his, and what a session tells again (KIP-227)."""

import random
from typing import Any
from uuid import UUID

import pytest

from broker.kafka.records.fetch_sessions import (
    EVICTION_MS,
    FINAL_EPOCH,
    CachedPartition,
    FetchSession,
    FetchSessionCache,
    SessionPartitions,
    next_epoch,
)
from broker.storage.fetch_in_progress import PartitionFetch
from broker.wire import codes

OLD = EVICTION_MS + 1
ASKED = PartitionFetch("t", 0, -1, 0, 1000)


def partitions(count: int) -> SessionPartitions:
    return {("t", number): CachedPartition(("t", number), ASKED) for number in range(count)}


def create(
    cache: FetchSessionCache, size: int = 1, *, slots: int = 2, at: int = 0, privileged: bool = False
) -> FetchSession | None:
    made = cache.create(size, lambda: partitions(size), slots=slots, by_id=False, privileged=privileged, now_ms=at)
    cache.check()
    return made


def made(cache: FetchSessionCache, size: int = 1, **more: Any) -> FetchSession:
    session = create(cache, size, **more)
    assert session is not None
    return session


def is_there(cache: FetchSessionCache, session: FetchSession) -> bool:
    return cache.find(session.id, session.epoch, by_id=False) is session


def used(cache: FetchSessionCache, session: FetchSession, *, at: int) -> None:
    cache.touch(session, now_ms=at)
    cache.check()


def test_a_full_cache_of_young_sessions_takes_no_more() -> None:
    cache = FetchSessionCache(0, 1)
    made(cache), made(cache)
    assert create(cache, 100, at=EVICTION_MS) is None


def test_a_session_that_was_not_used_for_long_goes_first() -> None:
    cache = FetchSessionCache(0, 1)
    idle, busy = made(cache, 9), made(cache, 1)
    used(cache, busy, at=OLD)
    assert create(cache, at=OLD)
    assert not is_there(cache, idle) and is_there(cache, busy)


def test_of_old_sessions_in_use_the_smallest_goes_for_a_larger_one_and_for_no_other() -> None:
    cache = FetchSessionCache(0, 1)
    small, large = made(cache, 2), made(cache, 5)
    for session in (large, small):
        used(cache, session, at=OLD)
    assert create(cache, 2, at=OLD) is None
    assert create(cache, 3, at=OLD)
    assert not is_there(cache, small) and is_there(cache, large)


def test_a_followers_session_evicts_a_consumers_whatever_their_sizes_and_ages_and_not_the_other_way_round() -> None:
    cache = FetchSessionCache(0, 1)
    consumers, followers = made(cache, 9), made(cache, 1, privileged=True)
    assert create(cache, 1, privileged=True)
    assert not is_there(cache, consumers)
    for session in (followers, followers):
        used(cache, session, at=OLD)
    assert is_there(cache, followers)


def test_a_young_followers_session_is_evicted_by_none() -> None:
    cache = FetchSessionCache(0, 1)
    made(cache, 1, privileged=True), made(cache, 1, privileged=True)
    assert create(cache, 9, privileged=True) is None


@pytest.mark.parametrize(("slots", "each"), [(0, [0, 0, 0]), (1, [1, 0, 0]), (7, [3, 2, 2]), (9, [3, 3, 3])])
def test_shards_share_the_slots_of_their_broker(slots: int, each: list[int]) -> None:
    for shard, expected in enumerate(each):
        cache = FetchSessionCache(shard, 3)
        while create(cache, slots=slots):
            pass
        assert len(cache) == expected


def test_no_two_shards_give_out_the_same_id() -> None:
    ids = [{made(FetchSessionCache(shard, 3), slots=3).id for _ in range(50)} for shard in range(3)]
    assert max(ids[0]) < min(ids[1]) and max(ids[1]) < min(ids[2]) < max(ids[2]) < 1 << 31 and min(ids[0]) > 0


def test_a_request_has_to_name_its_session_its_epoch_and_its_kind_of_names() -> None:
    cache = FetchSessionCache(0, 1)
    session = made(cache)
    assert cache.find(session.id, 1, by_id=False) is session
    assert cache.find(session.id + 1, 1, by_id=False) == codes.FETCH_SESSION_ID_NOT_FOUND
    assert cache.find(session.id, 2, by_id=False) == codes.INVALID_FETCH_SESSION_EPOCH
    assert cache.find(session.id, 1, by_id=True) == codes.FETCH_SESSION_TOPIC_ID_ERROR


def test_epochs_begin_again_at_one() -> None:
    assert [next_epoch(each) for each in (0, 1, (1 << 31) - 1, FINAL_EPOCH)] == [1, 2, 1, FINAL_EPOCH]


def answer(code: int = 0, *, high: int = 5, start: int = 0, records: bytes = b"") -> Any:
    return code, high, start, records


TOLD = [
    ("nothing new", answer(), False),
    ("records", answer(records=b"r"), True),
    ("another end", answer(high=6), True),
    ("another start", answer(start=1), True),
    ("an error", answer(codes.NOT_LEADER_OR_FOLLOWER, high=-1, start=-1), True),
]


@pytest.mark.parametrize(("what", "second", "told"), TOLD)
def test_what_is_told_again(what: str, second: Any, told: bool) -> None:
    partition = CachedPartition(("t", 0), ASKED)
    assert partition.mark_sent(answer())
    assert partition.mark_sent(second) is told
    assert partition.mark_sent(second) is (what in ("records", "an error")), "unless it is news"


def test_after_an_error_the_partition_is_told_though_it_is_as_it_was() -> None:
    partition = CachedPartition(("t", 0), ASKED)
    partition.mark_sent(answer())
    partition.mark_sent(answer(codes.KAFKA_STORAGE_ERROR))
    assert partition.mark_sent(answer())


def test_partitions_with_records_go_to_the_end_of_their_session() -> None:
    session = made(FetchSessionCache(0, 1), 3)
    asked = [*session.partitions.values()]
    session.mark_sent(asked, [answer(records=b"r"), answer(), answer(records=b"r")])
    assert [number for _, number in session.partitions] == [1, 0, 2]


def test_what_a_withheld_answer_said_is_said_again() -> None:
    session = made(FetchSessionCache(0, 1), 2)
    asked, answers = [*session.partitions.values()], [answer(), answer()]
    told = session.mark_sent(asked, answers)
    assert len(told) == 2 and not session.mark_sent(asked, answers)
    session.mark_unsent(told)
    assert session.mark_sent(asked, answers) == told


def test_ids_become_the_names_they_have_now() -> None:
    topic_id = UUID(int=7)
    session = FetchSession(1, {}, by_id=True, privileged=False, now_ms=0)
    session.update([((topic_id, 0), ASKED._replace(topic=""))], [])
    session.resolve(1, lambda each: "named" if each == topic_id else "")
    assert [each.asked.topic for each in session.partitions.values()] == ["named"]


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_ten_plain_lines(seed: int) -> None:
    """Against Kafka's rules, as text has them, over all sessions at each step."""
    chance = random.Random(seed)
    cache, model, now = FetchSessionCache(0, 1), {}, 0
    for _ in range(2000):
        now += chance.choice((0, 1000, EVICTION_MS // 3))
        if model and chance.random() < 0.5:
            session = chance.choice([*model.values()])
            for number in range(chance.randrange(3)):
                session.update([(("u", number), ASKED)], [])
            used(cache, session, at=now)
            continue
        size, privileged = chance.randrange(1, 6), chance.random() < 0.2
        expected = len(model) < 4
        victims = [each for each in model.values() if now - each.used_ms > EVICTION_MS]
        if not expected and victims:
            oldest = min(each.used_ms for each in victims)
            victims = [each for each in victims if each.used_ms == oldest]
            expected = True
        elif not expected:
            open_to = [
                each for each in model.values()
                if each.used_ms - each.created_ms > EVICTION_MS or (privileged and not each.privileged)
            ]  # fmt: skip
            victims = sorted(open_to, key=lambda each: (each.privileged, each.size, each.id))[:1]
            expected = bool(victims) and (privileged, size, 0) > (victims[0].privileged, victims[0].size, victims[0].id)
        session_made = create(cache, size, slots=4, at=now, privileged=privileged)
        assert (session_made is not None) == expected
        gone = [each for each in model.values() if not is_there(cache, each)]
        assert len(gone) <= 1 and all(each in victims for each in gone)
        model = {key: each for key, each in model.items() if each not in gone}
        if session_made is not None:
            model[session_made.id] = session_made
    assert len(cache) == len(model) == 4
