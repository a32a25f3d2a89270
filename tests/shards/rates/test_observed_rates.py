"""Observed rates over several shards, under virtual time: schedules of arrivals, slow and lost peers, by seed."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import pytest
from cluster_pools import unrated

from shards.config.image import ClusterImage
from shards.errors import PeerLost
from shards.limits.observed_windows import ADDRESS, BACK, LISTENER, USER, WITHIN, ObservedWindows, RateAnswer
from shards.limits.quota_entities import key_of_entity
from shards.limits.rate import Window
from shards.limits.rate_replay import RateQuotas
from shards.loop.deferred import Deferred
from shards.ownership import home_of
from shards.rates.observed_rates import GATHER_MS, UNAVAILABLE, Asker, Beyond, ObservedRates

SHARDS = 3
LISTENERS = ("A", "B")
RATES = {LISTENER: ["A", "B"], ADDRESS: [f"10.0.0.{n}" for n in range(6)], USER: ["alice", "bob"]}
OBSERVED: dict[str, tuple[str, str, object]] = {
    LISTENER: ("observed", "/max.connection.creation.rate", "4"),
    ADDRESS: ("observed_quota", key_of_entity((("ip", None),)), {"connection_creation_rate": 1}),
    USER: ("observed", "/turnstile.max.connection.creation.rate.per.user", "2"),
}


class Home:
    """The notes of one shard, done again: each answer has to be Kafka's."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._windows = ObservedWindows(Window())

    def began(self, *, at_ms: int) -> None:
        self._windows = ObservedWindows(Window())

    def within(self, what: str, names: Sequence[str], *, asker: int, at_ms: int) -> None:
        for name in names:
            self.answered(what, name, WITHIN, 1, asker=asker, at_ms=at_ms)

    def answered(self, what: str, name: str, answer: RateAnswer, arrivals: int, *, asker: int, at_ms: int) -> None:
        self._world.told[name, asker] += [answer] * arrivals if what != BACK else []
        if what in (LISTENER, BACK):
            quotas = RateQuotas(self._world.quota(f"listener:{name}"), self._world.quota("broker"))
            if what == BACK:
                self._windows.take_back(name, quotas, arrivals, now_ms=at_ms)
            else:
                assert self._windows.arrive(name, quotas, arrivals, now_ms=at_ms) == [(answer, arrivals)]
            return
        arrive = self._windows.log_in if what == USER else self._windows.arrive_from
        delays = dict(arrive([name] * arrivals, {name: self._world.quota(f"{what}:{name}")}, now_ms=at_ms))
        assert [delays.get(place, 0) for place in range(arrivals)] == [answer.ms] * arrivals


