"""The rate of a whole cluster under virtual time: ClusterRate on the shards of several brokers, over links with delays that break,
with shards that die alone or with their broker, stand still, and apply versions at different times; enforced, observed, or both.
cluster_rate_schedule.py draws what happens.

Invariants, named as they are required here; each holds of the enforced rate and of the observed one. A connection that the
observed rate would not have refused goes on there.
by_kafkas_arithmetic   each home's journal holds by RateReplay: no unit beyond the quota, no violation without cause
a_unit_each            no connection goes on without a unit that was recorded before
one_window             what goes on in ten seconds is within what one window may count in eleven, whichever homes have died
told_once              a home begins with no more units than were recorded
all_are_answered       each connection is answered, and while nothing fails none is refused because a home does not answer
silent                 while no version has a rate, or observes one, nothing is sent, and nothing journaled
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, cast

from simulation.oracle import require

from shards.config.image import ClusterImage
from shards.limits.caps import CLUSTER, OBSERVED, OF_CLUSTER
from shards.limits.rate import DEFAULT_WINDOW
from shards.limits.rate_replay import RateQuotas, RateReplay
from shards.ownership import BrokerShard
from shards.rates.cluster_rate import ClusterRate
from shards.rates.observed_rates import Asker, Beyond, ObservedRates
from shards.rates.rate_queues import UNAVAILABLE
from shards.rates.rate_recovery import WAIT_FOR_USE_MS

RATE = "turnstile.cluster.max.connection.creation.rate"
TICK_MS = 250
SPAN_MS = (DEFAULT_WINDOW.samples + 2) * DEFAULT_WINDOW.size_ms + WAIT_FOR_USE_MS
"""Use counts until a sample's length after the last that it is told for, and a home may wait for that of another shard."""


_OBSERVED = OBSERVED + CLUSTER


class Arrival:
    """A connection that asked for a unit of `key`, at `at_ms`."""

    def __init__(self, shard: Shard, at_ms: int, key: str = CLUSTER) -> None:
        self.shard, self.at_ms, self.key = shard, at_ms, key
        self.answer: int | None = None

    def recorded(self, key: str, wait_ms: int) -> None:
        require(self.answer is None, "all_are_answered", f"{self.key} answered twice")
        self.answer = wait_ms
        self.shard.asking.discard(self)
        self.shard.world.answered(self)
        if self.key == CLUSTER and not wait_ms:
            self.shard.let_in()


class Account:
    """The connections to the cluster, as one rate has them. `per_s`: what each version sets, by its number."""

    def __init__(self) -> None:
        self.per_s: dict[int, int | None] = {}
        self.units: list[tuple[int, int]] = []  # (when, how many) were recorded; negative: taken back
        self.went_on: list[int] = []  # when
        self.refused = self.unavailable = 0


class Nothing:
    """Notes of rates that are not observed here."""

    def began(self, *, at_ms: int) -> None:
        pass


