"""Which shards are asked, what is decided without them, and what they are told: under any order of events."""

import random

import pytest

from shards.quotas.attendance import ANSWER_WITHIN_MS, Attendance
from shards.quotas.history import MeterKey

KEYS = [MeterKey("producer_byte_rate", "", name) for name in "abcdef"]


@pytest.mark.parametrize("seed", range(30))
def test_each_batch_is_decided_once_and_every_key_is_told(seed):
    chance = random.Random(seed)
    attendance = Attendance([1, 2])
    now_ms, decided, under_way, tells = 0, [], [], []
    owed = {1: set(), 2: set()}
    for number in range(400):
        now_ms += chance.randint(0, 60)
        shard = chance.choice([1, 2])
        what = chance.choice(["ask", "answer", "time", "lost", "up", "publish", "tell", "told", "failed"])
        if what == "ask" and shard not in attendance.away:
            under_way.append((shard, attendance.ask(shard, number, now_ms=now_ms)))
        elif what == "answer" and under_way:
            home, asked = under_way.pop(chance.randrange(len(under_way)))
            if attendance.answered(home, asked):
                decided.append(asked.batch)
        elif what == "time":
            decided += attendance.overdue(now_ms=now_ms)
            assert (attendance.next_due_ms() or now_ms + 1) > now_ms
        elif what == "lost":
            decided += attendance.lost(shard)
            assert shard in attendance.away
        elif what == "up":
            attendance.greeted(shard, KEYS)
            tells = [each for each in tells if each[0] != shard]
            owed[shard] = set(KEYS)
        elif what == "publish":
            place = chance.choice(KEYS)
            attendance.publish(place, number)
            for keys in owed.values():
                keys.add(place)
        elif what == "tell" and attendance.tells(shard):
            tells.append((shard, attendance.tell(shard, 3)))
            assert [each for each, _ in tells].count(shard) == 1, "one_tell"
        elif what in ("told", "failed") and tells:
            to, tell = tells.pop(0)
            attendance.told(to, tell, arrived=what == "told")
            if what == "told":
                owed[to] -= {*tell.whole, *tell.since} - {*attendance._others[to].since, *attendance._others[to].whole}
                assert to not in attendance.away
        attendance.check()
    for shard in (1, 2):
        decided += attendance.lost(shard)
        attendance.greeted(shard, ())
        attendance.publish(KEYS[0], 1)
        assert attendance.tells(shard)
    everything = decided + [asked.batch for _, asked in under_way if not asked.over]
    assert len(everything) == len(set(everything))


def test_a_batch_is_due_a_quarter_of_a_second_after_it_left():
    attendance = Attendance([1])
    attendance.ask(1, "batch", now_ms=100)
    assert attendance.next_due_ms() == 100 + ANSWER_WITHIN_MS
    assert attendance.overdue(now_ms=99 + ANSWER_WITHIN_MS) == []
    assert attendance.overdue(now_ms=100 + ANSWER_WITHIN_MS) == ["batch"]
    assert attendance.away == {1}


def test_a_tell_that_failed_is_made_again_from_where_it_began():
    attendance = Attendance([1])
    attendance.publish(KEYS[0], 4)
    tell = attendance.tell(1, 10)
    attendance.publish(KEYS[0], 9)
    attendance.told(1, tell, arrived=False)
    assert attendance.tell(1, 10).since == {KEYS[0]: 4}
