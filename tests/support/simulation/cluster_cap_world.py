"""All brokers of a cluster in one process, around the classes that decide about a connection: both sets of tokens, the steps of
accepting and the image; simulated are links, sockets, the poller and the coordinator. cluster_cap_schedule.py draws what happens.

What one set of tokens does alone is world.py's; here it is how the two go together, under a cap of the cluster and one of each
broker. An instant is one verb; every link is FIFO, and between links any order is possible.

never_beyond_a_cap       no connection is admitted beyond the loosest cap, of its broker or of the cluster, that may be in force
no_false_refusal         at some instant since its arrival the whole cap that refused it was in use
counted_while_capped     after a pass a shard has a token of the cluster's pool for each open connection, or none without a cap
in_flight_is_known       after a pass a broker's pool has a token for each open connection, and for each that waits for the cluster
observed_counts_members  after a pass a shard has a token of the cluster's observed pool for each connection of the observed world
never_beyond_observed    no connection comes into the observed world beyond the loosest cap of the cluster that may be observed
no_false_observation     at some instant since its admission the whole cap that would have refused it was in use
everything_comes_home    at rest no connection waits, and no set has a token or a pool
"""

from __future__ import annotations

import os
import socket
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from cluster_pools import unrated
from simulation.accept_world import Ignore, Records, SimulatedPoller
from simulation.oracle import require
from simulation.world import DEADLINE_S, TTL_S

from broker.accept.admission_steps import Step
from broker.accept.pending_connection import PendingConnection
from broker.accept.shard_listeners import ShardListeners
from broker.metrics.outcomes import Outcomes
from broker.metrics.source_counts import SourceCounts
from broker.runtime.shard_context import ShardContext
from shards.config.image import ClusterImage
from shards.limits.caps import CLUSTER, OBSERVED
from shards.loop.timers import Timers
from shards.ownership import BrokerShard
from shards.tokens.cluster_pool import NAME, ClusterPool
from shards.tokens.tokens import Tokens

CLUSTER_CAP, BROKER_CAP = "turnstile.cluster.max.connections", "kafka_connections_max"
LISTENER = "A"
_IPS = ("10.0.0.1", "10.0.0.2")


class Client:
    """A connection: it came at `arrived`, was decided, and used what it held until `ended`."""

    def __init__(self, place: BrokerShard, arrived: int) -> None:
        self.place = place
        self.arrived = arrived
        self.ended: int | None = None
        self.refused: tuple[str, int] | None = None  # for which reason, at which cap
        self.held = False  # it held its broker's tokens while it waited for the cluster's
        self.inside = Inside()


class Inside:
    """A connection in the observed world: it was asked about from `asked` on, and that was decided at `told`. `refused`: the cap
    that would have refused it, and its value; `came_in`: it has been in that world. `held`: as of a client."""

    def __init__(self) -> None:
        self.asked = self.told = 0
        self.refused: tuple[str, int] | None = None
        self.came_in = self.held = False


class Open:
    """An open connection as the shard has it."""

    def __init__(self, shard: Shard, number: int, client: Client, ip: str, port: int, pools: tuple[str, ...]) -> None:
        self.shard, self.id, self.client, self.ip, self.port = shard, number, client, ip, port
        self.listener = LISTENER
        self.pools = pools

    @property
    def is_inside(self) -> bool:
        return self.pools[-1].startswith(OBSERVED)

    def hold(self, pools: tuple[str, ...]) -> None:
        was_inside, self.pools = self.is_inside, pools
        if self.is_inside and not was_inside:
            self.shard.world.came_in(self)


