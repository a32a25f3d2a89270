"""A broker of many shards in one process, around the very classes that run: links, crashes, a coordinator, connections.

A schedule (schedule.py) or a scenario decides when anything happens, by calling the verbs below. Every verb is one
instant, numbered by `World.instant`. Links are FIFO; between links, and between a link and a crash, any order is
possible. A link between two shards that both live may break, and come back under the same epochs. What was sent by an
earlier incarnation, or to one, may arrive long after (`strays`).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, cast

from simulation.books import Books

from shards.limits.caps import UNLIMITED, CapRule
from shards.limits.changed_pools import changed_of_kind
from shards.ownership import home_of
from shards.tokens.tokens import ADMITTED, Admitted, Refused, Tokens, TokensSnapshot

Rules = dict[str, CapRule]
TTL_S = 10.0
ALL = 1000
"""More pools than any world has."""
DEADLINE_S = 1.0


def rule_in(rules: Rules, pool: str) -> CapRule:
    """The rule of a pool in a version."""
    return rules.get(pool, UNLIMITED)


def piece_of(seed: int) -> int:
    """How many pools a change visits in one pass: in every third schedule only some of them."""
    return random.Random(f"piece {seed}").choice((1, 3, ALL, ALL, ALL, ALL))


class SimulatedConnection:
    """One client connection, and the waiter that its shard's tokens answer.

    `state` is pending, suspended (it holds the tokens of `first` and waits for the rate of its address), open, refused,
    closed, cancelled or lost. The oracle keeps `asked`, `held` and `past`: oracle.py, invariant 3.
    """

    def __init__(self, world: World, number: int, node: Node, pools: tuple[str, ...], first: int) -> None:
        self.world = world
        self.number = number
        self.node = node
        self.pools = pools
        self.first = first  # how many pools it takes before it is suspended; all of them: it never is
        self.state = "pending"
        self.decision: Admitted | Refused | None = None
        self.arrived = world.instant
        self.ended: int | None = None
        self.asked: dict[
            str, tuple[int, int, float]
        ] = {}  # the pool it waits for, since when (from, to), and which time
        self.held: dict[str, int] = {}  # pool -> since when its token counts as used
        self.past: list[tuple[str, int, int]] = []  # pool, from, until: used and given up before it was decided
        self.knew: dict[str, dict[int, int]] = {}  # of the home of each pool it waited for, when it came to wait
        self.late: tuple[int, float] | None = None  # which answer it waits for, and the first tick since
        self.overdue: int | None = None  # the answer that a tick was to end
        self.started_anew = False  # it may have lost its place in a queue
        self.at_once = False  # a full pool refuses it, also under a rule that lets others wait
        self.acked = world.acked  # the version that all shards were done with when it arrived

    def decided(self, decision: Admitted | Refused) -> None:
        self.world.settle(self, decision)


class SimulatedLink:
    """One direction between two incarnations: events in order. `tokens`: what is on the way, by pool. `number` rises
    with every link: what is sent on an older one is lost."""

    __slots__ = ("events", "notes", "number", "tokens")

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.events: deque[tuple[str, Any]] = deque()
        self.notes: deque[tuple[int, dict[int, int]]] = (
            deque()
        )  # of each message: when it was sent, what its sender knew
        self.tokens: dict[str, int] = {}

    def add(self, message: Any) -> None:
        self.events.append(("message", message))
        self._count(message, +1)

    def pop(self) -> tuple[str, Any]:
        kind, what = self.events.popleft()
        if kind == "message":
            self._count(what, -1)
        return kind, what

    def drop_messages(self, keep: int = 0) -> list[Any]:
        """Loses all messages but the first `keep`; returns them."""
        lost: list[Any] = []
        events, self.events = self.events, deque()
        for kind, what in events:
            if kind == "message" and keep <= 0:
                self._count(what, -1)
                lost.append(what)
            else:
                keep -= kind == "message"
                self.events.append((kind, what))
        return lost

    def _count(self, message: Any, sign: int) -> None:
        if isinstance(message[0], str):
            return  # not of the tokens
        for item in message[1]:
            kind = item[0]
            if kind in ("grant", "give", "reclaimed"):
                self.tokens[item[1]] = self.tokens.get(item[1], 0) + sign * item[2]
            elif kind == "report":
                self.tokens[item[1]] = self.tokens.get(item[1], 0) - sign * item[2]


class SimulatedReturns:
    """The memory in which all shards of a world count returns (full_pools.py)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._of: dict[str, int] = {}
        self._starts = 0

    def of(self, key: str) -> int | None:
        all_live = all(node.alive for node in self._world.nodes)
        return self._of.get(key, 0) + self._starts if all_live else None

    def add(self, key: str) -> None:
        self._of[key] = self._of.get(key, 0) + 1

    def started(self) -> None:
        """A shard starts; before it lives."""
        self._starts += 1


