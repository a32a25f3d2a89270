"""Redpanda's client quotas across the shards of a broker: one bucket a key while its home is there, one a shard while it is not."""

from hypothesis import given
from hypothesis import strategies as st
from one_clock import OneClock

from shards.limits.client_buckets import ClientBuckets
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE
from shards.loop.deferred import Deferred
from shards.quotas.away_homes import ANSWER_WITHIN_MS
from shards.quotas.shared_buckets import SharedBuckets

SHARDS = 3
RATE = 1000
CLIENTS = ("a", "b", "c", "d")
ANY = (("client-id", None),)
QUOTAS = {ANY: {kind: float(RATE) for kind in (PRODUCE, FETCH, MUTATION)}}


class Broker(OneClock):
    """Its shards."""

    def __init__(self):
        super().__init__(SHARDS)
        self.shards = [
            SharedBuckets(shard, SHARDS, call=self.call, now_ms=lambda: self.now_ms, timers=self)
            for shard in range(SHARDS)
        ]
        for shard, served in zip(self.shards, self.served, strict=True):
            shard.serve_on(served.__setitem__)
            shard.set_quotas(QUOTAS)

    def begin(self, shard, kind, client, amount):
        key = self.shards[shard].match(kind, "", client).key
        return self.shards[shard].charge(kind, key, amount)

    def charge(self, shard, kind, client, amount):
        """The delay, once it is there."""
        charged = self.begin(shard, kind, client, amount)
        self.answer_calls()
        return charged.result() if isinstance(charged, Deferred) else charged

    def home(self, client, kind=PRODUCE):
        shard = self.shards[0]
        return shard.home(kind, shard.match(kind, "", client).key)


STEPS = st.lists(
    st.tuples(st.integers(0, SHARDS - 1), st.sampled_from([PRODUCE, FETCH, MUTATION]), st.sampled_from(CLIENTS),
              st.integers(0, 3 * RATE), st.integers(0, 2000)),
    max_size=30,
)  # fmt: skip


@given(STEPS)
def test_while_homes_are_there_any_shard_answers_as_one_bucket_does(steps):
    broker, one = Broker(), ClientBuckets()
    one.set_quotas(QUOTAS)
    for shard, kind, client, amount, ms in steps:
        expected = one.charge(kind, one.match(kind, "", client).key, amount, now_ms=broker.now_ms)
        assert broker.charge(shard, kind, client, amount) == expected
        broker.wait(ms)


def test_the_keys_of_clients_have_homes_on_several_shards():
    assert len({Broker().home(f"client-{number}") for number in range(30)}) == SHARDS


def test_a_home_that_is_lost_is_stood_in_for_by_a_full_bucket_and_asked_again_when_it_is_back():
    broker = Broker()
    home = broker.home("a")
    other = (home + 1) % SHARDS
    assert broker.charge(other, PRODUCE, "a", 3 * RATE) == 2000
    broker.is_lost = True
    broker.shards[other].peer_lost(home)
    assert broker.charge(other, PRODUCE, "a", 2 * RATE) == 1000, "a bucket of its own"
    broker.is_lost = False
    broker.shards[other].peer_up(home)
    assert broker.charge(other, PRODUCE, "a", 0) == 2000


def test_a_home_that_does_not_answer_is_away_until_it_does():
    broker = Broker()
    home = broker.home("a")
    other = (home + 1) % SHARDS
    late = broker.begin(other, PRODUCE, "a", 2 * RATE)
    broker.wait(ANSWER_WITHIN_MS)
    assert late.result() == 1000
    late_calls, broker.asked = broker.asked, []
    assert broker.begin(other, PRODUCE, "a", 1000) == 2000, "decided at once, and the home is asked for nothing"
    assert [args[-1] for *_, args in broker.asked] == [0]
    broker.asked = late_calls + broker.asked
    broker.answer_calls()
    assert broker.charge(other, PRODUCE, "a", 0) == 1000, "what the home has recorded"


def test_what_is_unset_while_a_charge_is_under_way_delays_no_client():
    broker = Broker()
    other = (broker.home("a") + 1) % SHARDS
    charged = broker.begin(other, PRODUCE, "a", 5 * RATE)
    for shard in broker.shards:
        shard.set_quotas({})
    broker.answer_calls()
    assert charged.result() == 0
    assert not broker.shards[0].in_use(PRODUCE)
