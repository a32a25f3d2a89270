"""The observed world of client quotas: the decisions of enforced ones, counted, and nothing else changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.metrics.observed_quota_counts import summed_quotas
from broker.serve.call import Call
from broker.serve.client_quotas import ClientQuotas, side_by_side
from shards.config.image import ClusterImage
from shards.errors import PeerLost
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from shards.limits.quota_entities import key_of_entity
from shards.loop.deferred import Deferred
from shards.quotas.sharded_quotas import ShardedQuotas

Quotas = dict[tuple[tuple[str, str | None], ...], dict[str, float]]
APP = (("client-id", "app"),)
ANY = (("client-id", None),)


class Notes:
    """ChargeNotes: what was decided."""

    def __init__(self, decided: list[Any]) -> None:
        self._decided = decided

    def charged(self, charge: Any, decision: Any, limit: float, **how: Any) -> None:
        self._decided.append((charge, decision, limit))

    def began(self, place: Any, state: Any, *, at_ms: int) -> None: ...
    def inserted(self, place: Any, amount: float, *, recorded_ms: int, at_ms: int) -> None: ...
    def reset(self, *, at_ms: int) -> None: ...


class Broker:
    """The client quotas of two shards, which reach each other by plain calls."""

    def __init__(self, *, enforced: Quotas | None = None, observed: Quotas | None = None) -> None:
        self.now_ms = 0
        self.image = ClusterImage(0)
        self.enforced: list[Any] = []
        self.observed: list[Any] = []
        self.counted: dict[str, int] = {}
        self.mistakes: list[Exception] = []
        self.is_down = False
        self._served: list[dict[str, Callable[..., Any]]] = [{}, {}]
        self.shards = [self._start(shard) for shard in (0, 1)]
        self.set("quota", enforced or {})
        self.set("observed_quota", observed or {})

    def _start(self, shard: int) -> ClientQuotas:
        make = partial(
            ShardedQuotas, shard, 2, now_ms=lambda: self.now_ms, touch=lambda: None, after=lambda ms, function: None,
            mistaken=self.mistakes.append,
        )  # fmt: skip
        counters: Any = SimpleNamespace(add=self._count)
        notes = Notes(self.enforced), Notes(self.observed)
        unlimited: Any = SimpleNamespace(serve_on=lambda serve: None, reset=lambda: None)
        none: Any = SimpleNamespace(shared=unlimited, follow=lambda: None, in_use=lambda kind: False)
        quotas = side_by_side(
            make, self.image, partial(self._call, shard), counters, self.mistakes.append, notes, throughput=unlimited,
            buckets=none,
        )  # fmt: skip
        quotas.serve_on(self._served[shard].__setitem__)
        return quotas

    def _count(self, name: str, amount: int) -> None:
        self.counted[name] = self.counted.get(name, 0) + amount

    def _call(self, shard: int, peer: int, method: str, *args: Any) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()
        if self.is_down:
            answer.fail(PeerLost("down"))
        else:
            answer.resolve(self._served[peer][method](shard, *args))
        return answer

    def set(self, kind: str, quotas: Quotas) -> None:
        """The quotas in force, or those observed, are these and no others."""
        known = self.image.quotas if kind == "quota" else self.image.observed_quotas
        gone = [[kind, key_of_entity(entity), None] for entity in known if entity not in quotas]
        now = [[kind, key_of_entity(entity), values] for entity, values in quotas.items()]
        self.image.apply(self.image.version + 1, [*gone, *now])
        for each in self.shards:
            each.follow()

    def flush(self) -> None:
        for each in self.shards:
            each.flush()

    def summary(self) -> Any:
        return summed_quotas(each.rehearsal.counts.describe() for each in self.shards)


def call(client_id: str = "app", user: str = "ANONYMOUS") -> Call[Any]:
    return Call(0, 0, client_id=client_id, user=user)


REQUESTS = st.lists(
    st.tuples(
        st.sampled_from([1, 40, 500, 1_100, 30_000]),  # ms since the one before
        st.sampled_from([0, 1]),
        st.sampled_from([PRODUCE, FETCH, REQUEST, MUTATION]),
        st.sampled_from(["app", "b", "c"]),
        st.sampled_from([1, 30, 400, 20_000]),
    ),
    max_size=40,
)
QUOTAS: Quotas = {
    APP: {PRODUCE: 100.0, FETCH: 50.0, REQUEST: 5.0, MUTATION: 1.0},
    ANY: {PRODUCE: 1_000.0, MUTATION: 3.0},
}


@given(REQUESTS, st.booleans())
def test_an_observed_quota_decides_as_the_same_quota_enforced(requests: list[Any], strict: bool) -> None:
    enforcing, observing = Broker(enforced=QUOTAS), Broker(observed=QUOTAS)
    for after_ms, shard, kind, client_id, amount in requests:
        for broker in (enforcing, observing):
            broker.now_ms += after_ms
        enforcing.shards[shard].meters.charge(kind, "ANONYMOUS", client_id, amount, strict=strict and kind == MUTATION)
        rehearsal = observing.shards[shard].rehearsal
        request = call(client_id)
        if kind == MUTATION:
            assert rehearsal.mutate(request, amount, strict=strict) is not None
        rehearsal.charge(request, [] if kind == MUTATION else [(kind, amount)], withheld=False)
        enforcing.flush()
        observing.flush()
    assert observing.observed == enforcing.enforced
    assert observing.enforced == []
    throttled = [decision for _, decision, _ in enforcing.enforced if decision.throttle_ms]
    assert observing.summary().requests == len(throttled)
    assert observing.summary().throttle_ms == sum(each.throttle_ms for each in throttled)
    assert not observing.mistakes


def test_only_clients_whose_quota_would_be_another_one_are_charged() -> None:
    broker = Broker(enforced={APP: {PRODUCE: 100.0}, ANY: {PRODUCE: 500.0}}, observed={ANY: {PRODUCE: 50.0}})
    for client_id in ("app", "other"):
        broker.shards[0].rehearsal.charge(call(client_id), [(PRODUCE, 10_000), (FETCH, 10_000)], withheld=False)
    broker.flush()
    assert [(charge.client_id, charge.kind, limit) for charge, _, limit in broker.observed] == [
        ("other", PRODUCE, 50.0)
    ]
    assert [(each.client_id, each.requests) for each in broker.summary().clients] == [("other", 1)]


def test_a_fetch_that_a_quota_in_force_withholds_costs_nothing_there() -> None:
    broker = Broker(observed={APP: {FETCH: 10.0, REQUEST: 1.0}})
    broker.shards[0].rehearsal.charge(call(), [(FETCH, 10_000), (REQUEST, 0.1)], withheld=True)
    broker.flush()
    assert [charge.kind for charge, _, _ in broker.observed] == [REQUEST]


def test_the_bytes_of_a_fetch_that_another_observed_quota_withholds_are_taken_back() -> None:
    broker = Broker(observed={APP: {FETCH: 1e6, REQUEST: 1.0}})
    broker.shards[0].rehearsal.charge(call(), [(FETCH, 4_000), (REQUEST, 5_000.0)], withheld=False)
    broker.flush()
    assert [charge.amount for charge, _, _ in broker.observed if charge.kind == FETCH] == [4_000, -4_000]
    assert broker.summary().requests == 1
    assert broker.counted[f"observed_throttled_{REQUEST}"] == 1 and f"observed_throttled_{FETCH}" not in broker.counted


def test_mutations_that_fail_are_returned_unless_the_observed_quota_refused_them() -> None:
    broker = Broker(observed={APP: {MUTATION: 1.0}})
    rehearsal = broker.shards[0].rehearsal
    request = call()
    first, second = (rehearsal.mutate(request, 50, strict=True) for _ in range(2))
    assert first is not None and second is not None
    rehearsal.charge(request, [], withheld=False)
    for answer in (first, second):
        rehearsal.take_back(call(), 50, answer)
    broker.flush()
    assert [(charge.amount, decision.accepted) for charge, decision, _ in broker.observed] == [
        (50, True), (50, False), (-50, True),
    ]  # fmt: skip
    assert broker.summary().requests == 1
    assert [(each.quota, each.refused) for each in broker.summary().quotas] == [(MUTATION, 1)]


def test_a_request_that_two_observed_quotas_would_have_throttled_is_counted_once() -> None:
    broker = Broker(observed={APP: {MUTATION: 1.0, REQUEST: 1.0}})
    rehearsal, request = broker.shards[0].rehearsal, call()
    rehearsal.mutate(request, 50, strict=False)
    rehearsal.charge(request, [(REQUEST, 5_000.0)], withheld=False)
    broker.flush()
    summary = broker.summary()
    delays = {charge.kind: decision.throttle_ms for charge, decision, _ in broker.observed}
    assert (summary.requests, summary.throttle_ms) == (1, max(delays.values()))
    assert {each.quota: each.throttle_ms for each in summary.quotas} == delays
    assert [each.requests for each in summary.clients] == [1]


def test_an_answer_that_tells_no_throttle_of_mutations_is_counted_for_those_refused() -> None:
    broker = Broker(observed={APP: {MUTATION: 1.0}})
    rehearsal = broker.shards[0].rehearsal
    for _ in range(2):
        metadata = call()
        metadata.tells_mutations = False
        rehearsal.mutate(metadata, 50, strict=True)
        rehearsal.charge(metadata, [], withheld=False)
    broker.flush()
    summary = broker.summary()
    assert (summary.requests, summary.throttle_ms, summary.clients) == (0, 0, [])
    assert [(each.quota, each.requests, each.refused) for each in summary.quotas] == [(MUTATION, 0, 1)]
    assert broker.counted == {"observed_mutations_refused": 1}


def test_another_value_counts_anew_and_the_end_empties_the_meters() -> None:
    broker = Broker(observed={APP: {PRODUCE: 10.0}})
    rehearsal = broker.shards[0].rehearsal

    def produce() -> int:
        rehearsal.charge(call(), [(PRODUCE, 150)], withheld=False)
        broker.flush()
        return int(broker.summary().requests)

    assert produce() == 1
    broker.set("observed_quota", {APP: {PRODUCE: 20.0}})
    assert broker.summary().requests == 0
    assert produce() == 1  # what was recorded before still counts
    broker.set("observed_quota", {})
    assert not rehearsal.is_on
    broker.set("observed_quota", {APP: {PRODUCE: 20.0}})
    assert produce() == 0


def test_a_home_that_is_away_has_a_stand_in() -> None:
    broker = Broker(observed={APP: {PRODUCE: 10.0}})
    broker.is_down = True
    for shard in broker.shards:
        shard.rehearsal.charge(call(), [(PRODUCE, 1_000)], withheld=False)
    broker.flush()
    assert broker.summary().requests == 2 and not broker.mistakes


@pytest.mark.parametrize("client_id", ["x" * 30_000, "\0", "ü\n"])
def test_names_of_any_kind_are_counted_bounded(client_id: str) -> None:
    broker = Broker(observed={ANY: {PRODUCE: 10.0}})
    broker.shards[0].rehearsal.charge(call(client_id), [(PRODUCE, 1_000)], withheld=False)
    broker.flush()
    (found,) = broker.summary().clients
    assert len(found.client_id) <= 300 and found.client_id[:2] == client_id[:2]