class Shard:
    """One incarnation of a shard."""

    def __init__(self, world: ClusterCapWorld, place: BrokerShard, epoch: int) -> None:
        self.world, self.place, self.epoch = world, place, epoch
        self.done = 0
        self.listens = self.is_open = self.is_ending = self.is_beginning = False
        self.pushed: deque[tuple[int, bool]] = deque()
        self.known: dict[BrokerShard, int] = {}  # number of the link to each shard that is up
        self.open: dict[int, Open] = {}
        self.poller = SimulatedPoller(world.now_s)
        self.timers = Timers(cast(Any, self.poller))
        self.image = ClusterImage(place[0])
        waits: Any = lambda waiter, pool, rule: waiter.began_to_wait(pool, rule)  # noqa: E731
        send = partial(world.send, self)
        self.tokens = NotingTokens(
            world, place[1], world.shards, epoch=epoch, send=lambda peer, message: send((place[0], peer), message),
            rule_of=self.image.rule_of, ttl_s=TTL_S, deadline_s=DEADLINE_S, on_wait=waits,
            returns=world.returns[place[0]], asking=0,
        )  # fmt: skip
        self.cluster = ClusterPool(
            place, world.brokers, world.shards, epoch=epoch, send=send, rule_of=self.image.rule_of, on_wait=waits,
            returns=world.cluster_returns, asking=0,
        )  # fmt: skip
        self.context = ShardContext(
            shard=place[1], shards=world.shards, image=self.image, tokens=self.tokens, cluster=self.cluster,
            cluster_rate=unrated(),
            poller=cast(Any, self.poller), timers=self.timers, journal=cast(Any, self), counters=cast(Any, Nothing()),
            top_talkers=cast(Any, Ignore()), log=cast(Any, Ignore()), request=cast(Any, None), start_soon=cast(Any, None),
            send=lambda peer, message: send((place[0], peer), message),
        )  # fmt: skip
        self.shard_listeners = ShardListeners(
            self.context, (LISTENER,), cast(Any, self.open), fd_ceiling=1 << 20, call=cast(Any, None)
        )
        self.backlog = Backlog(self)

    def begin(self) -> None:
        """Opens the listener once a version is done."""
        if self.listens and not self.is_open:
            self.is_open = True
            outcomes = Outcomes(LISTENER, cast(Any, self), cast(Any, Nothing()), cast(Any, Ignore()), SourceCounts())
            self.shard_listeners.open(outcomes, cast(Any, self.backlog), self._admitted, answering=lambda *_: None)

    def apply(self) -> None:
        """The next version that was pushed here; as ShardProcess._enforce."""
        version, whole = self.pushed.popleft()
        old, new = self.world.states[self.image.version], self.world.states[version]
        if whole:
            changed = self.image.apply(version, [(*place, value) for place, value in new.items()], whole=True)
        else:
            places = [place for place in (old | new) if old.get(place) != new.get(place)]
            changed = self.image.apply(version, [(*place, new.get(place)) for place in places])

        def done() -> None:
            self.done = max(self.done, version)
            self.listens = self.listens or not (self.tokens.peer_is_ahead or self.cluster.peer_is_ahead)
            self.world.count_acks()

        self.is_beginning = True
        self.shard_listeners.image_changed(changed.kinds)
        self.is_beginning = False
        self.cluster.apply_both(self.tokens, version, done, changed.pools)

    def close(self, number: int) -> None:
        """An open connection ends; as Serving.closed."""
        opened = self.open.pop(number)
        self.world.ended(opened.client)
        self.tokens.release(opened.pools)
        if self.cluster.is_on:
            self.cluster.release()
        if self.cluster.is_observed and opened.is_inside:
            self.cluster.release_observed()

    def end(self) -> None:
        """It accepts no more, and refuses who waits."""
        self.is_ending = True
        self.shard_listeners.close()

    def _admitted(self, fd: int, number: int, ip: str, port: int, pools: tuple[str, ...]) -> None:
        os.close(fd)
        opened = self.open[number] = Open(self, number, self.world.clients[port], ip, port, pools)
        self.world.judge_admission(opened.client)
        opened.client.inside.asked = self.world.instant
        if opened.is_inside:
            self.world.came_in(opened)

    def refused(self, number: int, ip: str, port: int, listener: str, **why: Any) -> None:
        """The journal's row."""
        client = self.world.clients[port]
        if self.world.alive.get(self.place) is not self:
            return  # it has died
        if why.get("code"):
            client.inside.refused, client.inside.told = (why["reason"], int(why["limit_value"])), self.world.instant
            return
        client.refused = why["reason"], int(why["limit_value"])
        self.world.ended(client)
        is_fine = why["reason"] != "shard_unavailable" or self.is_ending or not self.world.is_calm
        require(is_fine, "3", "no answer of a home while all live")

    def __getattr__(self, name: str) -> Any:
        if name in ("admitted", "moved"):  # the journal's other rows
            return lambda *anything, **named: None
        raise AttributeError(name)

    def add(self, kind: str, *, port: int, **row: Any) -> None:
        """The journal's row of an observed decision that did not come at once."""
        if self.world.alive.get(self.place) is self:
            self.world.clients[port].inside.told = self.world.instant


