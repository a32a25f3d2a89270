"""replication_queue.py: every key is sent to every shard, in one update at a time, under any order of events."""

import random

import pytest

from shards.quotas.charge_history import MeterKey
from shards.quotas.replication_queue import ReplicationQueue

KEYS = [MeterKey("producer_byte_rate", "", name) for name in "abcdef"]


@pytest.mark.parametrize("seed", range(30))
def test_every_key_that_is_owed_is_sent(seed):
    chance = random.Random(seed)
    away, under_way = set(), []
    queue = ReplicationQueue([1, 2], away)
    owed = {1: set(), 2: set()}
    for number in range(400):
        shard = chance.choice([1, 2])
        event = chance.choice(["lost", "up", "publish", "send", "arrived", "failed"])
        if event == "lost":
            away.add(shard)
        elif event == "up":
            queue.add_everything(shard, KEYS)
            under_way = [each for each in under_way if each[0] != shard]
            owed[shard] = set(KEYS)
        elif event == "publish":
            key = chance.choice(KEYS)
            queue.add(key, number)
            for keys in owed.values():
                keys.add(key)
        elif event == "send" and queue.has_update(shard):
            under_way.append((shard, queue.take_update(shard, 3)))
            assert [each for each, _ in under_way].count(shard) == 1, "one_update_under_way"
        elif event == "arrived" and under_way:
            to, update = under_way.pop(0)
            queue.arrived(to)
            away.discard(to)
            owed[to] -= {*update.whole, *update.since} - {*queue._others[to].since, *queue._others[to].whole}
        elif event == "failed" and under_way:
            queue.failed(*under_way.pop(0))
    for shard in (1, 2):
        for to, update in under_way:
            if to == shard:
                queue.failed(to, update)
        while owed[shard]:
            assert queue.has_update(shard), "a key that is owed is never forgotten"
            update = queue.take_update(shard, 3)
            queue.arrived(shard)
            owed[shard] -= {*update.whole, *update.since}


def test_a_shard_that_is_away_is_sent_an_update_of_nothing():
    queue = ReplicationQueue([1], {1})
    assert queue.has_update(1)
    assert not queue.take_update(1, 10).since and not queue.has_update(1), "one_update_under_way"


def test_an_update_that_failed_is_made_again_from_where_it_began():
    queue = ReplicationQueue([1], set())
    queue.add(KEYS[0], 4)
    update = queue.take_update(1, 10)
    queue.add(KEYS[0], 9)
    queue.failed(1, update)
    assert queue.take_update(1, 10).since == {KEYS[0]: 4}
