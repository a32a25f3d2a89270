"""A World whose connections go the whole way of broker/accept: two listeners, their backlogs, rates and caps, one clock.

Each shard has the classes that run: ShardListeners with Admission, Pacing, Listener, HeldConnections, CoreRates, Eviction and
Rates, Timers and ClusterImage; simulated are sockets, the poller, the journal and the links. A configuration is a dict of
records as the coordinator stores them; which pools it changes is told by the image.

recorded_as_one_broker_would  No unit of a rate is recorded that one Kafka broker would not have recorded
    (shards/limits/rate_replay.py), and an address gets no more connections in than units were recorded for it.
observed_as_if_enforced  An observed cap decides about the connections that were admitted as if it were enforced on them: each
    has a shadow, which asks for the tokens of the observed pools and is judged by the oracle as a connection. What is
    journaled of a shadow is its decision; it holds tokens while its connection is open, and no longer. The login of a connection
    has a shadow of its own, and a connection whose login would have been refused has none from then on.
accepts_nothing_while_one_waits  A listener accepts nothing while a connection waits for its slot under a rule that lets it
    wait (KIP-402), and without rates is paused for no other reason.
"""

from __future__ import annotations

import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator
from contextlib import suppress
from functools import partial
from typing import Any, cast

from cluster_pools import uncapped, unrated
from simulation.oracle import require
from simulation.world import ALL, Node, SimulatedConnection, World
from units import quotas_of

from broker.accept.admission_steps import Step
from broker.accept.observed_outcomes import CLOSED, ENDED
from broker.accept.observed_world import ObservedAttempt
from broker.accept.shard_listeners import ShardListeners
from broker.accept.user_rehearsal import ObservedLogin
from broker.journal.writer import K_OBSERVED
from broker.metrics.outcomes import Outcomes, Refusal
from broker.metrics.source_counts import SourceCounts
from broker.runtime.shard_context import ShardContext
from broker.serve.user_admission import UserAdmission, UserAttempt
from shards.config.image import ClusterImage
from shards.errors import PeerLost
from shards.limits.caps import OBSERVED, UNLIMITED
from shards.limits.rate import Window
from shards.limits.rate_replay import RateReplay
from shards.loop.deferred import Deferred, use_unawaited
from shards.loop.poller import Watcher
from shards.loop.time_slice import TimeSlice
from shards.loop.timers import Timers
from shards.settings.errors import TurnstileError
from shards.tokens.tokens import ADMITTED, Admitted, Refused, Tokens, TokensSnapshot

LISTENERS = ("A", "B")
Records = dict[tuple[str, str], Any]
_CAPS = ("broker_cap", "listener_cap", "ssl_cap", "ip_cap")
_OBSERVED_USER = f"{OBSERVED}user:"


