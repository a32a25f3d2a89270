"""Main of one shard process: builds its parts and runs them in nested nurseries, innermost stopped first.

poller            callbacks for sockets and links        outlives everybody who sends or writes
└ journal         ticks, parts                           last to write: everybody inside writes to it
  └ mesh          links; tasks of requests that wait     outlives connections, which still give tokens back
    └ connections groups, logs, timers                   shutdown gives them a moment, then cancels
      └ acceptors one callback per listener              shutdown pauses them at once
"""

from __future__ import annotations

import json
import os
import resource
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import trio

from broker.accept.entrance import Entrance
from broker.gauges import describe_gauges
from broker.journal.writer import JournalWriter
from broker.kafka import Kafka
from broker.log.memory import keep_freed_buffers
from broker.logger import RateLimitedLogger
from broker.serve.authentication import Authentication
from broker.serve.connection import Connection
from broker.serve.dispatch import Dispatcher
from broker.serve.muted import Muted
from broker.serve.serving import Serving
from broker.serve.throttling import Throttling
from broker.serve.tls import context_of
from broker.shard_counters import Layout, ShardCounters, TopTalkers
from broker.timers import Timers
from shards.config.cluster_plan import COORDINATOR_MEMBER, ClusterPlan
from shards.config.image import ClusterImage
from shards.config.subscriber import Subscriber
from shards.mesh.deferred import Deferred, Spawn
from shards.mesh.mesh import CONTROL, COORDINATOR, DATA, Hello, Mesh, Peer
from shards.mesh.poller import Poller
from shards.quotas.sharded_quotas import ShardedQuotas
from shards.supervisor.binding import RunDir
from shards.tokens.tokens import Tokens

LEAVING = ("leaving",)
"""Told to the coordinator by a shard that ends in good order: everything it had open it has closed."""
_TICK_S = 0.25
_GRACE_S = 1.0
_IDLE_SWEEP_S = 5.0
_TOP_CONNECTED = 100
_POOLS_PER_EVENT = 1000  # of the pools of a dead shard
# Descriptors kept for log segments, links and the like; a connection beyond is refused as `fd_limit`.
_RESERVED_DESCRIPTORS = 512


def run(plan: ClusterPlan, run_dir: RunDir, broker: int, shard: int, ready: int, epoch: int) -> int:
    """Runs shard `shard` of broker `broker` until SIGTERM; writes one line to `ready` once it accepts connections."""
    keep_own_sockets(plan, (broker, shard))
    raise_descriptor_limit()
    keep_freed_buffers()
    trio.run(ShardProcess(plan, run_dir, broker, shard, epoch).serve, ready)
    return 0