class Shard:
    """One incarnation of a shard."""

    def __init__(self, world: ClusterRateWorld, place: BrokerShard, epoch: int) -> None:
        self.world, self.place, self.epoch = world, place, epoch
        self.version = 0
        self.frozen_until_ms = 0
        self.ticked_ms = 0
        self.pushed: deque[int] = deque()
        self.linked: dict[BrokerShard, int] = {}  # the number of the link to each shard that is up
        self.asking: set[Arrival] = set()
        self.arrivals = 0
        self.replay = RateReplay(DEFAULT_WINDOW)
        self.image = ClusterImage(place[0])
        self.rate = ClusterRate(
            place,
            world.brokers,
            world.shards,
            self.image,
            send=lambda to, message: world.send(self, to, message),
            now_ms=lambda: world.now_ms,
            journal=self._journal,
        )
        self.observed = ObservedRates(
            place[1],
            world.shards,
            ("A",),
            self.image,
            cluster=self.rate,
            call=cast(Any, None),
            now_ms=lambda: world.now_ms,
            notes=cast(Any, Nothing()),
        )
        asker = Asker(lambda arrival: CLUSTER, self._answered, lambda arrival: self.asking.discard(arrival))
        self._ask = self.observed.asking(CLUSTER, asker)

    def apply(self, version: int) -> None:
        accounts = self.world.accounts
        kinds = {"setting": accounts[CLUSTER].per_s[version], "observed": accounts[_OBSERVED].per_s[version]}
        records = [(kind, f"/{RATE}", str(per_s)) for kind, per_s in kinds.items() if per_s is not None]
        self.image.apply(version, records, whole=True)
        self.version = version
        self.rate.apply()
        self.observed.follow()

    def let_in(self) -> None:
        """A connection has gone on."""
        arrival = Arrival(self, self.world.now_ms, _OBSERVED)
        self.asking.add(arrival)
        self._ask[CLUSTER](arrival)

    def _answered(self, arrivals: Sequence[Arrival], beyond: Beyond) -> None:
        for place, arrival in enumerate(arrivals):
            answer = beyond.get(place)
            arrival.recorded(_OBSERVED, 0 if answer is None else answer.own_ms)

    def step(self) -> None:
        """One pass."""
        world = self.world
        if world.now_ms < self.frozen_until_ms:
            return
        world.deliver_to(self)
        if self.pushed and world.draw.random() < world.haste:
            self.apply(self.pushed.popleft())
        while self.arrivals:
            self.arrivals -= 1
            arrival = Arrival(self, world.now_ms)
            if not self.rate.is_on:
                self.let_in()
                continue
            self.asking.add(arrival)
            if (wait_ms := self.rate.record(arrival)) is not None:
                arrival.recorded(CLUSTER, wait_ms)
        self.rate.advance()
        if world.now_ms - self.ticked_ms >= TICK_MS:
            self.ticked_ms = world.now_ms
            self.rate.tick()
        for count in range(10):
            self.rate.flush()
            self.observed.flush()
            if count and not self.rate.busy:  # what one leaves behind without being busy, the next one sends
                break
        require(not self.rate.busy, "all_are_answered", f"{self.place} never comes to the end of a pass")

    def _journal(self, kind: str, detail: dict[str, Any], version: int) -> None:
        world = self.world
        account = world.accounts[detail["pool"].removeprefix("rate:")]
        beyond = self.replay.event(detail, lambda key: RateQuotas(self.image.rate_of(key).rate), DEFAULT_WINDOW)
        require(not beyond, "by_kafkas_arithmetic", f"{beyond} units beyond: {detail}")
        require(not self.replay.unfounded, "by_kafkas_arithmetic", f"no violation: {detail}")
        world.journaled += 1
        if "remembered" in detail and None in account.per_s.values():
            return  # what went on while its home had no rate any more counts, too
        if "remembered" in detail:
            told = sum(units for _, _, units in detail["remembered"])
            recorded = sum(units for at_ms, units in account.units if at_ms > world.now_ms - SPAN_MS - world.longest_ms)
            require(told <= recorded, "told_once", f"{told} units are told of {recorded}")
            return
        account.units.append((world.now_ms, detail["tokens"] if kind == "grant" else -detail["tokens"]))


