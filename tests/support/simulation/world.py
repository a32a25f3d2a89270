"""A broker of many shards in one process, around the very classes that run: links, crashes, a coordinator, connections.

What is not decided here is when anything happens: a schedule (schedule.py) or a scenario calls the verbs below, and
every verb is one instant, numbered by `World.instant`. Links are FIFO; between links, and between a link and a crash,
any order is possible. What an earlier incarnation sent, or was sent, may arrive long after (`strays`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from simulation.books import Books

from shards.limits.caps import UNLIMITED, CapRule
from shards.tokens.attempts import Attempt
from shards.tokens.homes import home_of
from shards.tokens.tokens import ADMITTED, Admitted, Refused, Tokens

Rules = dict[str, CapRule]
TTL_S = 10.0
DEADLINE_S = 1.0


class SimulatedConnection:
    """One client connection, and the waiter that its shard's tokens answer."""

    __slots__ = (
        "arrived",
        "arrived_s",
        "claims",
        "decision",
        "ended",
        "held",
        "node",
        "number",
        "past",
        "pools",
        "state",
        "world",
    )

    def __init__(self, world: World, number: int, node: Node, pools: tuple[str, ...]) -> None:
        self.world = world
        self.number = number
        self.node = node
        self.pools = pools
        self.state = "new"  # then pending, open, refused, closed, cancelled or lost
        self.decision: Admitted | Refused | None = None
        self.arrived = world.instant
        self.arrived_s = world.now_s
        self.ended: int | None = None
        self.claims: dict[str, int] = {}  # pool -> since when it is asked for or held
        self.held = 0  # of how many pools it held a token when its shard was last looked at
        self.past: list[tuple[str, int, int]] = []  # pool, from, until: held in vain, before starting anew

    def decided(self, decision: Admitted | Refused) -> None:
        self.world.settle(self, decision)


class SimulatedLink:
    """One direction between two incarnations: events in order. `tokens`: what is on the way, by pool."""

    __slots__ = ("events", "tokens")

    def __init__(self) -> None:
        self.events: deque[tuple[str, Any]] = deque()
        self.tokens: dict[str, int] = {}

    def add(self, message: Any) -> None:
        self.events.append(("message", message))
        self._count(message, +1)

    def pop(self) -> tuple[str, Any]:
        kind, what = self.events.popleft()
        if kind == "message":
            self._count(what, -1)
        return kind, what

    def _count(self, message: Any, sign: int) -> None:
        for item in message[1]:
            kind = item[0]
            if kind in ("grant", "give", "reclaimed"):
                self.tokens[item[1]] = self.tokens.get(item[1], 0) + sign * item[2]
            elif kind == "report":
                self.tokens[item[1]] = self.tokens.get(item[1], 0) - sign * item[2]


class Node:
    """One shard: its present incarnation, if it is alive, and what reaches it."""

    def __init__(self, world: World, shard: int) -> None:
        self.world = world
        self.shard = shard
        self.alive = False
        self.epoch = 0
        self.version = 0
        self.done = -1
        self.known: dict[int, int] = {}  # epoch of each peer this one has been told is up
        self.pushed: deque[int] = deque()
        self.connections: dict[SimulatedConnection, None] = {}  # open or pending here
        self.tokens: Tokens

    def rule_of(self, pool: str) -> CapRule:
        return self.world.versions[self.version].get(pool, UNLIMITED)