class NotingTokens(Tokens):
    """Those of a broker; notes which connections have waited for the cluster's."""

    def __init__(self, world: ClusterCapWorld, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._world = world

    def suspend(self, pools: tuple[str, ...], waiter: Any) -> None:
        if isinstance(waiter, PendingConnection):
            self._world.clients[waiter.port].held = True
        else:
            self._world.clients[waiter.of.port].inside.held = True
        super().suspend(pools, waiter)


class Returns:
    """The memory in which the shards at these places count returns (full_pools.py)."""

    def __init__(self, world: ClusterCapWorld, places: list[BrokerShard]) -> None:
        self._world, self._places = world, places
        self.starts = 0
        self._of: Counter[str] = Counter()

    def of(self, key: str) -> int | None:
        all_live = all(place in self._world.alive for place in self._places)
        return self._of[key] + self.starts if all_live else None

    def add(self, key: str) -> None:
        self._of[key] += 1


class Nothing(Ignore):
    """Counters that count nothing."""

    def value(self, name: str, listener: str) -> int:
        return 0


class Backlog(Ignore):
    """The listening socket of a shard."""

    family = socket.AF_INET

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.waiting = 0

    def fileno(self) -> int:
        return 0

    def _accept(self) -> tuple[int, tuple[str, int]]:
        if not self.waiting:
            raise BlockingIOError
        self.waiting -= 1
        port = self._shard.world.arrived(self._shard.place)
        return os.open(os.devnull, os.O_RDONLY), (_IPS[port % 2], port)


class ClusterCapWorld:
    """`brokers` brokers of `shards` shards each. `is_calm`: no shard dies and no link breaks."""

    def __init__(self, brokers: int, shards: int, *, is_calm: bool) -> None:
        self.brokers, self.shards, self.is_calm = brokers, shards, is_calm
        self.instant = 0
        self.now_s = 0.0
        self.epochs = 0
        self.acked = 0
        self.states: list[Records] = [{}]
        self.clients: list[Client] = []
        self.alive: dict[BrokerShard, Shard] = {}
        self.queues: dict[tuple[BrokerShard, BrokerShard], deque[tuple[str, Any]]] = {}
        self.links: dict[frozenset[BrokerShard], int] = {}  # the number of the link of each pair; 0: it is broken
        self.lost: dict[int, list[Client]] = {}  # by epoch of the dead: connections whose end not all have heard of
        self.places = [(broker, shard) for broker in range(brokers) for shard in range(shards)]
        self.returns = [Returns(self, [place for place in self.places if place[0] == each]) for each in range(brokers)]
        self.cluster_returns = Returns(self, self.places)
        for place in self.places:
            self.start(place)

    # Shards and links

    def start(self, place: BrokerShard) -> None:
        self.instant += 1
        self.epochs += 1
        self.returns[place[0]].starts += 1
        self.cluster_returns.starts += 1
        shard = Shard(self, place, self.epochs)
        shard.pushed.append((len(self.states) - 1, True))
        shard.apply()  # a home that knew no cap would grant every borrow: no shard is linked before
        for other in self.alive:
            self.link(place, other, {place: shard.epoch, other: self.alive[other].epoch})
        self.alive[place] = shard

    def link(self, one: BrokerShard, two: BrokerShard, epochs: dict[BrokerShard, int]) -> None:
        """Links two shards that live; messages of before are lost."""
        number = self.links[frozenset((one, two))] = self.instant
        self.instant += 1
        for here, there in ((one, two), (two, one)):
            queue = self.queues.setdefault((here, there), deque())
            queue.append(("up", (epochs[here], number)))

    def cut(self, one: BrokerShard, two: BrokerShard) -> None:
        """The link between two shards that live breaks."""
        self.instant += 1
        if not self.links.get(frozenset((one, two))):
            return
        self.links[frozenset((one, two))] = 0
        for pair in ((one, two), (two, one)):
            kept = [event for event in self.queues[pair] if event[0] != "message"]
            self.queues[pair] = deque([*kept, ("lost", None)])

    def relink(self) -> None:
        """Links what is broken."""
        for pair in [pair for pair, number in self.links.items() if not number]:
            one, two = sorted(pair)
            self.link(one, two, {place: self.alive[place].epoch for place in (one, two)})

    def crash(self, place: BrokerShard) -> None:
        self.instant += 1
        shard = self.alive.pop(place)
        for waiting in [client for client in self.clients if client.place == place and client.ended is None]:
            self.lost.setdefault(shard.epoch, []).append(waiting)
        shard.shard_listeners.close()  # the kernel closes its descriptors
        for other in self.places:
            self.links.pop(frozenset((place, other)), None)
            self.queues.pop((other, place), None)
            if other in self.alive:
                self.queues[place, other] += [("lost", None), ("dead", shard.epoch)]
            else:
                self.queues.pop((place, other), None)
        shard.open.clear()
        self._bury()

    def _bury(self) -> None:
        """Connections of the dead are over once each shard has heard of it."""
        told = {what for queue in self.queues.values() for kind, what in queue if kind == "dead"}
        for epoch in [epoch for epoch in self.lost if epoch not in told]:
            for client in self.lost.pop(epoch):
                self.ended(client)

    def send(self, shard: Shard, to: BrokerShard, message: Any) -> None:
        number = self.links.get(frozenset((shard.place, to)))
        if number and shard.known.get(to) == number and self.alive.get(shard.place) is shard:
            self.queues[shard.place, to].append(("message", message))

    def deliver(self, source: BrokerShard, place: BrokerShard) -> None:
        """The next event of a link."""
        self.instant += 1
        shard = self.alive[place]
        kind, what = self.queues[source, place].popleft()
        near = source[0] == place[0]
        if kind == "up":
            epoch, number = what
            shard.known[source] = number
            shard.cluster.peer_up(source, epoch)
            if near:
                shard.tokens.peer_up(source[1], epoch)
        elif kind == "message":
            if what[0] == NAME:
                shard.cluster.receive(source, what)
            elif not isinstance(what[0], str):
                shard.tokens.receive(source[1], what)
            else:
                shard.shard_listeners.receivers[what[0]](source[1], what)
        elif kind == "lost":
            shard.known.pop(source, None)
            shard.cluster.peer_lost(source)
            if near:
                shard.tokens.peer_lost(source[1])
        else:
            shard.cluster.peer_dead(source)
            if near:
                shard.tokens.peer_dead(source[1])
            self._bury()

    # Configuration

    def configure(self, state: Records) -> None:
        self.instant += 1
        self.states.append(state)
        for shard in self.alive.values():
            shard.pushed.append((len(self.states) - 1, False))

    def count_acks(self) -> None:
        self.acked = max(self.acked, min((shard.done for shard in self.alive.values()), default=0))

    def _caps(self, name: str) -> float:
        """The loosest that may be in force."""
        caps = (state.get(("setting", f"/{name}")) for state in self.states[self.acked :])
        return max(float("inf") if cap is None else int(cap) for cap in caps)

    def _observed_caps(self, name: str) -> float:
        """The loosest that may be observed; one that is in force is not (differences_only)."""
        caps = (
            (state.get(("observed", f"/{name}")), state.get(("setting", f"/{name}")))
            for state in self.states[self.acked :]
        )
        return max(float("inf") if cap is None or cap == enforced else int(cap) for cap, enforced in caps)

    # Connections

    def arrived(self, place: BrokerShard) -> int:
        self.instant += 1
        self.clients.append(Client(place, self.instant))
        return len(self.clients) - 1

    def ended(self, client: Client) -> None:
        self.instant += 1
        if client.ended is None:
            client.ended = self.instant

    def judge_admission(self, client: Client) -> None:
        """never_beyond_a_cap"""
        open_of = {place: len(shard.open) for place, shard in self.alive.items()}
        everywhere, mine = sum(open_of.values()), sum(n for at, n in open_of.items() if at[0] == client.place[0])
        require(
            everywhere <= self._caps(CLUSTER_CAP), "1/5", f"{everywhere} open in the cluster, {self.acked} is acked"
        )
        require(
            mine <= self._caps(BROKER_CAP), "1/5", f"{mine} open on broker {client.place[0]}, {self.acked} is acked"
        )

    def came_in(self, opened: Open) -> None:
        """never_beyond_observed"""
        self.instant += 1
        opened.client.inside.came_in = True
        if opened.shard.is_beginning:
            return  # all are in the observed world then, also beyond its cap
        inside = sum(each.is_inside for shard in self.alive.values() for each in shard.open.values())
        cap = self._observed_caps(CLUSTER_CAP)
        require(inside <= cap, "1/5", f"{inside} in the observed world, {self.acked} is acked")

    def tick(self, place: BrokerShard) -> None:
        shard = self.alive[place]
        shard.tokens.tick(self.now_s)
        shard.cluster.tick(self.now_s)

    def end_pass(self, place: BrokerShard) -> None:
        """counted_while_capped, in_flight_is_known"""
        self.instant += 1
        shard = self.alive[place]
        shard.shard_listeners.flush()
        if not shard.is_open:
            return
        of_cluster, of_broker = shard.cluster.tokens.snapshot(), shard.tokens.snapshot()
        held, expected = of_cluster.in_use.get(CLUSTER, 0), len(shard.open) if shard.cluster.is_on else 0
        require(held == expected, "4", f"{place} has {held} tokens of the cluster for {expected} connections")
        in_flight = sum("broker" in taken for taken, _ in of_broker.in_flight.values())
        used = of_broker.in_use.get("broker", 0)
        require(
            used == len(shard.open) + in_flight, "4", f"{place}: {used} tokens for {len(shard.open)} and {in_flight}"
        )
        inside = sum(each.is_inside for each in shard.open.values())
        observed = OBSERVED + "broker"
        in_flight = sum(observed in taken for taken, _ in of_broker.in_flight.values())
        used = of_broker.in_use.get(observed, 0)
        require(used == inside + in_flight, "4", f"{place}: {used} observed tokens for {inside} and {in_flight}")
        members = inside if shard.cluster.is_observed else 0
        held = of_cluster.in_use.get(OBSERVED + CLUSTER, 0)
        require(held == members, "4", f"{place} has {held} observed tokens of the cluster for {members} connections")
        asked = {
            waiter
            for waiter in of_cluster.in_flight
            if isinstance(waiter, PendingConnection) and waiter.step is not Step.CLUSTER_TOKENS
        }
        require(not asked, "8", "asks the cluster without being at that step")

    def look_back(self) -> None:
        """no_false_refusal: of the cluster's cap, and of the brokers'; and no_false_observation."""
        self._look_back_inside()
        for client in self.clients:
            if client.refused is None or client.refused[0] == "shard_unavailable":
                continue
            reason, cap = client.refused
            brokers = range(self.brokers) if reason == "cluster_cap" else (client.place[0],)
            spans = [
                (other.arrived, other.ended if other.ended is not None else self.instant + 1)
                for other in self.clients
                if other.place[0] in brokers and (other.held or other.refused is None or other.refused[0] != reason)
            ]
            assert client.ended is not None
            most = most_at_once(spans, client.arrived, client.ended)
            require(most >= cap, "3", f"refused by {reason} {cap} at {client.ended}, never more than {most} in use")

    def _look_back_inside(self) -> None:
        asked = [(client, client.inside) for client in self.clients if client.inside.asked]
        ends = [self.instant + 1 if client.ended is None else client.ended for client, _ in asked]
        for client, inside in asked:
            if inside.refused is None or inside.refused[0] == "shard_unavailable":
                continue
            reason, cap = inside.refused
            spans = [
                (of.asked, _until(of, end))
                for (other, of), end in zip(asked, ends, strict=True)
                if (of.held or other is not client) and (reason == "cluster_cap" or other.place[0] == client.place[0])
            ]
            most = most_at_once(spans, inside.asked, inside.told, ends_at=bisect_left)
            require(
                most >= cap, "3", f"would be refused by {reason} {cap} at {inside.told}, never more than {most} in use"
            )


def most_at_once(
    spans: Sequence[tuple[float, float]], first: float, last: float, *, ends_at: Callable[..., int] = bisect_right
) -> int:
    """How many of the spans hold at one instant from `first` to `last`, at most. A span ends before the instant of its end, or with
    it, where `ends_at` is bisect_left."""
    begun, ended = sorted(since for since, _ in spans), sorted(until for _, until in spans)
    instants = [first, *begun[bisect_right(begun, first) : bisect_right(begun, last)]]
    return max(bisect_right(begun, at) - ends_at(ended, at) for at in instants)


def _until(inside: Inside, ended: int) -> float:
    """When a connection has surely stopped using what it held there: one that had closed goes on until it is decided, which is not
    told of all that a shard took with it when it died."""
    if inside.came_in:
        return max(ended, inside.told)
    return inside.told or float("inf")