class Node:
    """One shard: its present incarnation, if it is alive, and what reaches it."""

    def __init__(self, world: World, shard: int) -> None:
        self.world = world
        self.shard = shard
        self.alive = False
        self.epoch = 0
        self.version = 0
        self.done = -1
        self.listens = False  # it accepts connections (tokens.py, no_asking_behind_a_peer)
        self.known: dict[int, tuple[int, int]] = {}  # epoch and link number of each peer that is up, as told
        self.met: dict[int, int] = {}  # the epoch of each peer that was ever up
        self.changed_s: dict[int, float] = {}  # when each peer last came up, was lost or died, as told before this pass
        self.changing: set[int] = set()  # the same, in this pass
        self.pushed: deque[int] = deque()
        self.connections: dict[SimulatedConnection, None] = {}  # pending, suspended or open here
        # Of each pool: connections that left while the home believed that they wait, since when, and until when.
        self.vanished: dict[str, list[tuple[SimulatedConnection, int, int]]] = {}
        self.knows: dict[int, dict[int, int]] = {}  # of each home, the passes of other shards that it had heard of
        self.knew: dict[int, dict[int, int]] = {}  # the same, when the last pass ended
        self.tight_since: dict[str, float] = {}  # pools at home here that are tight, though half empty
        self.ticked_s = 0.0  # when it looked at the clock last
        self.restarted = 0  # of its tokens, when it was last looked at
        self.may_cache: set[str] = set()  # pools of which the last word of the home was a grant that may be cached
        self.tokens: Tokens
        self.seen: TokensSnapshot | None = None  # a copy of its tokens, unless they may have changed since

    def snapshot(self) -> TokensSnapshot:
        """Its tokens at the end of its last pass."""
        if self.seen is None:
            self.seen = self.world.snapshot_of(self)
        return self.seen

    def rule_of(self, pool: str) -> CapRule:
        return self.world.versions[self.version].get(pool, UNLIMITED)