def raise_descriptor_limit() -> None:
    """As many descriptors as this user may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def keep_own_sockets(plan: ClusterPlan, member: tuple[int, int]) -> None:
    """Closes what belongs to the other processes; the supervisor keeps it open for them."""
    for other, listening in plan.client_sockets.items():
        if other != member:
            for _, sock in listening:
                sock.close()
    for other, sock in plan.mesh_sockets.items():
        if other != member:
            sock.close()
    if member != COORDINATOR_MEMBER and plan.admin_socket is not None:
        plan.admin_socket.close()


class ShardProcess:
    """One shard process: its parts, and how they are wired."""

    def __init__(self, plan: ClusterPlan, run_dir: RunDir, broker: int, shard: int, epoch: int) -> None:
        self.plan = plan
        self.run_dir = run_dir
        self.broker = broker
        self.shard = shard
        self.hello = Hello(broker, shard, epoch, os.getpid(), "")
        self.log = RateLimitedLogger(broker=broker, shard=shard)
        self.poller = Poller()
        self.journal = JournalWriter(plan.journal_dir, broker, shard, epoch)
        self.counters = ShardCounters(
            ShardCounters.path(plan.run_dir, broker, shard), Layout(endpoint.listener for endpoint in plan.endpoints)
        )
        self.counters.take_over(epoch)
        self.top_talkers = TopTalkers()
        self.image = ClusterImage(broker)
        self.tokens = Tokens(
            shard,
            plan.shards,
            epoch=epoch,
            send=self._send,
            rule_of=self.image.rule_of,
            on_grant=self._granted,
            on_reclaim=self._reclaimed,
            on_loss=self._lost,
        )
        self.timers = Timers(self.poller)
        self.muted = Muted(self.timers)
        self.meters = ShardedQuotas(shard, plan.shards, self.image, call=self._call, now_ms=self._now_ms)
        self.throttling = Throttling(self.meters, self.image, self.journal, self.counters)
        self._counted: dict[str, int] = {}
        self.connections: dict[int, Connection] = {}
        names = tuple(dict.fromkeys(endpoint.listener for endpoint in plan.endpoints))
        self.entrance = Entrance(
            shard,
            plan.shards,
            names,
            self.image,
            self.tokens,
            self.poller,
            self.journal,
            self.counters,
            self.top_talkers,
            self.connections,
            send=self._send,
            request=self._request,
            fd_ceiling=max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _RESERVED_DESCRIPTORS, 64),
        )
        self.subscriber = Subscriber(self.image, self._enforce)
        self._configured = trio.Event()
        self.mesh: Mesh
        self.kafka: Kafka

    async def serve(self, ready: int) -> None:
        """Runs everything until SIGTERM, then stops from the inside out."""
        # The order matters: what a pass did is on its way to disk before the tokens it freed are on their way to others.
        self.poller.at_end_of_pass(self.entrance.flush)
        self.poller.at_end_of_pass(self.journal.flush)
        self.poller.at_end_of_pass(self.counters.flush)
        with ExitStack() as at_end:
            async with trio.open_nursery() as outer:
                await outer.start(self.poller.run)
                async with trio.open_nursery() as journalling:
                    journalling.start_soon(self._tick)
                    async with trio.open_nursery() as meshing:
                        self._join_mesh(meshing)
                        await self.subscriber.ready.wait()
                        # Until here SIGTERM ends the process at once: it may wait in vain, and nothing is lost with it.
                        signals = at_end.enter_context(trio.open_signal_receiver(signal.SIGTERM))
                        async with trio.open_nursery() as connecting:
                            await connecting.start(self.kafka.run)
                            connecting.start_soon(self.timers.run)
                            connecting.start_soon(self._close_idle)
                            connecting.start_soon(self.entrance.timers.run)
                            self._start_listening(connecting)
                            _say_ready(ready)
                            async for _ in signals:
                                break
                            await self._stop_connections()
                            connecting.cancel_scope.cancel()
                        self.kafka.close()
                        self.mesh.send(COORDINATOR, LEAVING)
                        self._end_of_pass()
                        meshing.cancel_scope.cancel()
                    journalling.cancel_scope.cancel()
                self.journal.close()
                outer.cancel_scope.cancel()

    # Mesh and configuration

    def _join_mesh(self, nursery: trio.Nursery) -> None:
        """Serves what peers and the coordinator call, and connects: the higher shard dials the lower, all the coordinator."""
        mesh = self.mesh = Mesh(self.hello, self.poller, nursery)
        mesh.on_message = self.entrance.receive
        mesh.on_up = self._peer_up
        mesh.on_down = self._peer_down
        mesh.serve("apply", self.subscriber.apply)
        mesh.serve("describe_tokens", lambda peer: self.tokens.describe())
        mesh.serve("describe_refusals", lambda peer: self.top_talkers.top())
        mesh.serve("describe_quota", lambda peer, user, client_id: self.meters.rates_here(user, client_id))
        mesh.serve(
            "describe_gauges", lambda peer: describe_gauges(self.meters, self.muted) + self.entrance.describe_gauges()
        )
        mesh.serve("describe_connections", self._describe_connections)
        self.meters.serve_on(mesh.serve)
        self.entrance.room.serve_on(mesh.serve)
        self.kafka = Kafka(self.plan, self.broker, self.shard, self.image, mesh, self.meters, Spawn(nursery.start_soon))
        nursery.start_soon(mesh.dial, self.run_dir.address(COORDINATOR_MEMBER), (DATA,))
        nursery.start_soon(self._meet_peers, nursery)

    async def _meet_peers(self, nursery: trio.Nursery) -> None:
        """Not before this shard knows its configuration: a home that does not know any cap grants whatever it is asked for."""
        await self._configured.wait()
        self.mesh.listen(self.plan.mesh_sockets[self.broker, self.shard], lambda hello: 2)
        for lower in range(self.shard):
            nursery.start_soon(self.mesh.dial, self.run_dir.address((self.broker, lower)), (CONTROL, DATA))

    async def _request(self, peer: int, method: str, *args: Any) -> Any:
        return await self.mesh.request(peer, method, *args)

    def _call(self, peer: int, method: str, *args: Any) -> Deferred[Any]:
        return self.mesh.call(peer, method, *args)

    def _now_ms(self) -> int:
        return self.poller.clock_ns() // 1_000_000

    def _send(self, peer: int, message: tuple[Any, ...]) -> None:
        self.mesh.send(peer, message)

    def _peer_up(self, key: int, peer: Peer) -> None:
        if key != COORDINATOR:
            self.tokens.peer_up(key, peer.epoch)
            self.entrance.peer_up(key)

    def _peer_down(self, key: int, peer: Peer) -> None:
        if key != COORDINATOR:
            self.tokens.peer_down(key)
            self.entrance.peer_down(key)
        else:
            self.subscriber.coordinator_lost()

    def _enforce(self, version: int, changed: frozenset[str], done: Callable[[], None]) -> None:
        """The view has become `version`: calls `done` once no token of an older one is left to be spent here."""
        self.poller.touch()

        def enforced() -> None:
            self.counters.set("version", version)
            self.journal.config(version, self.subscriber.delta, full=self.subscriber.whole)
            done()

        self._configured.set()
        self.kafka.image_changed(changed)
        self.throttling.image_changed()
        self.entrance.image_changed(version)
        self.tokens.apply(version, enforced, changed)

    # Connections

    def _start_listening(self, nursery: trio.Nursery) -> None:
        dispatcher = Dispatcher(self.kafka.routes, self.kafka.api_versions.respond, self.throttling)
        self.entrance.start_soon = nursery.start_soon
        for endpoint, sock in self.plan.client_sockets[self.broker, self.shard]:
            serving = Serving(
                endpoint.listener,
                sock.family,
                dispatcher,
                self.tokens,
                self.poller,
                self.journal,
                self.counters,
                self.connections,
                self.timers,
                self.muted,
                self.log,
                max_frame_bytes=self.image.get("socket.request.max.bytes"),
                authentication=self._authentication if "sasl" in endpoint.options else lambda: None,
                tls=context_of(endpoint),
            )
            self.entrance.open(endpoint.listener, sock, serving.admit)

    def _authentication(self) -> Authentication:
        return Authentication(self.image, self.counters, self.timers)

    async def _stop_connections(self) -> None:
        """Accepts no more, lets what is being answered finish for a moment, and closes everything."""
        self.poller.touch()
        self.entrance.close()
        for connection in [each for each in self.connections.values() if not each.busy or each.muted]:
            connection.close("shutdown")
        with trio.move_on_after(_GRACE_S):
            while self.connections:
                await trio.sleep(0.01)
                for connection in [each for each in self.connections.values() if not each.busy or each.muted]:
                    connection.close("shutdown")
        for connection in list(self.connections.values()):
            connection.close("shutdown")

    def _describe_connections(self, peer: int) -> dict[str, Any]:
        """How many are open, of how many addresses, and the addresses with most of them."""
        by_ip = Counter(connection.ip for connection in self.connections.values())
        return {"open": len(self.connections), "ips": len(by_ip), "top": by_ip.most_common(_TOP_CONNECTED)}

    # Time

    async def _close_idle(self) -> None:
        """`connections.max.idle.ms`: who asks nothing for so long gives its tokens back; negative: never."""
        while True:
            idle_ms = self.image.get("connections.max.idle.ms")
            await trio.sleep(min(max(idle_ms / 2000, 0.1), _IDLE_SWEEP_S) if idle_ms >= 0 else _IDLE_SWEEP_S)
            if idle_ms < 0:
                continue
            self.poller.touch()
            before_ns = self.poller.now_ns - idle_ms * 1_000_000
            for connection in list(self.connections.values()):
                if connection.last_used_ns < before_ns and not connection.busy:
                    connection.close("idle")

    async def _tick(self) -> None:
        """What is due without any event: deadlines and idle tokens, quiet spools, gauges."""
        while True:
            await trio.sleep(_TICK_S)
            self.poller.touch()
            self.tokens.tick(self.poller.now_ns / 1e9)
            self.journal.tick(self.poller.now_ns)
            self.entrance.tick()
            self.mesh.tick()
            self._set_gauges()

    def _set_gauges(self) -> None:
        tokens, counters = self.tokens, self.counters
        totals = tokens.totals()
        counters.set("tokens_in_use", totals.in_use)
        counters.set("tokens_cached", totals.cached)
        counters.set("pools", totals.pools)
        counters.set("muted", len(self.muted))
        for name, value in (
            ("decisions_home", tokens.decided_home),
            ("decisions_cached", tokens.decided_cached),
            ("decisions_rpc", tokens.decided_rpc),
            ("borrows", tokens.borrows),
            ("reclaims", tokens.reclaims),
            ("events", self.journal.written),
        ):
            counters.add(name, value - self._counted.get(name, 0))
            self._counted[name] = value

    def _granted(self, pool: str, peer: int, tokens: int, is_reported: bool) -> None:
        if not is_reported and peer != self.shard:
            self.counters.add("grants", tokens)
        detail = {"pool": pool, "to": peer, "tokens": tokens}
        self._move("grant", {**detail, "reported": True} if is_reported else detail)

    def _reclaimed(self, pool: str, peer: int, tokens: int, is_asked_for: bool) -> None:
        detail = {"pool": pool, "from": peer, "tokens": tokens}
        self._move("reclaim", detail if is_asked_for else {**detail, "unasked": True})

    def _lost(self, peer: int, pools: Mapping[str, int]) -> None:
        each = list(pools.items())
        for start in range(0, len(each), _POOLS_PER_EVENT):
            lost = dict(each[start : start + _POOLS_PER_EVENT])
            self._move("reclaim", {"from": peer, "tokens": sum(lost.values()), "lost": lost})

    def _move(self, kind: str, detail: Mapping[str, Any]) -> None:
        self.journal.add(kind, detail=detail, version=self.tokens.version)

    def _end_of_pass(self) -> None:
        self.entrance.flush()
        self.journal.flush()
        self.mesh.flush()


def _say_ready(ready: int) -> None:
    """Tells the supervisor's side of the pipe, which leads nowhere any more when this is a restart."""
    os.write(ready, json.dumps({}).encode() + b"\n")
    os.close(ready)