class ClusterRateWorld:
    """`brokers` of `shards` each; messages take up to `delay_ms`, and a version is applied in a pass with the
    likelihood `haste`. `per_s`: the rate that the first version sets, and the one that it observes."""

    def __init__(
        self,
        draw: random.Random,
        brokers: int,
        shards: int,
        per_s: tuple[int | None, int | None],
        delay_ms: int,
        haste: float,
    ) -> None:
        self.draw, self.brokers, self.shards, self.delay_ms, self.haste = draw, brokers, shards, delay_ms, haste
        self.now_ms = 10_000
        self.is_calm = True
        self.accounts = {key: Account() for key in OF_CLUSTER}
        for account, first in zip(self.accounts.values(), per_s, strict=True):
            account.per_s[1] = first
        self.sent: Counter[str] = Counter()
        self.journaled = 0
        self.epochs = self.links = 0
        self.longest_ms = 0  # that a shard stood still
        self.alive: dict[BrokerShard, Shard] = {}
        self.queues: dict[tuple[BrokerShard, BrokerShard], deque[tuple[int, str, Any]]] = {}
        self.linked: dict[frozenset[BrokerShard], int] = {}
        self.places = [(broker, shard) for broker in range(brokers) for shard in range(shards)]
        for place in self.places:
            self.start(place)

    # Shards and links

    def start(self, place: BrokerShard) -> None:
        self.epochs += 1
        shard = Shard(self, place, self.epochs)
        shard.apply(self.version)
        for other in self.alive:
            self.link(shard, self.alive[other])
        self.alive[place] = shard

    def link(self, one: Shard, two: Shard) -> None:
        self.links += 1
        self.linked[frozenset((one.place, two.place))] = self.links
        for here, there in ((one, two), (two, one)):
            self._queue(here.place, there.place, "up", (here.epoch, self.links))

    def cut(self, one: BrokerShard, two: BrokerShard) -> None:
        """The link of two that live breaks: what is on its way arrives in no order with that, and may be lost."""
        self.is_calm = False
        if self.linked.pop(frozenset((one, two)), None):
            for pair in ((one, two), (two, one)):
                kept = [event for event in self.queues.get(pair, ()) if event[1] != "message"]
                self.queues[pair] = deque(kept)
                self._queue(*pair, "lost", None)

    def relink(self) -> None:
        for one in self.alive.values():
            for two in self.alive.values():
                if one.place < two.place and frozenset((one.place, two.place)) not in self.linked:
                    self.link(one, two)

    def crash(self, place: BrokerShard, *, is_seen: bool = True) -> None:
        """kill -9; what it has sent arrives. Not `is_seen`: its next incarnation comes up before its death is noticed."""
        self.is_calm = False
        self.alive.pop(place)
        for other in self.places:
            self.queues.pop((other, place), None)
            if self.linked.pop(frozenset((place, other)), None) and other in self.alive:
                self._queue(place, other, "lost", None)
            if other not in self.alive:
                self.queues.pop((place, other), None)
            elif is_seen:
                self._queue(place, other, "dead", None)

    def freeze(self, place: BrokerShard, ms: int) -> None:
        """SIGSTOP, and SIGCONT after so long."""
        self.is_calm = False
        self.longest_ms = max(self.longest_ms, ms)
        self.alive[place].frozen_until_ms = self.now_ms + ms

    def send(self, shard: Shard, to: BrokerShard, message: Sequence[Any]) -> None:
        number = self.linked.get(frozenset((shard.place, to)))
        if number and shard.linked.get(to) == number and self.alive.get(shard.place) is shard:
            self.sent.update(item[0] for item in message[1])
            self._queue(shard.place, to, "message", message)

    def _queue(self, source: BrokerShard, place: BrokerShard, kind: str, what: Any) -> None:
        queue = self.queues.setdefault((source, place), deque())
        due_ms = self.now_ms + self.draw.randint(0, self.delay_ms)
        queue.append((max(due_ms, queue[-1][0] if queue else 0), kind, what))

    def deliver_to(self, shard: Shard) -> None:
        for source in self.places:
            queue = self.queues.get((source, shard.place))
            while queue and queue[0][0] <= self.now_ms:
                _, kind, what = queue.popleft()
                if kind == "up":
                    epoch, shard.linked[source] = what
                    shard.rate.peer_up(source, epoch)
                elif kind == "message":
                    shard.rate.receive(source, what)
                elif kind == "lost":
                    shard.linked.pop(source, None)
                    shard.rate.peer_lost(source)
                else:
                    shard.rate.peer_dead(source)

    # What happens, and what is required

    @property
    def version(self) -> int:
        """The last one."""
        return max(self.accounts[CLUSTER].per_s)

    def configure(self, *per_s: int | None) -> None:
        """Another version, which sets a rate and observes one."""
        version = self.version + 1
        for account, each in zip(self.accounts.values(), per_s, strict=True):
            account.per_s[version] = each
        for shard in self.alive.values():
            shard.pushed.append(version)

    @property
    def is_settled(self) -> bool:
        """True if each shard has applied the last version."""
        return all(shard.version == self.version for shard in self.alive.values())

    @property
    def is_whole(self) -> bool:
        """True if all shards live and run, and all links are up."""
        links = len(self.places) * (len(self.places) - 1) // 2
        return len(self.linked) == links and all(self.now_ms >= each.frozen_until_ms for each in self.alive.values())

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        for place in list(self.alive):
            self.alive[place].step()

    def answered(self, arrival: Arrival) -> None:
        account = self.accounts[arrival.key]
        if arrival.answer == UNAVAILABLE:
            account.unavailable += 1
            require(not self.is_calm, "all_are_answered", "no answer of a home while nothing fails")
        elif arrival.answer:
            account.refused += 1
        else:
            account.went_on.append(self.now_ms)

    def judge(self) -> None:
        """At the end."""
        for account in self.accounts.values():
            rates = [rate for rate in account.per_s.values() if rate is not None]
            if len(rates) == len(account.per_s):
                self._judge_units(account)
                self._judge_window(account, max(rates))
        if not any(rate for account in self.accounts.values() for rate in account.per_s.values()):
            require(not self.sent and not self.journaled, "silent", f"{self.sent} {self.journaled}")
        for shard in self.alive.values():
            require(not shard.asking, "all_are_answered", f"{len(shard.asking)} wait on {shard.place}")

    def _judge_units(self, account: Account) -> None:
        """a_unit_each"""
        steps = sorted([(at_ms, 0, n) for at_ms, n in account.units] + [(at_ms, 1, -1) for at_ms in account.went_on])
        left = 0
        for at_ms, _, change in steps:
            left += change
            require(left >= 0 or change > -1, "a_unit_each", f"went on at {at_ms} without a unit")

    def _judge_window(self, account: Account, most_per_s: int) -> None:
        """one_window: a connection goes on up to a second after it was recorded, and longer on a shard that stood still."""
        samples, size_ms = DEFAULT_WINDOW
        span_ms = (samples - 1) * size_ms - self.longest_ms
        allowed = most_per_s * (samples + 1) * size_ms / 1000
        start = 0
        for end, at_ms in enumerate(account.went_on):
            while at_ms - account.went_on[start] >= span_ms:
                start += 1
            require(end - start < allowed, "one_window", f"{end - start + 1} went on in {span_ms} ms, {allowed} may")