class World:
    """All shards of one broker. `tokens` makes a shard's tokens, so that a test can hand in broken ones."""

    def __init__(
        self,
        shards: int,
        tokens: Callable[..., Tokens] = Tokens,
        log: Callable[[str], None] | None = None,
        *,
        piece: int = ALL,
    ) -> None:
        self.shards = shards
        self.make = tokens
        self.log = log
        self.piece = piece
        self.judges_order = False  # among connections of different shards that wait for a pool
        self.instant = 0
        self.now_s = 0.0
        self.epochs = 0
        self.versions: list[Rules] = [{}]
        self.pushed_s = [0.0]  # when each version was pushed
        self.acked = 0  # the version that every shard is known to enforce
        self.open: dict[str, int] = {}
        self.everybody: list[SimulatedConnection] = []
        self.links: dict[tuple[int, int], SimulatedLink] = {}
        self.strays: list[tuple[int, int, int, int, Any]] = []  # source and its epoch, target and its epoch, message
        self.nodes = [Node(self, shard) for shard in range(shards)]
        self.returns = SimulatedReturns(self)
        self.forced: set[str] = set()  # pools of which connections took a token beyond the cap
        self._homes: dict[str, int] = {}
        self._link_number = 0
        self.has_general_rules = False  # a change may concern all addresses that no setting names
        self.looked = 0  # the instant at which the last pass was over
        self.books = Books(self)
        self.on_settled: Callable[[SimulatedConnection], None] = lambda connection: None
        for shard in range(shards):
            self.start(shard)

    def tell(self, *words: Any) -> None:
        """Logs a step, if there is a log."""
        if self.log is not None:
            self.log(f"{self.instant:5} " + " ".join(str(word) for word in words))

    # Shards and links

    def start(self, shard: int, *, silently: bool = False) -> None:
        """A shard starts, with the newest configuration, and is linked to all that live. What is left of the last
        incarnation's links comes first; `silently`: but for their end, which peers conclude from the new beginning.
        """
        self.instant += 1
        node = self.nodes[shard]
        self.epochs += 1
        self.returns.started()
        node.alive, node.epoch, node.version, node.done, node.listens = True, self.epochs, 0, -1, False
        node.known, node.met, node.connections, node.changed_s = {}, {}, {}, {}
        node.changing.clear()
        node.restarted = 0
        node.may_cache.clear()
        node.tight_since.clear()
        node.pushed.clear()
        node.vanished.clear()
        node.seen = None
        node.tokens = self.make(
            shard,
            self.shards,
            epoch=node.epoch,
            send=lambda peer, message: self._send(node, node.epoch, peer, message),
            rule_of=node.rule_of,
            ttl_s=TTL_S,
            deadline_s=DEADLINE_S,
            piece=self.piece,
            on_grant=partial(self._granted, node),
            on_return=partial(self.books.reclaimed, node),
            on_loss=partial(self.books.lost, node),
            returns=self.returns,
            asking=0,
        )
        self._equip(node)
        self.books.started(node)
        self.tell("start", shard, "epoch", node.epoch)
        self._apply(node, len(self.versions) - 1, None)
        for other in self.nodes:
            if other is not node and other.alive:
                self._link_number += 1
                for here, there in ((node, other), (other, node)):
                    link = SimulatedLink(self._link_number)
                    old = self.links.get((here.shard, there.shard))
                    if old is not None and here is node:  # the end of the old incarnation is still to be seen
                        link.events.extend(
                            ("old" if kind == "message" else kind, what)
                            for kind, what in old.events
                            if not (silently and kind in ("lost", "dead"))
                        )
                    link.events.append(("up", (here.epoch, link.number)))
                    self.links[here.shard, there.shard] = link
        self.end_pass(shard)

    def _granted(self, home: Node, pool: str, to: int, n: int, is_reported: bool) -> None:
        self.books.granted(home, pool, to, n, is_reported)
        for connection, since, until in self.nodes[to].vanished.pop(pool, ()):
            connection.past.append((pool, since, until))

    def _equip(self, node: Node) -> None:
        """Gives an incarnation what it has besides its tokens."""

    def snapshot_of(self, node: Node) -> TokensSnapshot:
        """A copy of a shard's tokens."""
        return node.tokens.snapshot()

    def crash(self, shard: int, *, eof_first: bool) -> None:
        """A shard dies. With `eof_first` peers see that before the last things it sent, which then arrive as strays."""
        self.instant += 1
        node = self.nodes[shard]
        self.tell("crash", shard, "eof first" if eof_first else "")
        node.alive = False
        for connection in list(node.connections):
            self._count_asked(connection)
            self._end(connection, "lost")
        for other in self.nodes:
            if other is node:
                continue
            lost = self.links.pop((other.shard, shard), None)
            if lost is not None:
                self._stray(other.shard, shard, lost.drop_messages())
            link = self.links.get((shard, other.shard))
            if link is not None and not other.alive:
                del self.links[shard, other.shard]
            elif link is not None:
                if eof_first:
                    self._stray(shard, other.shard, link.drop_messages())
                link.events.append(("lost", None))
                link.events.append(("dead", node.epoch))

    def linked(self, one: int, two: int) -> bool:
        """Whether two shards live and each knows that the other is up."""
        first, second = self.nodes[one], self.nodes[two]
        if not (first.alive and second.alive):
            return False
        there, back = self.links.get((one, two)), self.links.get((two, one))
        return (
            there is not None
            and back is not None
            and first.known.get(two) == (second.epoch, there.number)
            and second.known.get(one) == (first.epoch, back.number)
        )

    def cut(self, one: int, two: int, keep: int = 0) -> None:
        """The links between two shards that live break: all but the first `keep` messages in either direction are lost."""
        assert self.linked(one, two)
        self.instant += 1
        self.tell("cut", one, two, "keep", keep)
        for here, there in ((one, two), (two, one)):
            link = self.links[here, there]
            link.drop_messages(keep)
            link.number = 0
            link.events.append(("lost", None))

    def relink(self, one: int, two: int) -> None:
        """Two shards that live and whose links broke are linked again."""
        self.instant += 1
        self.tell("relink", one, two)
        self._link_number += 1
        for here, there in ((one, two), (two, one)):
            link = self.links[here, there]
            link.number = self._link_number
            link.events.append(("up", (self.nodes[here].epoch, link.number)))

    def broken(self) -> list[tuple[int, int]]:
        """The pairs of living shards whose links are cut."""
        return [
            (one, two)
            for (one, two), link in self.links.items()
            if one < two and not link.number and self.nodes[one].alive and self.nodes[two].alive
        ]

    def _stray(self, source: int, target: int, messages: list[Any]) -> None:
        for message in messages:
            self.strays.append((source, self.nodes[source].epoch, target, self.nodes[target].epoch, message))

    def _send(self, node: Node, epoch: int, peer: int, message: Any) -> None:
        as_received = [message[0], [list(item) for item in message[1]]]  # msgpack makes lists of tuples
        target = self.nodes[peer]
        self.tell("   ", node.shard, "->", peer, as_received)
        for item in message[1]:
            if item[0] == "report":
                node.may_cache.discard(item[1])
        known = node.known.get(peer)
        if not (node.alive and node.epoch == epoch and target.alive and known is not None and known[0] == target.epoch):
            self.strays.append((node.shard, node.epoch, peer, known[0] if known else 0, as_received))
        elif known[1] == self.links[node.shard, peer].number:
            link = self.links[node.shard, peer]
            link.add(as_received)
            if self.judges_order:
                link.notes.append((self.instant, dict(node.knows.get(node.shard, {}))))

    def waiting_events(self, shard: int) -> list[int]:
        """The peers from which something is under way to a shard."""
        links = self.links
        return [peer for peer in range(self.shards) if (link := links.get((peer, shard))) is not None and link.events]

    def deliver(self, source: int, target: int) -> None:
        """The next event of a link."""
        self.instant += 1
        kind, what = self.links[source, target].pop()
        node = self.nodes[target]
        node.seen = None
        self.tell("deliver", source, "->", target, kind, what)
        if kind in ("message", "old"):
            self._heard(node, source, what, is_old=kind == "old")
            if self.judges_order:
                sent, heard = self.links[source, target].notes.popleft()
                node.knows.setdefault(target, {})[source] = sent
                node.knows[source] = {**heard, source: sent}
            self._receive(node, source, what)
            vanished = self.nodes[source].vanished
            if vanished and not self.links[source, target].events:  # the home has read of all that went away
                for pool in [pool for pool in vanished if self.home(pool) == target]:
                    del vanished[pool]
            return
        if self._peer_changed(node, source, kind, what):
            node.may_cache -= {pool for pool in node.may_cache if self.home(pool) == source}
            node.changing.add(source)

    def _peer_changed(self, node: Node, peer: int, kind: str, what: Any) -> bool:
        """Tells a shard what became of a peer; False if it knows: a link that was cut ends once more with its shard."""
        if kind == "up":
            node.known[peer] = what
            node.met[peer] = what[0]
            self._peer_up(node, peer, what[0])
        elif kind == "lost":
            if node.known.pop(peer, None) is None:
                return False
            for connection in node.connections:
                self._count_asked(connection, peer)
            self._peer_lost(node, peer)
        elif node.met.get(peer) == what:
            del node.met[peer]
            self._peer_dead(node, peer)
        else:
            return False
        return True

    def _receive(self, node: Node, source: int, message: Any) -> None:
        node.tokens.receive(source, message)

    def _peer_up(self, node: Node, peer: int, epoch: int) -> None:
        node.tokens.peer_up(peer, epoch)

    def _peer_lost(self, node: Node, peer: int) -> None:
        node.tokens.peer_lost(peer)

    def _peer_dead(self, node: Node, peer: int) -> None:
        node.tokens.peer_dead(peer)

    def _count_asked(self, connection: SimulatedConnection, home: int | None = None) -> None:
        """A token may have been on its way to a connection, and was lost with its shard, or with the link to its home."""
        for pool, (since, *_) in connection.asked.items():
            if home is None or self.home(pool) == home:
                connection.past.append((pool, since, self.instant))

    def count_all(self, connection: SimulatedConnection) -> None:
        """It may have got a token of any of its pools, and have given it up again, since its shard was looked at."""
        first = max(connection.arrived, self.looked + 1)
        for pool in connection.pools:
            connection.past.append((pool, connection.asked.get(pool, (first, 0, 0.0))[0], self.instant + 1))

    def _heard(self, node: Node, source: int, message: Any, *, is_old: bool) -> None:
        if isinstance(message[0], str):
            return
        for item in message[1]:
            if item[0] == "grant" and item[3] and not is_old:
                node.may_cache.add(item[1])
            elif item[0] in ("grant", "reclaim"):
                node.may_cache.discard(item[1])
            elif item[0] == "recall":
                recalled = {pool for pool in node.may_cache if pool.partition(":")[0] == item[1]}
                node.may_cache -= {pool for pool in recalled if self.home(pool) == source}

    def deliver_stray(self, index: int) -> None:
        """A message by or to an earlier incarnation arrives after all: once its link is known to be dead."""
        self.instant += 1
        source, source_epoch, target, target_epoch, message = self.strays[index]
        node = self.nodes[target]
        if node.alive and (node.epoch != target_epoch or node.met.get(source) != source_epoch):
            del self.strays[index]
            self.tell("stray", source, "->", target, message)
            node.tokens.receive(source, message)

    # Configuration

    def push(self, rules: Rules) -> int:
        """The coordinator stores a configuration and sends it to every shard that lives."""
        self.instant += 1
        self.versions.append(rules)
        self.pushed_s.append(self.now_s)
        version = len(self.versions) - 1
        self.tell("push", version, {pool: tuple(rule) for pool, rule in rules.items()})
        for node in self.nodes:
            if node.alive:
                node.pushed.append(version)
        return version

    def push_again(self, shard: int) -> None:
        """A shard is sent the version that it was sent last, as by a coordinator that starts again."""
        node = self.nodes[shard]
        node.pushed.append(node.pushed[-1] if node.pushed else node.version)

    def overdue(self, seconds: float) -> list[int]:
        """The living shards that have not acknowledged a version that was pushed so long ago."""
        due = [version for version, at_s in enumerate(self.pushed_s) if at_s <= self.now_s - seconds]
        return [node.shard for node in self.nodes if node.alive and due and node.done < due[-1]]

    def apply(self, shard: int, *, skip: bool = False, how: str = "exact") -> None:
        """A shard applies the next version it was sent, or (skip) the last. `how`: it is told exactly which pools have
        another rule, their kinds, or nothing; or as a ClusterImage tells it, of addresses those alone that do not follow the
        general rule."""
        self.instant += 1
        node = self.nodes[shard]
        before, version = node.version, node.pushed.popleft()
        if skip and node.pushed:
            version = node.pushed.pop()
            node.pushed.clear()
        old, new = self.versions[before], self.versions[version]
        changed = {pool for pool in (*old, *new) if old.get(pool) != new.get(pool)}
        if how == "kinds":
            changed = {"quota", *(pool.partition(":")[0] for pool in changed)}
        if how == "general" or (how == "exact" and self.has_general_rules):
            ips = {pool for pool in (*old, *new) if pool.startswith("ip:")}
            before, after = (partial(rule_in, rules) for rules in (old, new))
            changed = (changed - ips) | changed_of_kind("ip", before, after, ips)
        names = None if how == "unknown" else sorted(changed)  # in one order, whatever strings hash to
        self.tell("apply", shard, version, "unknown" if names is None else names)
        self._apply(node, version, names)

    def _apply(self, node: Node, version: int, changed: Collection[str] | None) -> None:
        changed = self._change(node, version, changed)
        node.version = version
        node.may_cache.clear()  # what its home can't revoke any more is given up
        epoch = node.epoch

        def done() -> None:
            self.tell("   ", node.shard, "done", version)
            if node.epoch == epoch:
                node.done = max(node.done, version)
                node.listens = node.listens or not node.tokens.peer_is_ahead
                self._count_acks()

        node.tokens.apply(version, done, changed)

    def _change(self, node: Node, version: int, changed: Collection[str] | None) -> Collection[str] | None:
        """Everything of a shard but its tokens comes to a version; which pools have another rule, as tokens are told."""
        return changed

    def _count_acks(self) -> None:
        self.acked = max(self.acked, min((node.done for node in self.nodes if node.alive), default=0))

    def caps(self, pool: str, since: int) -> list[float]:
        """The caps of a pool in all versions from `since` on."""
        return [
            float("inf") if (rule := rules.get(pool, UNLIMITED)).cap is None else rule.cap
            for rules in self.versions[since:]
        ]

    # Connections

    def listens(self, shard: int) -> bool:
        """Whether a shard accepts connections yet."""
        return self.nodes[shard].listens

    def arrive(
        self, shard: int, pools: tuple[str, ...], *, rated: bool = False, at_once: bool = False
    ) -> SimulatedConnection:
        """A connection is accepted by a shard. `rated`: before its last pool it waits for a rate (see resume). `at_once`: it
        waits for no other to close."""
        assert self.listens(shard), "tokens.py, T5"
        self.instant += 1
        node = self.nodes[shard]
        first = len(pools) - 1 if rated and len(pools) > 1 else len(pools)
        connection = SimulatedConnection(self, len(self.everybody), node, pools, first)
        self.everybody.append(connection)
        node.connections[connection] = None
        connection.at_once = at_once
        decision = node.tokens.take(pools[:first], connection, at_once=at_once)
        self.tell("arrive", shard, "connection", connection.number, pools[:first], "at once" * at_once, decision)
        self._go_on(connection, decision)
        return connection

    def resume(self, connection: SimulatedConnection) -> None:
        """The rate of a suspended connection was recorded: it goes on to its last pool."""
        self.instant += 1
        connection.state = "pending"
        more, connection.first = connection.pools[connection.first :], len(connection.pools)
        decision = connection.node.tokens.resume(more, connection)
        self.tell("resume", connection.node.shard, "connection", connection.number, decision)
        self._go_on(connection, decision)

    def _go_on(self, connection: SimulatedConnection, decision: Admitted | Refused | None) -> None:
        if decision is not None:
            self.settle(connection, decision)
        else:
            self.follow(connection)

    def follow(self, connection: SimulatedConnection, seen: TokensSnapshot | None = None) -> None:
        """Notes what a connection in flight holds and waits for: used from when it asked, if it got the token."""
        holds, waits_for = (seen or self.snapshot_of(connection.node)).in_flight.get(connection, ((), None))
        since = max(connection.arrived, self.looked + 1)
        for pool in [pool for pool in connection.held if pool not in holds]:
            connection.past.append((pool, connection.held.pop(pool), self.instant))
        if not holds and waits_for is None:  # refused and not yet told, maybe by a pool beyond the one it waited for
            self._count_asked(connection)
        for pool in holds:
            connection.held.setdefault(pool, connection.asked.pop(pool, (since, 0, 0.0))[0])
        if waits_for and waits_for not in connection.asked:
            connection.knew[waits_for] = connection.node.knew.get(self.home(waits_for), {})
        connection.asked = {
            pool: connection.asked.get(pool, (since, self.instant, self.now_s))
            for pool in ([waits_for] if waits_for else [])
        }

    def settle(self, connection: SimulatedConnection, decision: Admitted | Refused) -> None:
        """A decision reached its connection."""
        assert connection.state == "pending", f"connection {connection.number} is {connection.state}, decided again"
        self.tell("   ", "connection", connection.number, decision)
        since = max(connection.arrived, self.looked + 1)
        index = connection.pools.index(decision.pool) if isinstance(decision, Refused) else connection.first
        for pool in connection.pools[:index]:
            connection.held.setdefault(pool, connection.asked.get(pool, (since, 0, 0.0))[0])
        if decision is ADMITTED and connection.first < len(connection.pools):
            connection.asked.clear()
            connection.state = "suspended"
            connection.node.tokens.suspend(connection.pools[: connection.first], connection)
            return
        connection.decision = decision
        if connection.node.tokens.restarted != connection.node.restarted:
            self.count_all(connection)
        if decision is ADMITTED:
            connection.state = "open"
            for pool in connection.pools:
                self.open[pool] = self.open.get(pool, 0) + 1
            self.books.admitted(connection.node, connection.number, connection.pools)
        else:
            self.instant += 1  # its tokens were in use when others were decided in the same pass
            self._end(connection, "refused")
        self.on_settled(connection)

    def force(self, shard: int, pool: str) -> None:
        """A connection that the cap of its pool must not stop."""
        assert self.listens(shard), "tokens.py, T5"
        self.instant += 1
        node = self.nodes[shard]
        connection = SimulatedConnection(self, len(self.everybody), node, (pool,), 1)
        self.everybody.append(connection)
        self.tell("force", shard, "connection", connection.number, pool)
        connection.state, connection.held[pool] = "open", self.instant
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
        """The client of a connection in flight goes away."""
        self.instant += 1
        self.tell("cancel", connection.node.shard, "connection", connection.number)
        self.follow(connection)
        self._leave(connection)
        self._end(connection, "cancelled")
        connection.node.tokens.cancel(connection)

    def _leave(self, connection: SimulatedConnection) -> None:
        """A connection stops waiting before its home hears of that: a token that is granted to it all the same was its
        own until now. At home that is known at once."""
        node = connection.node
        for pool, (since, *_) in connection.asked.items():
            home = self.home(pool)
            link = self.links.get((home, node.shard))
            if link is not None and link.tokens.get(pool):
                connection.past.append((pool, since, self.instant))
            elif home != node.shard:
                node.vanished.setdefault(pool, []).append((connection, since, self.instant))

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
        node = self.nodes[shard]
        for connection in node.connections:
            for pool, (_, until, _) in connection.asked.items():
                if connection.late is None or connection.late[0] != until:
                    connection.late = until, self.now_s
                elif self.now_s >= connection.late[1] + DEADLINE_S and (
                    connection.at_once or not node.rule_of(pool).wait
                ):
                    connection.overdue = until
        node.ticked_s = self.now_s
        waited = self.snapshot_of(node).in_flight if any(each.asked for each in node.connections) else {}
        node.tokens.tick(self.now_s)
        if waited:
            still = self.snapshot_of(node).in_flight
            for connection, (_, pool) in waited.items():
                if pool is not None and still[connection][1] is None:  # its deadline has passed
                    self._leave(cast(SimulatedConnection, connection))

    def end_pass(self, shard: int) -> None:
        """A shard ends a pass of its loop."""
        self.instant += 1
        node = self.nodes[shard]
        node.tokens.continue_change()
        node.tokens.flush()
        node.seen = None

    def home(self, pool: str) -> int:
        """The home of a pool."""
        home = self._homes.get(pool)
        if home is None:
            home = self._homes[pool] = home_of(pool, self.shards)
        return home
