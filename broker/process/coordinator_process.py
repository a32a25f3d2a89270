"""Main of the coordinator process.

poller          callbacks for the links
└ mesh          one link to each shard, and the watch over it
  └ admin       HTTP; stopped first, so that no caller is told of a change that was not pushed
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import trio

from broker.faults.triggers import Triggers
from broker.journal.writer import open_coordinator
from broker.metrics.shard_counters import Layout, ShardCounters
from broker.process.after_fork import keep_own_sockets, raise_descriptor_limit
from broker.process.first_start import FirstStart
from broker.process.host_follower import HostFollower
from broker.process.shard_watchdog import EVERY_S, LEAVING, ShardWatchdog
from broker.runtime.journal_loss import JournalLoss
from broker.runtime.logger import RateLimitedLogger
from broker.runtime.set_aside import set_aside
from broker.storage.topics_on_disk import topics_on_disk
from shards.config.cluster_plan import COORDINATOR_MEMBER, ClusterPlan
from shards.config.config_state import Change
from shards.config.coordinator import Coordinator
from shards.config.limit_notes import lockouts_in_force
from shards.config.store_recovery import open_store
from shards.errors import CannotStore, DeadlineExceeded, PeerLost
from shards.loop.poller import Poller
from shards.loop.starting import starting_in
from shards.mesh.mesh import Mesh
from shards.mesh.peer import Hello, Peer
from shards.ownership import BrokerShard
from shards.settings.errors import TurnstileError
from shards.supervisor.coordinator_watchdog import CoordinatorWatchdog
from shards.supervisor.progress import CpuWaits, Progress
from shards.supervisor.restart_board import Restarts

_TICK_S = 0.25
_JOINING_S = 0.5  # the admin API waits no longer for shards that do not join
_FOR_EVER_S = 1e9  # a ping is open until it is answered, or its link ends


def run(
    plan: ClusterPlan,
    restarts_of: Callable[[BrokerShard], Restarts],
    watchdog: CoordinatorWatchdog,
    ready: int,
    epoch: int,
) -> int:
    """Runs the coordinator until SIGTERM; tells `ready` the limits in force, or why it can't start."""
    keep_own_sockets(plan, COORDINATOR_MEMBER)
    raise_descriptor_limit()
    try:
        control = CoordinatorProcess(plan, epoch, restarts_of, watchdog)
    except TurnstileError as fault:
        os.write(ready, json.dumps({"fault": str(fault)}).encode() + b"\n")
        return 1
    trio.run(control.serve, ready)
    return 0


def _member_of(hello: Hello) -> BrokerShard:
    return hello.broker, hello.shard


