"""away_homes.py: each batch of charges is decided once, by its home's answer or here, under any order of events."""

import random

import pytest

from shards.quotas.away_homes import ANSWER_WITHIN_MS, AwayHomes


@pytest.mark.parametrize("seed", range(30))
def test_each_batch_is_decided_once(seed):
    chance = random.Random(seed)
    homes = AwayHomes([1, 2])
    now_ms, decided, under_way = 0, [], []
    for number in range(400):
        now_ms += chance.randint(0, 60)
        shard = chance.choice([1, 2])
        event = chance.choice(["ask", "answer", "time", "lost", "back"])
        if event == "ask" and shard not in homes.away:
            under_way.append((shard, homes.ask(shard, number, now_ms=now_ms)))
        elif event == "answer" and under_way:
            home, pending = under_way.pop(chance.randrange(len(under_way)))
            if homes.answered(home, pending):
                decided.append(pending.batch)
        elif event == "time":
            decided += homes.overdue(now_ms=now_ms)
            assert (homes.next_due_ms() or now_ms + 1) > now_ms
        elif event == "lost":
            decided += homes.mark_away(shard)
            assert shard in homes.away
        elif event == "back":
            homes.mark_back(shard)
            assert shard not in homes.away
        homes.check()
    for shard in (1, 2):
        decided += homes.mark_away(shard)
    everything = decided + [pending.batch for _, pending in under_way if not pending.over]
    assert len(everything) == len(set(everything))


def test_a_batch_is_due_a_quarter_of_a_second_after_it_left():
    homes = AwayHomes([1])
    homes.ask(1, "batch", now_ms=100)
    assert homes.next_due_ms() == 100 + ANSWER_WITHIN_MS
    assert homes.overdue(now_ms=99 + ANSWER_WITHIN_MS) == []
    assert homes.overdue(now_ms=100 + ANSWER_WITHIN_MS) == ["batch"]
    assert homes.away == {1}