class Ignore:
    """Counts, journals and watches nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *anything, **named: None


class SimulatedPoller(Ignore):
    """Which listeners accept, and the time at which the pass began."""

    round_ns = 0  # no pass is slow

    def __init__(self, now_s: float) -> None:
        self.watched: dict[int, Watcher] = {}
        self.now_ns = 0
        self.time_slice = TimeSlice(self.clock_ns)
        self.look(now_s)

    def look(self, now_s: float) -> None:
        self.now_ns = int(now_s * 1e9)
        self.time_slice.begin(self.now_ns)

    def clock_ns(self) -> int:
        return self.now_ns

    def watch(self, fd: int, watcher: Watcher, events: int = 0, *, herald: bool = False) -> None:
        self.watched[fd] = watcher

    def unwatch(self, fd: int) -> None:
        del self.watched[fd]


class SimulatedSocket(Ignore):
    """A listening socket: its backlog outlives the shard. `budget`: how many connections it has ready in this pass."""

    family = socket.AF_INET

    def __init__(self, desk: AcceptingShard, listener: str) -> None:
        self._desk = desk
        self.listener = listener
        self.budget = 0

    def fileno(self) -> int:
        return LISTENERS.index(self.listener)

    def _accept(self) -> tuple[int, tuple[str, int]]:
        backlog = self._desk.world.backlogs[self._desk.node.shard, self.listener]
        if not backlog or not self.budget:
            raise BlockingIOError
        self.budget -= 1
        connection = self._desk.world.accepted(self._desk.node, self.listener, backlog.popleft())
        return os.open(os.devnull, os.O_RDONLY), (connection.pools[-1][3:], connection.number)


class Journal(Ignore):
    """Tells the world what becomes of connections and rates."""

    def __init__(self, desk: AcceptingShard) -> None:
        self._desk = desk

    def refused(
        self, number: int, ip: str, port: int, listener: str, *, reason: str, limit: str, limit_value: float,
        version: int, held_ms: float, code: int | None = None,
    ) -> None:  # fmt: skip
        if code == K_OBSERVED:
            self._desk.world.observed(self._desk.node, port, reason)
            return
        self._desk.counts["refused_" + reason, listener] += 1
        self._desk.world.refused(self._desk.node, port, reason, limit, limit_value, version)

    def add(self, kind: str, *, port: int, reason: str | None = None, user: str | None = None, **more: Any) -> None:
        if kind == "observed":
            self._desk.world.observed(self._desk.node, port, reason, of_login=user is not None)

    def moved(self, kind: str, detail: dict[str, Any], version: int) -> None:
        self._desk.world.recorded(self._desk.node, kind, detail, version)


class OpenConnection:
    """What eviction, rehearsal and its login see of an open connection: it holds a token of each of `pools`. `login`: while it is
    decided."""

    busy = False

    def __init__(
        self, desk: AcceptingShard, connection: SimulatedConnection, number: int, listener: str, pools: tuple[str, ...]
    ) -> None:
        self.id, self.listener, self.last_used_ns = number, listener, desk.poller.now_ns
        self.ip, self.port = connection.pools[-1][3:], connection.number
        self.pools = pools
        self.login: Deferred[Refusal | None] | None = None
        self.close: Callable[[str], None] = lambda why: connection.world.close(connection)
        self._desk = desk
        self._connection = connection

    def hold(self, pools: tuple[str, ...]) -> None:
        before, self.pools = self.pools, pools
        if len(pools) < len(before):
            self._desk.world.instant += 1  # whatever was decided before it gave its tokens back
            self._desk.world.end_shadows(self._connection)
        else:
            come = tuple(pool for pool in pools if pool not in before and pool.startswith(OBSERVED))
            self._desk.world.begin_shadows(self._connection, come)


def _not_called(peer: int, method: str, *args: Any) -> Any:
    """No creation rate is observed here, so no other shard is asked for one."""
    raise AssertionError(method)


class Answer:
    """The answer to a call, which the poller of a task's shard brings."""

    def __init__(self) -> None:
        self.value: Any = None

    def __await__(self) -> Generator[Answer, None, Any]:
        yield self
        if isinstance(self.value, TurnstileError):
            raise self.value
        return self.value


