"""The throughput of a broker across its shards: one pair of buckets while the home is there, one a shard while it is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_clock import OneClock

from shards.limits.node_throughput import NodeDelays
from shards.loop.deferred import Deferred
from shards.quotas.away_homes import ANSWER_WITHIN_MS
from shards.quotas.shared_throughput import HOME, SharedThroughput

SHARDS = 3
RATE = 1000


class Broker(OneClock):
    """Its shards."""

    def __init__(self, out_bps=None):
        super().__init__(SHARDS)
        self.shards = [
            SharedThroughput(shard, call=self.call, now_ms=lambda: self.now_ms, timers=self) for shard in range(SHARDS)
        ]
        self.shards[HOME].serve_on(self.served[HOME].__setitem__)
        for shard in self.shards:
            shard.set_rates(RATE, out_bps)

    def charge(self, shard, received, sent=0):
        """The delays, once they are there."""
        charged = self.shards[shard].charge(received, sent)
        self.answer_calls()
        return charged.result() if isinstance(charged, Deferred) else charged


def test_all_shards_share_one_bucket_a_direction_that_begins_empty():
    broker = Broker(out_bps=RATE)
    assert broker.charge(1, 100) == (100, 0)
    assert broker.charge(2, 100, sent=50) == (200, 50)
    assert broker.charge(HOME, 0) == (200, 50)
    broker.wait(1200)
    assert broker.charge(2, RATE) == (0, 0), "a second's worth, full again"


def test_a_home_that_is_lost_is_stood_in_for_at_once_and_asked_again_when_it_is_back():
    broker = Broker()
    broker.charge(HOME, 5000)
    broker.is_lost = True
    assert broker.charge(1, 100) == (100, 0), "its own bucket, which begins empty"
    assert broker.charge(1, 100) == (200, 0)
    broker.is_lost = False
    assert broker.charge(1, 100) == (300, 0), "still its own; but the home has answered"
    assert broker.charge(1, 0) == (5000, 0)


def test_a_home_that_does_not_answer_is_waited_for_no_longer_than_a_moment():
    broker = Broker()
    charged = broker.shards[1].charge(RATE, 0)
    broker.wait(ANSWER_WITHIN_MS - 1)
    assert not charged.resolved
    broker.wait(1)
    assert charged.result() == NodeDelays(750, 0), "by then a quarter of it is paid"
    broker.answer_calls()
    assert charged.result() == NodeDelays(750, 0)
    assert broker.shards[1].charge(0, 0) == NodeDelays(750, 0), "it is away until it answers again"
    broker.answer_calls()
    assert isinstance(broker.shards[1].charge(0, 0), Deferred)


def test_a_link_that_comes_up_ends_standing_in():
    broker = Broker()
    broker.shards[2].peer_lost(HOME)
    assert broker.charge(2, 10) == (10, 0)
    broker.shards[2].peer_up(HOME)
    assert broker.charge(2, 0) == (0, 0)


def test_another_limit_begins_anew_and_the_same_goes_on():
    broker = Broker()
    broker.charge(HOME, 5000)
    broker.shards[HOME].set_rates(RATE, 7)
    assert broker.charge(HOME, 0) == (5000, 0)
    broker.shards[HOME].set_rates(RATE * 2, 7)
    assert broker.charge(HOME, 200) == (100, 0)
    broker.shards[HOME].set_rates(None, 7)
    assert broker.charge(HOME, 200) == (0, 0)
    broker.shards[HOME].set_rates(RATE, None)
    broker.charge(HOME, 5000)
    broker.shards[HOME].reset()
    assert broker.charge(HOME, 10) == (10, 0)


@pytest.mark.parametrize("is_lost", [False, True])
@given(st.lists(st.tuples(st.integers(0, SHARDS - 1), st.integers(0, 500), st.integers(0, 3000)), max_size=40))
def test_clients_that_wait_get_no_more_than_the_limit(is_lost, uses):
    """always_limited, rate_a_shard: what passes is at most the limit by time, a second of it, and one request's excess."""
    broker = Broker()
    broker.is_lost = is_lost
    buckets = SHARDS if is_lost else 1
    passed = 0
    for shard, after_ms, size in uses:
        broker.wait(after_ms)
        passed += size
        broker.wait(broker.charge(shard, size).in_ms)
        assert passed <= buckets * RATE * (1 + broker.now_ms / 1000) + buckets * (1 + len(uses))