class CoordinatorProcess:
    """The coordinator process: wires the coordinator to its shards, its journal and its admin API."""

    def __init__(
        self,
        plan: ClusterPlan,
        epoch: int,
        restarts_of: Callable[[BrokerShard], Restarts],
        watchdog: CoordinatorWatchdog,
    ) -> None:
        self.plan = plan
        self._watchdog = watchdog
        self._restarts_of = restarts_of
        self.log = RateLimitedLogger(process="coordinator")
        self.poller = Poller(linger_s=0)  # the admin API, the store's thread: all of its other work is tasks
        self.journal = open_coordinator(plan.journal_dir, epoch)
        self._loss = JournalLoss(self.journal, self.log)
        self.hello = Hello(COORDINATOR_MEMBER[0], COORDINATOR_MEMBER[1], epoch, os.getpid(), "")
        self.peers: dict[BrokerShard, Peer] = {}
        self._leaving: set[BrokerShard] = set()
        self._shard_watchdog: ShardWatchdog
        self._progress = {member: Progress() for member in plan.members()}
        self._applying = {member: Progress() for member in plan.members()}
        self._cpu_waits = {member: CpuWaits() for member in plan.members()}
        layout = Layout(endpoint.listener for endpoint in plan.endpoints)
        self._counters = {
            member: ShardCounters(ShardCounters.path(plan.run_dir, *member), layout) for member in plan.members()
        }
        self._triggers = Triggers()
        self._all_joined = trio.Event()
        self.mesh: Mesh
        store, lost = open_store(
            plan.data_dir / "cluster.sqlite",
            now_s=time.time(),
            set_aside=lambda path, why: set_aside(path, why),
            topics_on_disk=lambda: topics_on_disk(plan.data_dir, plan.brokers),
        )
        self.coordinator = Coordinator(
            store,
            self,
            plan.members(),
            static=plan.static,
            stored=self._stored,
            acknowledged=self._acknowledged,
            lost=lost,
            run=plan.run,
            override_stored=plan.override_stored,
        )
        if not self.coordinator.is_first:  # else `turnstile up` says it where it was typed
            for sentence in self.coordinator.lost:
                self.log.warning(sentence)
        self._first_start = FirstStart(self.coordinator, plan)

    # Shards, as the coordinator sees them (publisher.Shards)

    async def request(self, member: BrokerShard, method: str, *args: object, timeout_s: float = 5.0) -> object:
        if method.startswith("describe_") and member in self.unresponsive():
            raise DeadlineExceeded(f"{member} does not answer")  # a display should not wait for it every time
        return await self.mesh.request(member, method, *args, timeout_s=timeout_s)

    def kill(self, member: BrokerShard) -> None:
        """Ends a shard that did not acknowledge a version in time."""
        self._end(member, "shard did not acknowledge in time; ending it")

    def is_busy(self, member: BrokerShard) -> bool:
        """True if a shard that has not acknowledged a version has used CPU time since this was asked before, or is still to be
        forked."""
        pid = self._pid(member)
        if pid is None:
            return not self._counters[member].value(
                "pid"
            )  # the shard has not been forked yet: the launcher imports for it
        return self._applying[member].is_made([pid], now_s=trio.current_time())

    def _end(self, member: BrokerShard, why: str) -> None:
        """Ends a shard's process; the supervisor starts it again."""
        pid = self._pid(member)
        if pid:
            self.log.warning(why, broker=member[0], shard=member[1], pid=pid)
            with contextlib.suppress(ProcessLookupError):  # the shard has just ended; its link says so soon
                os.kill(pid, signal.SIGKILL)

    def _pid(self, member: BrokerShard) -> int | None:
        """An open link proves whose pid it is. A shard that has not found this coordinator yet is known by the pid in
        its counters, if that is still a child of our supervisor."""
        peer = self.peers.get(member)
        return peer.pid if peer is not None else self._counted_pid(member)

    def _counted_pid(self, member: BrokerShard) -> int | None:
        pid = self._counters[member].value("pid")
        try:
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:  # the shard has ended, or there are too few descriptors to see
            return None
        return pid if int(parent) == os.getppid() else None

    async def serve(self, ready: int) -> None:
        """Runs everything until SIGTERM."""
        self._shard_watchdog = ShardWatchdog(self.plan.members(), now_s=trio.current_time())
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            async with trio.open_nursery() as outer:
                await outer.start(self.poller.run)
                async with trio.open_nursery() as meshing:
                    self.mesh = Mesh(
                        self.hello,
                        self.poller,
                        meshing,
                        self.log.call_mistaken,
                        key_of=_member_of,
                        on_up=lambda _, peer: self._shard_up(meshing, (peer.broker, peer.id), peer),
                        on_down=lambda _, peer: self._shard_down((peer.broker, peer.id), peer),
                        on_message=self._told,
                    )
                    self.poller.at_end_of_pass(self._end_of_pass)
                    self.coordinator.serve_on(self.mesh.serve)
                    self.mesh.serve("fault_fires", lambda member, name: self._fault_fires(name))
                    self.mesh.listen(self.plan.mesh_sockets[COORDINATOR_MEMBER], lambda hello: 1)
                    meshing.start_soon(self._tick)
                    meshing.start_soon(self._watch_shards, meshing)
                    async with trio.open_nursery() as admin:
                        admin.start_soon(self._begin, ready, admin)
                        async for _ in signals:
                            break
                        admin.cancel_scope.cancel()
                    meshing.cancel_scope.cancel()
                self.mesh.close()
                self.journal.end()
                outer.cancel_scope.cancel()

    def _end_of_pass(self) -> None:
        """The journal first: every change that is pushed to a shard is on its way to disk by then."""
        self.journal.flush()
        self.mesh.flush()

    async def _begin(self, ready: int, nursery: trio.Nursery) -> None:
        """Creates the topics, quotas and users asked for, which waits for every shard; then says so, and opens the admin API."""
        hosts = HostFollower(self.coordinator, self.log)
        await hosts.look_up()
        report = await self._first_start.apply()
        nursery.start_soon(hosts.run)
        if self.plan.token_secret:
            nursery.start_soon(self._delete_expired_tokens)
        os.write(ready, json.dumps(report._asdict()).encode() + b"\n")
        # Not above: a web server takes longer to import than the rest of a cluster to start, and no other process needs it.
        # Once the shards have joined, which start on the same cores; in a thread, as they need the coordinator from then on.
        with trio.move_on_after(_JOINING_S):
            await self._all_joined.wait()
        await trio.to_thread.run_sync(import_module, "..admin.http", __package__)
        from broker.admin.describe import Admin
        from broker.admin.http import serve

        plan = self.plan
        assert plan.admin_socket is not None
        listeners = [endpoint.listener for endpoint in plan.endpoints]
        admin = Admin(
            self.coordinator,
            plan.run_dir,
            listeners,
            plan.about(),
            plan.topics,
            data_dir=plan.data_dir,
            at_start=self._first_start.add_records,
            unresponsive=self.unresponsive,
            restarts=self._restarts_of,
            loss=self._loss,
        )
        nursery.start_soon(serve, admin, plan.admin_socket.fileno(), plan.admin_token)

    async def _delete_expired_tokens(self) -> None:
        """Delegation tokens that have expired go at intervals of `delegation.token.expiry.check.interval.ms`, until cancelled."""
        while True:
            await trio.sleep(self._setting("delegation.token.expiry.check.interval.ms") / 1000)
            try:
                await self.coordinator.delete_expired_tokens()
            except CannotStore as fault:
                self.log.warning("expired delegation tokens can't be deleted", why=str(fault))

    # The watch over the shards

    def unresponsive(self) -> set[BrokerShard]:
        """The shards that have not answered a ping in time (ShardWatchdog, unresponsive_until_answered)."""
        return self._shard_watchdog.unresponsive(now_s=trio.current_time())

    async def _watch_shards(self, nursery: trio.Nursery) -> None:
        """Pings every shard at intervals of EVERY_S, and ends a shard that neither answers nor makes progress."""
        while True:
            await trio.sleep(EVERY_S)
            now_s = trio.current_time()
            for member, peer in list(self.peers.items()):
                self._shard_watchdog.waited(member, self._cpu_waits[member].since_last_s(peer.pid), now_s=now_s)
                if self._shard_watchdog.begin_ping(member, now_s=now_s):
                    nursery.start_soon(self._ask, member, peer)
            for member, version in self.coordinator.describe_shards().items():
                if version is None or version < self.coordinator.state.version:
                    pid = self._pid(member)
                    if pid is None or self._progress[member].is_made([pid], now_s=now_s):
                        self._shard_watchdog.progressed(member, now_s=now_s)
            for member in self._shard_watchdog.take_overdue(self._timeout_s(), now_s=now_s):
                self._end(member, "shard does not answer; ending it")

    async def _ask(self, member: BrokerShard, peer: Peer) -> None:
        with contextlib.suppress(PeerLost, DeadlineExceeded):
            await self.mesh.request(member, "ping", timeout_s=_FOR_EVER_S)
            if self.peers.get(member) is peer:
                self._shard_watchdog.answered(member, now_s=trio.current_time())

    def _timeout_s(self) -> float:
        return self._setting("turnstile.shard.timeout.ms") / 1000

    def _setting(self, name: str) -> int:
        """The value of a setting for all brokers; one that can't be read counts as not set."""
        return self.coordinator.state.number(name, unreadable=lambda fault: None)

    def _stored(self, version: int, delta: list[Change]) -> None:
        """A version is stored: journaled before the push, as from here on either version may be in force for the audit."""
        for kind, key, _ in delta:
            if kind == "fault":
                self._triggers.forget(key)
        self.journal.config(version, [list(change) for change in delta])
        self.journal.flush()

    def _fault_fires(self, name: str) -> bool:
        """True if a fault with a trigger is for the call that a shard asks about."""
        return self._triggers.fires(name, self.coordinator.state.faults.get(name), time.monotonic() * 1000)

    def _acknowledged(self, version: int, delta: list[Change]) -> None:
        """A version is in force everywhere: journaled before the caller is answered, so that the audit can judge by it."""
        self.journal.config(version, [list(change) for change in delta], acknowledged=True)
        self.journal.flush()
        if any(kind == "setting" for kind, _, _ in delta):
            for sentence in lockouts_in_force(self.coordinator.state):
                self.log.warning(sentence)

    # Shards come and go

    def _shard_up(self, nursery: trio.Nursery, member: BrokerShard, peer: Peer) -> None:
        self.peers[member] = peer
        self._shard_watchdog.answered(member, now_s=trio.current_time())
        self.journal.add(
            "shard_up", detail={"broker": member[0], "shard": member[1], "epoch": peer.epoch, "pid": peer.pid}
        )
        starting_in(nursery)(self._join, member)

    async def _join(self, member: BrokerShard) -> None:
        await self.coordinator.connected(member)
        present = self.coordinator.state.version
        if all(version is not None and version >= present for version in self.coordinator.describe_shards().values()):
            self._all_joined.set()

    def _told(self, member: BrokerShard, message: Sequence[object]) -> None:
        if tuple(message) == LEAVING:
            self._leaving.add(member)

    def _shard_down(self, member: BrokerShard, peer: Peer) -> None:
        if self.peers.get(member) is peer:
            del self.peers[member]
            self._shard_watchdog.lost(member, now_s=trio.current_time())
        if member not in self._leaving:
            self.journal.shard_lost(member[0], member[1], peer.epoch)
        self._leaving.discard(member)
        self.coordinator.disconnected(member)

    async def _tick(self) -> None:
        while True:
            await trio.sleep(_TICK_S)
            # A slow disk may hold this loop up for longer than a shard's, which writes no store.
            self._watchdog.beat(2 * self._timeout_s(), now_s=time.monotonic())
            self.journal.tick(time.monotonic_ns())
            self._loss.tick(time.monotonic())
            self.mesh.tick()