class AcceptingShard:
    """What one incarnation of a shard has besides its tokens. `context.counters` is this object."""

    def __init__(self, world: AcceptWorld, node: Node) -> None:
        self.world, self.node, self.epoch = world, node, node.epoch
        self.poller = SimulatedPoller(world.now_s)
        self.timers = Timers(cast(Any, self.poller))
        self.image = ClusterImage()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.open: dict[int, OpenConnection] = {}
        self.numbers: dict[int, int] = {}  # of open connections here, by their number in the world
        self.up: set[int] = set()
        self.served: dict[str, Callable[..., Any]] = {}
        self.tasks: list[tuple[Any, Answer | None]] = []  # and the answer that it waits for; None: it has not begun
        journal = Journal(self)
        counters = Counters(self.counts)
        self.context = ShardContext(
            shard=node.shard, shards=world.shards, image=self.image, tokens=node.tokens, cluster=uncapped(),
            cluster_rate=unrated(),
            poller=cast(Any, self.poller), timers=self.timers, journal=cast(Any, journal), counters=cast(Any, counters),
            top_talkers=cast(Any, Ignore()), log=cast(Any, Ignore()),
            send=lambda peer, message: world.send(node, self.epoch, peer, message), request=self.request,
            start_soon=self.start_soon,
        )  # fmt: skip
        self.shard_listeners = ShardListeners(
            self.context, LISTENERS, cast(Any, self.open), fd_ceiling=1 << 20, call=_not_called, ssl=world.ssl
        )
        self.shard_listeners.eviction.serve_on(self.served.__setitem__)
        self.sockets = [SimulatedSocket(self, name) for name in LISTENERS]
        self.admissions: dict[str, UserAdmission] = {}
        self.listens = False

    def listen(self) -> None:
        self.listens = True
        for sock in self.sockets:
            outcomes = Outcomes(
                sock.listener, self.context.journal, self.context.counters, self.context.top_talkers, SourceCounts()
            )
            self.admissions[sock.listener] = UserAdmission(
                self.context,
                self.shard_listeners.rates,
                outcomes,
                cast(Any, self.shard_listeners.observed_world.users.came_in),
            )
            self.shard_listeners.open(
                outcomes, cast(Any, sock), partial(self.admitted, sock.listener), answering=lambda *_: None
            )

    def admitted(self, listener: str, fd: int, number: int, ip: str, port: int, pools: tuple[str, ...]) -> None:
        os.close(fd)
        connection = self.world.everybody[port]
        self.open[number] = OpenConnection(self, connection, number, listener, pools)
        self.numbers[port] = number
        self.world.admitted(self.node, connection, listener, ip)
        if len(pools) > len(connection.pools):
            self.world.admitted_there(connection, pools[len(connection.pools) :])

    def accept(self, budget: int) -> None:
        """The listeners that accept find so many connections ready."""
        for sock in self.sockets:
            sock.budget = budget
            listener = self.poller.watched.get(sock.fileno())
            if listener is not None:
                listener.ready(1)

    # Tasks

    def request(self, peer: int, method: str, *args: Any) -> Answer:
        answer = Answer()
        self.world.calls.append((self.node.shard, self.epoch, peer, method, args, answer))
        return answer

    def start_soon(self, function: Callable[..., Any], *args: Any) -> None:
        self.tasks.append((function(*args), None))

    def start_tasks(self) -> None:
        """Tasks that the last pass started run until they wait."""
        for task, awaited in list(self.tasks):
            if awaited is None:
                self._step(task, awaited)

    def _step(self, task: Any, awaited: Answer | None) -> None:
        self.tasks.remove((task, awaited))
        with suppress(StopIteration):
            self.tasks.append((task, task.send(None)))

    def go_on(self, answer: Answer, value: Any) -> None:
        """An answer has come."""
        answer.value = value
        for task, awaited in list(self.tasks):
            if awaited is answer:
                self._step(task, awaited)


class Counters(Ignore):
    """Counts connections, as the rates look at them."""

    def __init__(self, counts: Counter[tuple[str, str]]) -> None:
        self._counts = counts

    def admitted(self, listener: str) -> None:
        self._counts["admitted", listener] += 1

    def value(self, name: str, listener: str) -> int:
        return self._counts[name, listener]


class Beside:
    """A TokenWaiter beside that of a connection, as the oracle sees it: a connection of its own."""

    def __init__(self, world: AcceptWorld, attempt: Any, connection: SimulatedConnection) -> None:
        self.connection = connection
        self.port = self.connection.number
        self._world = world
        self._attempt = attempt

    def began_to_wait(self, pool: str, rule: Any) -> None:
        self._attempt.began_to_wait(pool, rule)

    def decided(self, decision: Admitted | Refused) -> None:
        self._world.settle(self.connection, decision)
        if self._world.everybody[self._of()].state != "open":
            # It has closed meanwhile: what was granted is given back, an instant later.
            self._world.instant += 1
            self._world.end_beside(self.connection)
        self._attempt.decided(decision)

    def _of(self) -> int:
        """The number of the connection that it is beside."""
        raise NotImplementedError


