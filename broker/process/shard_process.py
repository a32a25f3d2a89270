"""Main of one shard process: makes its parts and runs them in nested nurseries, the innermost stopped first.

outer           callbacks for sockets and links (poller)   outlives everything that sends or writes
└ journalling   ticks                                      the journal is closed after outer: all callbacks write to it
  └ meshing     links; tasks of requests that wait         outlives the connections, which still give tokens back
    └ connecting  groups and logs, timers, idle connections  shutdown closes all connections, then cancels it
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

import trio

from broker.accept.shard_listeners import ShardListeners
from broker.kafka.transactions.homes import Shard
from broker.process.after_fork import keep_own_sockets, raise_descriptor_limit, say_ready
from broker.process.clients import Clients
from broker.process.cluster_peers import ClusterPeers
from broker.process.context import make_context
from broker.process.descriptions import serve_descriptions
from broker.process.fullest_limits import FullestLimits
from broker.process.gauges import ShardGauges, describe_gauges
from broker.process.kafka import Kafka
from broker.process.shard_cycle import ImageStep, PassStep, image_steps, pass_steps
from broker.process.shard_watchdog import LEAVING
from broker.process.shared_memory import SharedMemory
from broker.runtime import collector
from broker.runtime.logger import set_level
from broker.serve.client_quotas import make_client_quotas
from broker.serve.delegation_token_cache import DelegationTokenCache
from broker.serve.key_derivation import KeyDerivation
from broker.serve.throttling import Throttling
from broker.storage.memory import keep_freed_buffers
from shards.config.cluster_plan import COORDINATOR_MEMBER, ClusterPlan
from shards.config.subscriber import AppliedVersion, Subscriber
from shards.loop.deferred import Deferred, Spawn
from shards.loop.stalls import Stall
from shards.loop.starting import starting_in
from shards.loop.turns import Turns
from shards.mesh.exchange import Exchange
from shards.mesh.mesh import COORDINATOR, Mesh
from shards.mesh.peer import CONTROL, DATA, Hello, Peer, PeerKey
from shards.ownership import BrokerShard
from shards.supervisor.binding import MeshAddresses

_TICK_S = 0.25
_SWITCH_S = 0.0005  # a thread that encodes a large answer holds up the loop for no longer
# Descriptors that connections may not use, kept for log segments (files.py), links and the like: this many, or half of all if that
# is fewer. A connection that would need one of them is refused as `fd_limit`.
_RESERVED_DESCRIPTORS = 512


def run(
    plan: ClusterPlan, addresses: MeshAddresses, shared: SharedMemory, place: BrokerShard, ready: int, epoch: int
) -> int:
    """Runs the shard at `place` until SIGTERM; writes one line to `ready` once it accepts connections."""
    keep_own_sockets(plan, place)
    descriptors = raise_descriptor_limit()
    keep_freed_buffers()
    collector.make_rare()
    sys.setswitchinterval(_SWITCH_S)
    trio.run(ShardProcess(plan, addresses, shared, place, epoch, descriptors).serve, ready)
    return 0


class ShardProcess:
    """One shard process: its parts, and how they are wired. `descriptors`: how many it may have open."""

    def __init__(
        self,
        plan: ClusterPlan,
        addresses: MeshAddresses,
        shared: SharedMemory,
        place: BrokerShard,
        epoch: int,
        descriptors: int,
    ) -> None:
        self.plan = plan
        self.addresses = addresses
        self._ends = shared.ends
        self.broker, self.shard = broker, shard = place
        self.hello = Hello(broker, shard, epoch, os.getpid(), "")
        context = self.context = make_context(
            plan,
            place,
            epoch,
            send=self._send,
            send_to=self._send_to,
            request=self._request,
            start_soon=self._start_soon,
            stalled=self._stalled,
            returns=shared.start(place, plan.shards),
        )
        self._cluster_peers = ClusterPeers(broker, context.cluster, context.cluster_rate)
        self.quotas = make_client_quotas(context, self._call)
        self.throttling = Throttling(self.quotas, context.image, context.journal, context.counters)
        self._delegation_tokens = DelegationTokenCache(context.image, plan.token_secret)
        self._clients = Clients(
            plan, context, throttling=self.throttling, throughput=self.quotas.throughput, buckets=self.quotas.buckets,
            tokens=self._delegation_tokens,
        )  # fmt: skip
        self.connections = self._clients.connections
        self.shard_listeners = ShardListeners(
            context,
            tuple(dict.fromkeys(endpoint.listener for endpoint in plan.endpoints)),
            self.connections,
            fd_ceiling=descriptors - min(_RESERVED_DESCRIPTORS, descriptors // 2),
            call=self._call,
            ssl={endpoint.listener for endpoint in plan.endpoints if "tls" in endpoint.options},
        )
        self.gauges = ShardGauges(context, self._clients.muted, self.quotas.meters)
        self._fullest = FullestLimits(
            context.tokens, self.quotas.meters, context.image, self.shard_listeners.connection_rates
        )
        self.subscriber = Subscriber(context.image, self._enforce)
        self._configured = trio.Event()
        self._may_listen = trio.Event()
        self._ending = False
        self.mesh: Mesh  # from here on: made in `serve`
        self.turns: Turns
        self.kafka: Kafka
        self._keys: KeyDerivation
        self._pass_steps: list[PassStep]
        self._image_steps: list[ImageStep]
        self._start_in_mesh: Callable[..., None]

    async def serve(self, ready: int) -> None:
        """Runs everything until SIGTERM, then stops from the inside out."""
        with ExitStack() as at_end:
            async with trio.open_nursery() as outer:
                await outer.start(self.context.poller.run)
                async with trio.open_nursery() as journalling:
                    async with trio.open_nursery() as meshing:
                        self.context.journal.start(self.plan.shards, self.plan.brokers)
                        self._join_mesh(meshing)
                        journalling.start_soon(self._tick)
                        await self._may_listen.wait()
                        # Before this line SIGTERM ends the process at once: the wait above may never end, and nothing is lost.
                        signals = at_end.enter_context(trio.open_signal_receiver(signal.SIGTERM))
                        async with trio.open_nursery() as connecting:
                            await connecting.start(self.kafka.run)
                            connecting.start_soon(self.context.timers.run)
                            connecting.start_soon(self.connections.close_idle)
                            self._open_listeners()
                            say_ready(ready)
                            async for _ in signals:
                                break
                            self._ending = True
                            self.context.poller.touch()
                            self.shard_listeners.close()
                            await self.connections.stop()
                            connecting.cancel_scope.cancel()
                        self.kafka.close()
                        self.shard_listeners.observed_world.close()
                        self.mesh.send(COORDINATOR, LEAVING)
                        self._end_of_pass()
                        meshing.cancel_scope.cancel()
                    journalling.cancel_scope.cancel()
                outer.cancel_scope.cancel()
            self.context.journal.end()  # the poller may have had messages in hand that were still handled

    def _end_of_pass(self) -> None:
        for step in self._pass_steps:
            step()

    async def _tick(self) -> None:
        """Work that is due by time alone: deadlines and idle tokens, quiet spools, gauges."""
        poller = self.context.poller
        while True:
            await trio.sleep(_TICK_S)
            poller.touch()
            self.context.tokens.tick(poller.now_ns / 1e9)
            self.context.cluster.tick(poller.now_ns / 1e9)
            self.context.journal.tick(poller.now_ns)
            self.shard_listeners.tick()
            self.mesh.tick()
            self.quotas.expire()
            self.gauges.set()
            poller.stalls.look()
            self._fullest.tick()
            self._clients.tick()

    def _reset(self) -> None:
        """Closes every connection and forgets what clients did: groups, and what was recorded of rates and quotas."""
        self.context.poller.touch()
        self.connections.close_all("reset")
        self._clients.reset()
        self.shard_listeners.reset()
        self.throttling.reset()
        self.kafka.reset()

    # Mesh and configuration

    def _join_mesh(self, nursery: trio.Nursery) -> None:
        """Serves what peers and the coordinator call, and connects: the higher shard dials the lower, all the coordinator."""
        self._start_in_mesh = starting_in(nursery)
        spawn = Spawn(self._start_in_mesh)
        context, shard_listeners = self.context, self.shard_listeners
        exchange = Exchange(context.tokens.receive, {**shard_listeners.receivers, **self._cluster_peers.receivers})
        mesh = self.mesh = Mesh(
            self.hello,
            context.poller,
            nursery,
            context.log.call_mistaken,
            key_of=self._key_of,
            on_up=self._peer_up,
            on_down=self._peer_lost,
            on_dead=self._peer_dead,
            on_message=exchange.receive,
        )
        self._pass_steps = pass_steps(shard_listeners, context.journal, context.counters, self.quotas, mesh)
        context.poller.at_end_of_pass(self._end_of_pass)
        mesh.serve("ping", lambda peer: None)  # an answer shows that this loop runs
        mesh.serve("apply", self.subscriber.apply)
        mesh.serve("reset", lambda peer: self._reset())
        serve_descriptions(
            mesh.serve,
            self.hello,
            context,
            shard_listeners=shard_listeners,
            clients=self._clients,
            quotas=self.quotas,
            fullest=self._fullest,
            gauges=self._describe_gauges,
        )
        self.quotas.serve_on(mesh.serve)
        self.quotas.await_peers()
        self.shard_listeners.serve_on(mesh.serve)
        self.turns = Turns(spawn)
        self.kafka = Kafka(
            self.plan,
            Shard(self.broker, self.shard),
            context.image,
            mesh,
            self.turns,
            quotas=self.quotas,
            room=self._clients.room,
            ends=self._ends,
            tokens=self._delegation_tokens,
        )
        self._image_steps = image_steps(self.kafka, self.throttling, self._clients, shard_listeners)
        self._keys = KeyDerivation(spawn)
        nursery.start_soon(mesh.dial, self.addresses.address(COORDINATOR_MEMBER), (DATA,))
        nursery.start_soon(self._meet_peers, nursery)

    def _describe_gauges(self) -> list[list[object]]:
        gauges = describe_gauges(self.quotas.meters, self._clients.muted) + self.shard_listeners.describe_gauges()
        return gauges + self.kafka.describe_gauges() + self._clients.describe_gauges()

    async def _meet_peers(self, nursery: trio.Nursery) -> None:
        """Links this shard to its peers once it knows its configuration: a home that knew no cap would grant every borrow."""
        await self._configured.wait()
        me = self.broker, self.shard
        self.mesh.listen(self.plan.mesh_sockets[me], lambda hello: 2 if hello.broker == self.broker else 1)
        for lower in self.plan.members():
            if lower < me:
                channels = (CONTROL, DATA) if lower[0] == self.broker else (DATA,)
                nursery.start_soon(self.mesh.dial, self.addresses.address(lower), channels)

    def _key_of(self, hello: Hello) -> PeerKey:
        """Peers of this broker, and the coordinator, are known by their number; shards of other brokers as (broker, shard)."""
        near = hello.broker in (self.broker, COORDINATOR_MEMBER[0])
        return hello.shard if near else (hello.broker, hello.shard)

    async def _request(self, peer: int, method: str, *args: object) -> object:
        return await self.mesh.request(peer, method, *args)

    def _call(self, peer: int, method: str, *args: object) -> Deferred[object]:
        return self.mesh.call(peer, method, *args)

    def _send(self, peer: PeerKey, message: tuple[object, ...]) -> None:
        """Sends a message about tokens or rates; from SIGTERM on it sends none: else the tokens of the connections that this shard
        closes would admit connections that wait on shards which SIGTERM has not reached yet."""
        if not self._ending:
            self.mesh.send(peer, message)

    def _send_to(self, place: BrokerShard, message: tuple[object, ...]) -> None:
        self._send(self._cluster_peers.key_of(place), message)

    def _start_soon(self, function: Callable[..., Awaitable[object]], *args: object) -> None:
        self._start_in_mesh(function, *args)

    def _peer_up(self, key: PeerKey, peer: Peer) -> None:
        self._cluster_peers.peer_up(key, peer)
        if peer.broker == self.broker:
            self.context.tokens.peer_up(peer.id, peer.epoch)
            self.shard_listeners.peer_up(peer.id)
            self.quotas.peer_up(peer.id)

    def _peer_lost(self, key: PeerKey, peer: Peer) -> None:
        """The links to a peer broke: its process may live, and use what it was granted."""
        self._cluster_peers.peer_lost(key)
        if peer.broker == self.broker:
            self.context.tokens.peer_lost(peer.id)
            self.shard_listeners.peer_lost(peer.id)
            self.quotas.peer_lost(peer.id)
        elif key == COORDINATOR:
            self.subscriber.coordinator_lost()

    def _peer_dead(self, key: PeerKey, peer: Peer) -> None:
        self._cluster_peers.peer_dead(key)
        if peer.broker == self.broker:
            self.context.tokens.peer_dead(peer.id)
            self.shard_listeners.peer_dead(peer.id)
            self.kafka.peer_dead(peer.id)

    def _enforce(self, applied: AppliedVersion, done: Callable[[], None]) -> None:
        """The image has become another version: calls `done` once no token of an older one is left to be spent here."""
        tokens, cluster = self.context.tokens, self.context.cluster

        def enforced() -> None:
            self.context.counters.set("version", applied.version)
            self.context.journal.config(applied.version, applied.delta, full=applied.whole)
            # Else another version follows (no_asking_behind_a_peer).
            if not (tokens.peer_is_ahead or cluster.peer_is_ahead):
                self._may_listen.set()
            done()

        self.context.poller.touch()
        self._configured.set()
        set_level(self.context.image.get("turnstile.log.level"))
        for step in self._image_steps:
            step(applied.changed.kinds)
        cluster.apply_both(tokens, applied.version, enforced, applied.changed.pools)

    # Connections

    def _open_listeners(self) -> None:
        self._clients.open(
            self.plan.client_sockets[self.broker, self.shard],
            self.shard_listeners,
            self.kafka,
            self.mesh,
            self.turns,
            self._keys,
        )

    def _stalled(self, stall: Stall) -> None:
        """Something kept everything else of this shard waiting."""
        self.context.log.warning("the loop was held up", by=stall.by, ms=round(stall.took_ns / 1e6))