class World:
    """Shards whose calls take up to a second, and some of whose calls are lost."""

    def __init__(self, seed: int, kinds: Sequence[str]) -> None:
        self.draw = random.Random(seed)
        self.now_ms = 0
        self.due: list[tuple[int, int, Callable[[], None]]] = []
        self.order = count()
        self.told: dict[tuple[str, int], list[RateAnswer]] = {
            (name, asker): [] for names in RATES.values() for name in names for asker in range(SHARDS)
        }
        self.asked: dict[int, tuple[str, str, int, int]] = {}  # what, of whom, where, when; without an answer
        self.heard: dict[tuple[str, int], list[RateAnswer]] = {place: [] for place in self.told}
        self.image = ClusterImage(0)
        self.homes = [Home(self) for _ in range(SHARDS)]
        self.shards = [self._shard(me) for me in range(SHARDS)]
        self.kinds = kinds
        self.image.apply(1, [OBSERVED[kind] for kind in kinds])
        for shard in self.shards:
            shard.follow()

    def quota(self, pool: str) -> float | None:
        return self.image.observed_rate_of(pool).rate

    def after(self, delay_ms: float, function: Callable[[], None]) -> None:
        heapq.heappush(self.due, (self.now_ms + int(delay_ms), next(self.order), function))

    def _shard(self, me: int) -> ObservedRates:
        shard = ObservedRates(
            me, SHARDS, LISTENERS, self.image, cluster=unrated(), call=partial(self._call, me),
            now_ms=lambda: self.now_ms, notes=self.homes[me],
        )  # fmt: skip
        for what in RATES:
            shard.asking(what, Asker(self._name_of, partial(self._answers, me, what), self._unasked))
        return shard

    def _name_of(self, number: int) -> str:
        return self.asked[number][1]

    def _unasked(self, number: int) -> None:
        raise AssertionError("each of these rates is observed")

    def _call(self, me: int, peer: int, method: str, what: str, names: list[str]) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()
        if self.draw.random() < 0.1:
            self.after(self.draw.choice([0, 700]), lambda: answer.fail(PeerLost("gone")))
        else:
            self.after(self.draw.choice([1, 1, 3]), lambda: self._served(me, peer, what, list(names), answer))
        return answer

    def _served(self, me: int, peer: int, what: str, names: list[str], answer: Deferred[Any]) -> None:
        found = [[*each] for each in self.shards[peer]._serve(me, what, names)]
        self.after(1, lambda: answer.resolve(found))

    def _answers(self, me: int, what: str, about: Sequence[int], beyond: Beyond) -> None:
        for place, number in enumerate(about):
            _, name, _, _ = self.asked.pop(number)  # each_is_answered_once
            answer = beyond.get(place, WITHIN)
            if answer != UNAVAILABLE:
                self.heard[name, me].append(answer)
            if what == LISTENER and self.draw.random() < 0.1:
                self.shards[me].take_back(name)

    def run(self, passes: int) -> None:
        numbers = count()
        for _ in range(passes):
            while self.due and self.due[0][0] <= self.now_ms:
                heapq.heappop(self.due)[2]()
            for me, shard in enumerate(self.shards):
                for _ in range(self.draw.choice([0, 0, 1, 5])):
                    what = self.draw.choice(self.kinds)
                    name, number = self.draw.choice(RATES[what]), next(numbers)
                    self.asked[number] = what, name, me, self.now_ms
                    shard.asks[what][name](number)
                shard.flush()
            self.now_ms += self.draw.choice([0, 1, 4, 30])
        for _ in range(5):  # a pass a second, until what is under way is answered
            while self.due:
                self.now_ms = max(self.now_ms, self.due[0][0])
                heapq.heappop(self.due)[2]()
            self.now_ms += 1_000
            for shard in self.shards:
                shard.flush()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kinds", [(LISTENER, ADDRESS), (LISTENER, USER), (LISTENER, ADDRESS, USER)])
def test_each_arrival_is_asked_about_once_and_answered_as_its_home_noted(kinds: Sequence[str], seed: int) -> None:
    """Where all three are observed there is an observed world, and each pass asks."""
    world = World(seed, kinds)
    world.run(300)
    assert not world.asked, "every one is answered"
    for place, heard in world.heard.items():
        assert heard == world.told[place], "in the order in which they came up"
    assert any(answer.ms for heard in world.heard.values() for answer in heard)


def test_what_comes_up_soon_after_a_question_is_asked_together_in_the_first_pass_that_is_late_enough() -> None:
    world = World(1, (LISTENER,))
    shard = world.shards[home_of("rate:broker", SHARDS)]
    asked: list[tuple[int, int]] = []
    asker = Asker(
        lambda number: "A",
        lambda about, beyond: asked.extend((number, world.now_ms) for number in about),
        world._unasked,
    )
    asks = shard.asking(LISTENER, asker)
    for number, now_ms in enumerate((0, 1, GATHER_MS - 1)):
        world.now_ms = now_ms
        asks["A"](number)
        shard.flush()
    assert asked == [(0, 0)]
    world.now_ms = GATHER_MS + 7
    shard.flush()
    assert asked == [(0, 0), (1, world.now_ms), (2, world.now_ms)]
    asks["A"](3)
    shard.flush()
    assert len(asked) == 3, "and so on"