class Shadow(Beside):
    """That of observed pools, of a connection or of its login."""

    def __init__(self, world: AcceptWorld, attempt: ObservedAttempt | ObservedLogin) -> None:
        is_login = isinstance(attempt, ObservedLogin)
        self._port = attempt.port if is_login else attempt.of.port
        pools = (attempt.pool,) if is_login else attempt.of.pools
        super().__init__(world, attempt, world.cast_shadow(world.everybody[self._port], pools))

    def _of(self) -> int:
        return self._port


class Login(Beside):
    """That of the pool of a connection's user."""

    def __init__(self, world: AcceptWorld, attempt: UserAttempt) -> None:
        super().__init__(world, attempt, world.begin_login(attempt.channel.port, attempt.pool))

    def _of(self) -> int:
        return int(self._attempt.channel.port)


class LateTokens(Tokens):
    """Notes which connections do not wait (LATE_TOKENS): what refuses one has to be so from then on, not since it arrived."""

    def __init__(self, world: AcceptWorld, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named, on_wait=lambda waiter, pool, rule: waiter.began_to_wait(pool, rule))
        self._world = world
        self._beside: dict[Any, Beside] = {}  # by the attempt that is under way

    def observe_rest(self, pools: tuple[str, ...], taken: int, waiter: Any) -> Admitted | Refused | None:
        shadow = Shadow(self._world, waiter)
        return self._settled(waiter, shadow, super().observe_rest(pools, taken, cast(Any, shadow)))

    def _settled(self, waiter: Any, beside: Beside, decision: Admitted | Refused | None) -> Admitted | Refused | None:
        if decision is None:
            self._beside[waiter] = beside
            self._world.follow(beside.connection)
        else:
            self._world.settle(beside.connection, decision)
        return decision

    def cancel(self, waiter: Any) -> None:
        beside = self._beside.pop(waiter, None)
        if beside is not None and beside.connection.state == "pending":
            self._world.follow(beside.connection)
            self._world.leave(beside.connection)
        super().cancel(waiter if beside is None else cast(Any, beside))

    def take(self, pools: tuple[str, ...], waiter: Any, *, at_once: bool = False) -> Admitted | Refused | None:
        if isinstance(waiter, UserAttempt):
            login = Login(self._world, waiter)
            return self._settled(waiter, login, super().take(pools, cast(Any, login)))
        if at_once:
            connection = self._world.everybody[waiter.port]
            connection.at_once, connection.arrived = True, self._world.instant
        return super().take(pools, waiter, at_once=at_once)