class World:
    """All shards of one broker. `tokens` makes a shard's tokens, so that a test can hand in broken ones."""

    def __init__(
        self, shards: int, tokens: Callable[..., Tokens] = Tokens, log: Callable[[str], None] | None = None
    ) -> None:
        self.shards = shards
        self.make = tokens
        self.log = log
        self.instant = 0
        self.now_s = 0.0
        self.epochs = 0
        self.versions: list[Rules] = [{}]
        self.acked = 0  # the version that every shard is known to enforce
        self.open: dict[str, int] = {}
        self.everybody: list[SimulatedConnection] = []
        self.links: dict[tuple[int, int], SimulatedLink] = {}
        self.strays: list[tuple[int, int, int, int, Any]] = []  # source and its epoch, target and its epoch, message
        self.nodes = [Node(self, shard) for shard in range(shards)]
        self.forced: set[str] = set()  # pools whose cap did not stop everybody
        self._homes: dict[str, int] = {}
        self.looked = 0  # the instant at which the last pass was over
        self.books = Books(self)
        self.on_settled: Callable[[SimulatedConnection], None] = lambda connection: None
        for shard in range(shards):
            self.start(shard)

    def tell(self, *words: Any) -> None:
        """Logs a step, if anybody listens."""
        if self.log is not None:
            self.log(f"{self.instant:5} " + " ".join(str(word) for word in words))

    # Shards and links

    def start(self, shard: int, *, silently: bool = False) -> None:
        """A shard starts, with the newest configuration, and is linked to all that live. What is left of the last
        incarnation's links comes first; `silently`: but for its end, which peers must conclude from the new beginning.
        """
        self.instant += 1
        node = self.nodes[shard]
        self.epochs += 1
        node.alive, node.epoch, node.version, node.done = True, self.epochs, 0, -1
        node.known, node.connections = {}, {}
        node.pushed.clear()
        node.tokens = self.make(
            shard,
            self.shards,
            epoch=node.epoch,
            send=lambda peer, message: self._send(node, node.epoch, peer, message),
            rule_of=node.rule_of,
            ttl_s=TTL_S,
            deadline_s=DEADLINE_S,
            on_grant=partial(self.books.granted, node),
            on_reclaim=partial(self.books.reclaimed, node),
            on_loss=partial(self.books.lost, node),
        )
        self._note_what_is_given_up(node)
        self.books.started(node)
        self.tell("start", shard, "epoch", node.epoch)
        self._apply(node, len(self.versions) - 1, None)
        for other in self.nodes:
            if other is not node and other.alive:
                for here, there in ((node, other), (other, node)):
                    link = SimulatedLink()
                    old = self.links.get((here.shard, there.shard))
                    if old is not None and here is node:  # the end of the old incarnation is still to be seen
                        link.events.extend(
                            ("old" if kind == "message" else kind, what)
                            for kind, what in old.events
                            if not (silently and kind == "down")
                        )
                    link.events.append(("up", here.epoch))
                    self.links[here.shard, there.shard] = link
        self.end_pass(shard)

    def _note_what_is_given_up(self, node: Node) -> None:
        """A connection in flight may get a token and give it up again within a pass, which nobody sees afterwards."""
        waiting = node.tokens._waiting
        withdraw = waiting._withdraw

        def noting(attempt: Attempt) -> None:
            connection = attempt.waiter
            assert isinstance(connection, SimulatedConnection)
            for pool in attempt.taken:
                since = connection.claims.get(pool, max(connection.arrived, self.looked + 1))
                connection.past.append((pool, since, self.instant + 1))
            withdraw(attempt)

        waiting._withdraw = noting  # type: ignore[method-assign]

    def crash(self, shard: int, *, eof_first: bool) -> None:
        """A shard dies. With `eof_first` peers see that before the last things it sent, which then arrive as strays."""
        self.instant += 1
        node = self.nodes[shard]
        self.tell("crash", shard, "eof first" if eof_first else "")
        node.alive = False
        for connection in list(node.connections):
            self._end(connection, "lost")
        for other in self.nodes:
            if other is node:
                continue
            lost = self.links.pop((other.shard, shard), None)
            if lost is not None:
                self._stray(other.shard, shard, lost)
            link = self.links.get((shard, other.shard))
            if link is not None and not other.alive:
                del self.links[shard, other.shard]
            elif link is not None:
                if eof_first:
                    self._stray(shard, other.shard, link)
                    link.events = deque(event for event in link.events if event[0] != "message")
                    link.tokens = {}
                link.events.append(("down", node.epoch))

    def _add_stray(self, source: int, target: int, target_epoch: int, message: Any) -> None:
        self.strays.append((source, self.nodes[source].epoch, target, target_epoch, message))

    def _stray(self, source: int, target: int, link: SimulatedLink) -> None:
        for kind, what in link.events:
            if kind == "message":
                self._add_stray(source, target, self.nodes[target].epoch, what)

    def _send(self, node: Node, epoch: int, peer: int, message: Any) -> None:
        as_received = [message[0], [list(item) for item in message[1]]]  # msgpack makes lists of tuples
        target = self.nodes[peer]
        self.tell("   ", node.shard, "->", peer, as_received)
        if node.alive and node.epoch == epoch and target.alive and node.known.get(peer) == target.epoch:
            self.links[node.shard, peer].add(as_received)
        else:
            self._add_stray(node.shard, peer, node.known.get(peer, 0), as_received)

    def waiting_events(self, shard: int) -> list[int]:
        """The peers from which something is under way to a shard."""
        return [
            peer
            for peer in range(self.shards)
            if peer != shard and self.links.get((peer, shard), SimulatedLink()).events
        ]

    def deliver(self, source: int, target: int) -> None:
        """The next event of a link."""
        self.instant += 1
        kind, what = self.links[source, target].pop()
        node = self.nodes[target]
        self.tell("deliver", source, "->", target, kind, what)
        if kind == "up":
            node.known[source] = what
            node.tokens.peer_up(source, what)
        elif kind == "down":
            if node.known.pop(source, None) is not None:
                node.tokens.peer_down(source)
        else:
            node.tokens.receive(source, what)

    def deliver_stray(self, index: int) -> None:
        """Something an earlier incarnation sent, or was sent, arrives after all: once its link is known to be dead."""
        self.instant += 1
        source, source_epoch, target, target_epoch, message = self.strays[index]
        node = self.nodes[target]
        if node.alive and (node.epoch != target_epoch or node.known.get(source) != source_epoch):
            del self.strays[index]
            self.tell("stray", source, "->", target, message)
            node.tokens.receive(source, message)

    # Configuration

    def push(self, rules: Rules) -> int:
        """The coordinator stores a configuration and sends it to every shard that lives."""
        self.instant += 1
        self.versions.append(rules)
        version = len(self.versions) - 1
        self.tell("push", version, {pool: tuple(rule) for pool, rule in rules.items()})
        for node in self.nodes:
            if node.alive:
                node.pushed.append(version)
        return version

    def apply(self, shard: int, *, skip: bool = False, exact: bool = True) -> None:
        """A shard applies the next version it was sent, or (skip) the last."""
        self.instant += 1
        node = self.nodes[shard]
        before, version = node.version, node.pushed.popleft()
        if skip and node.pushed:
            version = node.pushed.pop()
            node.pushed.clear()
        old, new = self.versions[before], self.versions[version]
        changed = {pool for pool in (*old, *new) if old.get(pool) != new.get(pool)}
        self.tell("apply", shard, version, sorted(changed) if exact else "")
        self._apply(node, version, changed if exact else None)

    def _apply(self, node: Node, version: int, changed: set[str] | None) -> None:
        node.version = version
        epoch = node.epoch

        def done() -> None:
            self.tell("   ", node.shard, "done", version)
            if node.epoch == epoch:
                node.done = max(node.done, version)
                self._count_acks()

        node.tokens.apply(version, done, changed)

    def _count_acks(self) -> None:
        self.acked = max(self.acked, min((node.done for node in self.nodes if node.alive), default=0))

    def caps(self, pool: str, since: int) -> list[float]:
        """The caps of a pool in all versions from `since` on."""
        return [
            float("inf") if (rule := rules.get(pool, UNLIMITED)).cap is None else rule.cap
            for rules in self.versions[since:]
        ]

    # Connections

    def arrive(self, shard: int, pools: tuple[str, ...]) -> SimulatedConnection:
        """A connection is accepted by a shard."""
        self.instant += 1
        node = self.nodes[shard]
        connection = SimulatedConnection(self, len(self.everybody), node, pools)
        self.everybody.append(connection)
        connection.state = "pending"
        node.connections[connection] = None
        decision = node.tokens.take(pools, connection)
        self.tell("arrive", shard, "connection", connection.number, pools, decision)
        if decision is not None:
            self.settle(connection, decision)
        else:
            connection.held = node.tokens._waiting._attempts[connection].index
            connection.claims = dict.fromkeys(pools[: connection.held + 1], self.instant)
        return connection

    def settle(self, connection: SimulatedConnection, decision: Admitted | Refused) -> None:
        """A decision reached its connection."""
        assert connection.state == "pending", f"connection {connection.number} is {connection.state}, decided again"
        connection.decision = decision
        self.tell("   ", "connection", connection.number, decision)
        if decision is ADMITTED:
            connection.state = "open"
            for pool in connection.pools:
                connection.claims.setdefault(pool, max(connection.arrived, self.looked + 1))
                self.open[pool] = self.open.get(pool, 0) + 1
            self.books.admitted(connection.node, connection.number, connection.pools)
        else:
            assert isinstance(decision, Refused)
            index = connection.pools.index(decision.pool)
            for pool in connection.pools[:index]:
                connection.claims.setdefault(pool, max(connection.arrived, self.looked + 1))
            if not decision.unavailable:  # or a token may have been on its way
                since = connection.claims.pop(decision.pool, None)
                if since is not None and index < connection.held:
                    connection.past.append((decision.pool, since, self.instant))
            self._end(connection, "refused")
        self.on_settled(connection)

    def force(self, shard: int, pool: str) -> None:
        """A connection that the cap of its pool must not stop."""
        self.instant += 1
        node = self.nodes[shard]
        connection = SimulatedConnection(self, len(self.everybody), node, (pool,))
        self.everybody.append(connection)
        self.tell("force", shard, "connection", connection.number, pool)
        connection.state, connection.claims[pool] = "open", self.instant
        node.connections[connection] = None
        self.open[pool] = self.open.get(pool, 0) + 1
        self.forced.add(pool)
        self.books.admitted(node, connection.number, (pool,))
        node.tokens.force(pool)

    def close(self, connection: SimulatedConnection) -> None:
        """An open connection closes."""
        self.instant += 1
        self.tell("close", connection.node.shard, "connection", connection.number)
        self._end(connection, "closed")
        connection.node.tokens.release(connection.pools)

    def cancel(self, connection: SimulatedConnection) -> None:
        """The client of a pending connection goes away."""
        self.instant += 1
        self.tell("cancel", connection.node.shard, "connection", connection.number)
        attempt = connection.node.tokens._waiting._attempts[connection]
        for pool in connection.pools if attempt.decision is ADMITTED else attempt.taken:
            connection.claims.setdefault(pool, max(connection.arrived, self.looked + 1))
        self._end(connection, "cancelled")
        connection.node.tokens.cancel(connection)

    def _end(self, connection: SimulatedConnection, state: str) -> None:
        if connection.state == "open":
            for pool in connection.pools:
                self.open[pool] -= 1
            self.books.closed(connection.node, connection.number, connection.pools)
        connection.state = state
        connection.ended = self.instant
        connection.node.connections.pop(connection, None)

    # Time

    def tick(self, shard: int) -> None:
        """A shard looks at the clock."""
        self.instant += 1
        self.nodes[shard].tokens.tick(self.now_s)

    def end_pass(self, shard: int) -> None:
        """A shard ends a pass of its loop."""
        self.instant += 1
        self.nodes[shard].tokens.flush()

    def home(self, pool: str) -> int:
        """The home of a pool."""
        home = self._homes.get(pool)
        if home is None:
            home = self._homes[pool] = home_of(pool, self.shards)
        return home