class AcceptWorld(World):
    """`configure` pushes a configuration; `connect` puts a client into a backlog. `ips` are the addresses of clients,
    `ssl` the listeners with TLS."""

    def __init__(
        self,
        shards: int,
        ips: Collection[str],
        *,
        rated: Collection[str] = (),
        ssl: Collection[str] = (),
        users: Collection[str] = (),
        log: Callable[[str], None] | None = None,
        piece: int = ALL,
    ) -> None:
        real = [
            "broker",
            "broker:all",
            *(["ssl"] if ssl else []),
            *(f"listener:{name}" for name in LISTENERS),
            *(f"ip:{ip}" for ip in ips),
            *(f"user:{user}" for user in users),
        ]
        self.pools = [*real, *(OBSERVED + pool for pool in real)]
        self.ssl = frozenset(ssl)
        self.shadows: dict[int, SimulatedConnection] = {}  # the last of each connection, by the number of that
        self.login_shadows: dict[int, SimulatedConnection] = {}  # of its login
        self.logins: dict[int, SimulatedConnection] = {}  # by the number of the connection
        self.rated = tuple(dict.fromkeys(rated))  # the addresses that have a rate in every configuration
        self.states: list[Records] = [{}]
        self.images: list[ClusterImage] = [ClusterImage()]
        self.backlogs: dict[tuple[int, str], deque[tuple[str, float]]] = {
            (shard, name): deque() for shard in range(shards) for name in LISTENERS
        }
        self.listeners: dict[int, str] = {}  # of each connection, by number
        self.calls: list[tuple[int, int, int, str, tuple[Any, ...], Answer]] = []
        self.desks: dict[int, AcceptingShard] = {}
        self.units: Counter[str] = Counter()
        self.let_in: Counter[str] = Counter()
        self.longest_s = 0.0  # that a connection was in a backlog
        self._replays: dict[tuple[int, int], RateReplay] = {}
        super().__init__(shards, partial(LateTokens, self), log, piece=piece)

    # Shards

    def _equip(self, node: Node) -> None:
        self.desks[node.shard] = AcceptingShard(self, node)

    def crash(self, shard: int, *, eof_first: bool) -> None:
        super().crash(shard, eof_first=eof_first)
        desk = self.desks[shard]
        desk.shard_listeners.close()  # the kernel closes its descriptors
        for task, _ in desk.tasks:
            task.close()
        desk.tasks.clear()

    def snapshot_of(self, node: Node) -> TokensSnapshot:
        seen = node.tokens.snapshot()
        mine = {self.everybody[cast(Any, waiter).port]: held for waiter, held in seen.in_flight.items()}
        return seen._replace(in_flight=cast(Any, mine))

    def _peer_up(self, node: Node, peer: int, epoch: int) -> None:
        self._peer_lost(node, peer)  # links that come up again have broken before
        super()._peer_up(node, peer, epoch)
        self.desks[node.shard].up.add(peer)
        self.desks[node.shard].shard_listeners.peer_up(peer)

    def _peer_lost(self, node: Node, peer: int) -> None:
        desk = self.desks[node.shard]
        if peer in desk.up:
            desk.up.discard(peer)
            super()._peer_lost(node, peer)
            desk.shard_listeners.peer_lost(peer)

    def _peer_dead(self, node: Node, peer: int) -> None:
        super()._peer_dead(node, peer)
        self.desks[node.shard].shard_listeners.peer_dead(peer)

    def _receive(self, node: Node, source: int, message: Any) -> None:
        if not isinstance(message[0], str):
            super()._receive(node, source, message)
        elif source in self.desks[node.shard].up:
            self.desks[node.shard].shard_listeners.receivers[message[0]](source, message)

    def send(self, node: Node, epoch: int, peer: int, message: Any) -> None:
        """What is not of the tokens; lost with its link."""
        known = node.known.get(peer)
        link = self.links.get((node.shard, peer))
        if node.epoch == epoch and known is not None and link is not None and known[1] == link.number:
            self.tell("   ", node.shard, "->", peer, message)
            link.events.append(("message", message))

    # Configuration

    def configure(self, state: Records) -> int:
        """Pushes a configuration: all of its records."""
        image = ClusterImage()
        image.apply(len(self.states), [(*place, value) for place, value in state.items()], whole=True)
        self.states.append(dict(state))
        self.images.append(image)
        return self.push({pool: image.rule_of(pool) for pool in self.pools})

    def _change(self, node: Node, version: int, changed: Collection[str] | None) -> Collection[str] | None:
        """`changed` None: the shard is sent everything, as by a coordinator that it did not know."""
        desk = self.desks[node.shard]
        old, new = self.states[desk.image.version], self.states[version]
        if changed is None:
            found = desk.image.apply(version, [(*place, value) for place, value in new.items()], whole=True)
        else:
            places = [place for place in (old | new) if old.get(place) != new.get(place)]
            found = desk.image.apply(version, [(*place, new.get(place)) for place in places])
        desk.poller.look(self.now_s)
        node.version = version  # the tokens' rules are the image's, from now on
        desk.shard_listeners.image_changed(found.kinds)
        return sorted(found.pools)

    # Connections

    def connect(self, shard: int, listener: str, ip: str) -> None:
        """A client connects; the kernel has chosen the shard."""
        self.backlogs[shard, listener].append((ip, self.now_s))

    def accepted(self, node: Node, listener: str, client: tuple[str, float]) -> SimulatedConnection:
        assert self.listens(node.shard), "tokens.py, T5"
        self.instant += 1
        ip, since_s = client
        self.longest_s = max(self.longest_s, self.now_s - since_s)
        over_tls = ("ssl",) if listener in self.ssl else ()
        pools = (f"listener:{listener}", "broker", "broker:all", *over_tls, f"ip:{ip}")
        connection = SimulatedConnection(self, len(self.everybody), node, pools, len(pools))
        self.everybody.append(connection)
        self.listeners[connection.number] = listener
        node.connections[connection] = None
        self.tell("accept", node.shard, "connection", connection.number, pools)
        return connection

    def admitted(self, node: Node, connection: SimulatedConnection, listener: str, ip: str) -> None:
        if self.images[node.version].inter_broker_listener == listener:
            self.forced.add("broker")
        if ip in self.rated:
            self.let_in[f"rate:ip:{ip}"] += 1
            require(
                self.let_in[f"rate:ip:{ip}"] <= self.units[f"rate:ip:{ip}"], "W1", "a connection without a unit of", ip
            )
        self.settle(connection, ADMITTED)

    # Shadows: what connections are in the observed world

    def cast_shadow(self, of: SimulatedConnection, pools: tuple[str, ...]) -> SimulatedConnection:
        """The connection was admitted, or has logged in, and its observed pools are asked for."""
        shadow = self._put_beside(of, pools)
        if pools[0].startswith(_OBSERVED_USER):
            self.login_shadows[of.number] = shadow
            return shadow
        self.shadows[of.number] = shadow
        if self.images[of.node.version].inter_broker_listener == self.listeners[of.number]:
            self.forced.add(f"{OBSERVED}broker")
        return shadow

    def _put_beside(self, of: SimulatedConnection, pools: tuple[str, ...]) -> SimulatedConnection:
        beside = SimulatedConnection(self, len(self.everybody), of.node, pools, len(pools))
        beside.at_once = True
        self.everybody.append(beside)
        of.node.connections[beside] = None
        self.tell("   ", beside.number, "beside", of.number, pools)
        return beside

    def admitted_there(self, of: SimulatedConnection, pools: tuple[str, ...]) -> None:
        """The connection holds its observed tokens; unless it had to ask for some, they were at hand."""
        shadow = self.shadows.get(of.number)
        if shadow is None:
            self.settle(self.cast_shadow(of, pools), ADMITTED)

    def begin_shadows(self, of: SimulatedConnection, pools: tuple[str, ...]) -> None:
        """A connection holds observed tokens from now on: it was granted them, or was open when a first cap was observed."""
        of_login = tuple(pool for pool in pools if pool.startswith(_OBSERVED_USER))
        of_arrival = tuple(pool for pool in pools if pool not in of_login)
        for shadows, mine in ((self.shadows, of_arrival), (self.login_shadows, of_login)):
            if mine:
                self._begin_shadow(of, shadows.get(of.number), mine)

    def _begin_shadow(
        self, of: SimulatedConnection, shadow: SimulatedConnection | None, pools: tuple[str, ...]
    ) -> None:
        if shadow is not None and shadow.state == "open":
            return
        shadow = self.cast_shadow(of, pools)
        shadow.state = "open"
        for pool in pools:
            shadow.held[pool] = self.instant
            self.open[pool] = self.open.get(pool, 0) + 1
        self.books.admitted(of.node, shadow.number, pools)

    def end_shadows(self, of: SimulatedConnection) -> None:
        """A connection has closed, or would have been at its login, or no cap is observed any more."""
        for shadow in (self.shadows.get(of.number), self.login_shadows.get(of.number)):
            if shadow is not None:
                self.end_beside(shadow)

    def end_beside(self, beside: SimulatedConnection) -> None:
        if beside.state == "open":
            self._end(beside, "closed")

    def leave(self, beside: SimulatedConnection) -> None:
        """It is not decided: no cap is observed any more, or the connection of a login has closed."""
        self._leave(beside)
        self._end(beside, "cancelled")

    def observed(self, node: Node, number: int, reason: str | None, *, of_login: bool = False) -> None:
        """What is journaled of a shadow is its decision (observed_as_if_enforced)."""
        shadow = (self.login_shadows if of_login else self.shadows)[number]
        decision = shadow.decision
        told = f"shadow {shadow.number} is journaled as {reason or 'in'}, and is {shadow.state}: {decision}"
        if reason is None:
            require(shadow.state == "open", "observed", told)
        elif reason in (CLOSED, ENDED):
            require(shadow.state == ("closed" if reason == CLOSED else "cancelled"), "observed", told)
        else:
            assert isinstance(decision, Refused), told
            kind = "shard_unavailable" if decision.unavailable else decision.pool[len(OBSERVED) :].partition(":")[0]
            end = "" if decision.unavailable else "_wait" if decision.rule.wait else "_cap"
            require(reason == kind + end, "observed", told)

    def close(self, connection: SimulatedConnection) -> None:
        if connection.pools[0].startswith((OBSERVED, "user:")):
            return  # a shadow, or a login: it closes with its connection
        desk = self.desks[connection.node.shard]
        channel = desk.open[desk.numbers[connection.number]]
        pools = channel.pools
        self.instant += 1
        self.tell("close", connection.node.shard, "connection", connection.number)
        self._end(connection, "closed")
        if channel.login is not None:
            channel.login.cancel()
        login = self.logins.get(connection.number)
        if login is not None:
            self.end_beside(login)
        if len(pools) > len(connection.pools):
            self.end_shadows(connection)
        connection.node.tokens.release(pools)

    # Logins

    def log_in(self, connection: SimulatedConnection, user: str) -> None:
        """An open connection proves to be of a user; it is closed if it is refused."""
        self.instant += 1
        desk = self.desks[connection.node.shard]
        channel = desk.open[desk.numbers[connection.number]]
        self.tell("login", connection.node.shard, "connection", connection.number, user)
        answer = desk.admissions[channel.listener].admit(cast(Any, channel), user)
        if isinstance(answer, Deferred):
            channel.login = answer
        use_unawaited(answer, partial(self._logged_in, connection), _raised)

    def begin_login(self, number: int, pool: str) -> SimulatedConnection:
        """A token of the user's pool is asked for."""
        login = self.logins[number] = self._put_beside(self.everybody[number], (pool,))
        return login

    def _logged_in(self, connection: SimulatedConnection, refusal: Refusal | None) -> None:
        if refusal is not None:
            self.close(connection)

    def refused(self, node: Node, number: int, reason: str, limit: str, value: float, version: int) -> None:
        connection = self.everybody[number]
        if not node.alive or connection.state != "pending":
            return
        cause = self._cause(connection, reason, limit, value, version)
        if cause is not None:
            self.settle(connection, cause)
            return
        require(reason != "shard_unavailable" or not self.calm, "3", "no answer of a rate's home")
        self.tell("   ", "connection", number, reason)
        self._leave(connection)
        self._end(connection, "refused")

    calm = False
    """Whether all shards live, are linked, and have their turn soon, from beginning to end."""

    def _look_at_login(self, channel: OpenConnection) -> None:
        """A connection of the observed world that has logged in holds a token of its user there, or asks for one; one that was
        refused is not in that world (observed_as_if_enforced)."""
        observed = [pool for pool in channel.pools if pool.startswith(OBSERVED)]
        if observed and channel.pools[0].startswith("user:") and OBSERVED + channel.pools[0] not in observed:
            shadow = self.login_shadows.get(channel.port)
            told = f"connection {channel.port} of {channel.pools[0]} holds {observed}, its login is"
            require(shadow is not None and shadow.state == "pending", "observed", told, shadow and shadow.state)

    def _cause(
        self, connection: SimulatedConnection, reason: str, limit: str, value: float, version: int
    ) -> Refused | None:
        """The decision of the tokens, as far as it can be told from the journal; None: it was a rate's."""
        if reason == "shard_unavailable":
            pool = next(iter(connection.asked), None)
            if pool is None or connection.node.rule_of(pool).name != limit:
                return None
            return Refused(pool, connection.node.rule_of(pool), version, True)
        if reason not in _CAPS:
            return None
        rules = self.versions[version]
        for pool in connection.pools:
            rule = rules.get(pool, UNLIMITED)
            if pool.partition(":")[0] == reason.removesuffix("_cap") and rule[:2] == (value, limit):
                return Refused(pool, rule, version)
        require(False, "7", reason, limit, value, "is no rule of version", version)
        return None

    def _end(self, connection: SimulatedConnection, state: str) -> None:
        super()._end(connection, state)
        desk = self.desks[connection.node.shard]
        desk.open.pop(desk.numbers.pop(connection.number, 0), None)

    # Rates

    def recorded(self, node: Node, kind: str, detail: dict[str, Any], version: int) -> None:
        """What a home writes down is done again at once, under the configuration of that version (recorded_as_one_broker_would)."""
        replay = self._replays.setdefault((node.shard, node.epoch), RateReplay(Window()))
        beyond = replay.event(detail, lambda key: quotas_of(self.images[version], key), Window())
        require(not beyond, "W1", f"{beyond} units that one broker would not have recorded:", detail)
        self.units[detail["pool"]] += detail.get("tokens", 0) * (1 if kind == "grant" else -1)

    # Time

    def begin_pass(self, shard: int) -> None:
        """A pass begins: what timers and tasks have to do."""
        self.instant += 1
        desk = self.desks[shard]
        desk.poller.look(self.now_s)
        if self.listens(shard) and not desk.listens:
            desk.listen()
        desk.timers.call_due()
        desk.start_tasks()
        for call in [each for each in self.calls if shard in (each[0], each[2])]:
            self._advance(shard, call)

    def _advance(self, shard: int, call: tuple[int, int, int, str, tuple[Any, ...], Answer]) -> None:
        caller, epoch, peer, method, args, answer = call
        if not self.nodes[caller].alive or self.nodes[caller].epoch != epoch:
            self.calls.remove(call)
        elif answer.value is not None and shard == caller:
            self.calls.remove(call)
            self.desks[caller].go_on(answer, answer.value[0])
        elif answer.value is None and not self.linked(caller, peer):
            answer.value = (PeerLost(f"{peer} is down"),)
        elif answer.value is None and shard == peer:
            answer.value = (self.desks[peer].served[method](caller, *args),)

    def accept(self, shard: int, budget: int) -> None:
        """The shard's listeners accept up to so many connections each."""
        before = len(self.everybody)
        self.desks[shard].accept(budget)
        left = [each for each in self.everybody[before:] if each.state == "pending"]
        if left:
            seen = self.snapshot_of(self.nodes[shard])
            for connection in left:
                self.follow(connection, seen)

    def tick(self, shard: int) -> None:
        super().tick(shard)
        self.desks[shard].shard_listeners.tick()

    def end_pass(self, shard: int) -> None:
        self.instant += 1
        node, desk = self.nodes[shard], self.desks[shard]
        if desk.epoch == node.epoch:
            desk.shard_listeners.flush()
        node.seen = None

    # accepts_nothing_while_one_waits

    def look(self, shard: int, *, rates: bool) -> None:
        """Of the shard that ended its pass: accepts_nothing_while_one_waits, and which logins are in the observed world. `rates`:
        whether any rate is set."""
        node, desk = self.nodes[shard], self.desks[shard]
        if not desk.listens:
            return
        for channel in desk.open.values():
            self._look_at_login(channel)
        waits: set[str] = set()
        for waiter, (_, pool) in node.tokens.snapshot().in_flight.items():
            pending = cast(Any, waiter)
            if isinstance(waiter, Beside):
                continue  # it stops nobody
            if pool is not None and node.rule_of(pool).wait and pending.step is not Step.LATE_TOKENS:
                waits.add(self.listeners[pending.port])
        accepting = {LISTENERS[fd] for fd in desk.poller.watched}
        require(not waits & accepting, "W2", f"shard {shard} accepts on {waits & accepting}, where a connection waits")
        if not rates:
            require(waits | accepting == set(LISTENERS), "W2", f"shard {shard} accepts on {accepting}; {waits} wait")


def _raised(error: Exception) -> None:
    raise error
