"""The common parts of the steps of a course: the cluster, the client, the events seen so far, and harm that ends with its step.

steps_are_undone  However a step ends, its changes of the cluster are undone: a fault ends, a setting or quota is what it was
    before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from random import Random
from typing import Unpack, cast

from turnstile.admin_client import AdminError
from turnstile.options import FaultKind, FaultOptions
from turnstile.settings import as_entity, as_setting
from turnstile.verdict.judged import Client, Judged
from turnstile.verdict.machine import MS, Machine
from turnstile.verdict.timeline import SECOND, Busy, Event, Step, StepDetail, Timeline, is_work
from turnstile.verdict.times import Times
from turnstile.verdict.watch import Watch

LOOK_S = 0.02
_REFUSE_DEFAULTS = {"turnstile.refuse.mode": "close", "turnstile.refuse.error": "POLICY_VIOLATION"}
BUT_API_VERSIONS = (
    "Produce,Fetch,ListOffsets,Metadata,OffsetCommit,OffsetFetch,FindCoordinator,JoinGroup,Heartbeat,LeaveGroup,SyncGroup,"
    "InitProducerId,CreateTopics,DeleteTopics,CreatePartitions,DescribeConfigs,DescribeCluster,SaslHandshake"
)


class Stage:
    """The state of one course. `client`: None if the client was not started here. `baseline`: the timeline up to the end of that
    step. `is_subscribed`: True if the cluster has asked for telemetry from the beginning. `target`: the client among others, as
    a fault names it; empty if the cluster serves no others."""

    baseline: Timeline
    address: str
    """The client's address."""

    def __init__(
        self,
        cluster: Judged,
        watch: Watch,
        machine: Machine,
        start_client: Callable[[], Client] | None,
        *,
        times: Times,
        seed: int,
        target: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self.cluster = cluster
        self.watch = watch
        self.machine = machine
        self.start_client = start_client
        self.times = times
        self.random = Random(seed)
        self.target = target
        self.client: Client | None = None
        self.is_subscribed = False
        self.steps: list[Step] = []
        self.busy: list[Busy] = []
        self.skipped: dict[str, str] = {}
        self._say = say
        self._is_lost = False

    # The client

    def has_ended(self) -> bool:
        return self.exit_code() is not None

    def exit_code(self) -> int | None:
        """The exit code of the program; None while it runs, or if it was not started here."""
        return None if self.client is None else self.client.exit_code()

    def kill_client(self) -> None:
        if self.client is not None:
            self.client.kill()

    def gone(self) -> str:
        """The reason why there is no client to judge any more; empty while there is one."""
        if self.has_ended():
            return "the program had ended"
        return "the client had not come back" if self._is_lost and self.client is None else ""

    def pause(self, seconds: float, until: Callable[[], bool] = lambda: True, most_s: float = 0.0) -> None:
        """Lets the client go on for `seconds`, and then until `until()` is true, for `most_s` in all. Measures the client's CPU
        time before and after."""
        self.measure()
        time.sleep(seconds)
        self.wait_for(until, most_s - seconds)
        self.measure()

    def wait_for(self, wanted: Callable[[], bool], within_s: float) -> bool:
        """Waits until `wanted()` is true, the program has ended, or `within_s` have passed, not counting the time for which the
        machine stalled. Returns the last result of `wanted`."""
        began_ns = now_ns = time.monotonic_ns()
        while not (found := wanted()) and not self.has_ended():
            if (now_ns - began_ns) / MS - self.machine.stalled_ms(began_ns, now_ns) >= 1000 * within_s:
                break
            time.sleep(LOOK_S)
            now_ns = time.monotonic_ns()
        return found

    def measure(self) -> None:
        """Notes the client's CPU time up to now."""
        if self.client is not None:
            self.busy.append(Busy(time.monotonic_ns(), *self.client.busy_s()))

    def settle(self, name: str) -> None:
        """A step that leaves the client alone."""
        with self.step("settle", name):
            time.sleep(self.times.settle_s)

    # What was seen

    @contextmanager
    def step(self, kind: str, name: str) -> Iterator[StepDetail]:
        """Runs a step of the course and notes its times. The caller fills in the detail."""
        self._say(name)
        began_ns, detail = time.monotonic_ns(), StepDetail()
        yield detail
        self.steps.append(Step(kind, name, began_ns, time.monotonic_ns(), detail))

    def end_baseline(self) -> None:
        """Ends the baseline: all events up to now. The first address in them is the client's."""
        self.baseline = self.so_far()
        self.address = next((event.ip for event in self.baseline.events if event.ip), "127.0.0.1")

    def so_far(self) -> Timeline:
        return Timeline(self.steps, self.watch.all(), machine=self.machine)

    def requests_since(self, at_ns: int) -> list[Event]:
        return [event for event in self.watch.since(at_ns) if event.kind == "request"]

    def await_recovery(self, detail: StepDetail, *, whole: bool = False) -> None:
        """Waits until the client works again, and a little longer. `whole`: until all client ids and connections are back, after a
        step that took all its connections.

        A program may have several Kafka clients, with different client ids. If one of them still waited after this step, it would
        be quiet in the next step, whatever that does.
        """
        detail["lifted_ns"] = lifted_ns = time.monotonic_ns()
        self.wait_for(lambda: self.watch.first_work_after(lifted_ns) is not None, self.times.recover_s)
        detail["recovered_ns"] = recovered_ns = self.watch.first_work_after(lifted_ns)
        detail["has_ended"] = self.has_ended()
        self._is_lost = recovered_ns is None
        if whole:
            self._await_each_client(lifted_ns)
            usual = len({event.conn for event in self.baseline.within(self.baseline.baseline, "request")})
            self.wait_for(
                lambda: len({event.conn for event in self.requests_since(lifted_ns)}) >= usual, self.times.back_s
            )
        time.sleep(self.times.stay_s if whole else self.times.settle_s)

    def _await_each_client(self, lifted_ns: int) -> None:
        """Waits until each client id that worked in the baseline has worked since an instant, for recover_s at most."""
        usual = self.baseline.within(self.baseline.baseline, "request")
        clients = {event.client_id for event in usual if is_work(event)}
        left_s = self.times.recover_s - (time.monotonic_ns() - lifted_ns) / SECOND
        self.wait_for(lambda: clients <= {e.client_id for e in self.requests_since(lifted_ns) if is_work(e)}, left_s)

    # What is done to the client

    @contextmanager
    def fault(self, kind: FaultKind, **what: Unpack[FaultOptions]) -> Iterator[None]:
        name = ""
        try:
            name = self.cluster.fault(kind, **cast(FaultOptions, {**what, **self.target}))
            yield
        finally:
            surely(lambda: self._end_fault(name, kind))

    def _end_fault(self, name: str, kind: str) -> None:
        """Ends a fault. `name`: "" if Ctrl-C came before the cluster had answered with the name: then its kind and target tell."""
        alike = {"kind": kind, **self.target}.items()
        for each in [name] if name else [f["name"] for f in self.cluster.faults() if alike <= f.items()]:
            self.cluster.remove_fault(each)

    @contextmanager
    def quota(self, entity: str, **rates: float) -> Iterator[None]:
        rows = self.cluster.admin.get("/v1/quotas")["quotas"]
        before: dict[str, float] = next((row["values"] for row in rows if row["entity"] == as_entity(entity)), {})
        try:
            self.cluster.quota(entity, **rates)
            yield
        finally:
            surely(lambda: self.cluster.quota(entity, **{name: before.get(name) for name in rates}))

    @contextmanager
    def closed_at_accept(self) -> Iterator[None]:
        """Caps the client's address at 0 connections and ends those that are open. A client that a client id names may share its
        address with others: instead of the cap, a fault ends each of its connections."""
        if "client_id" in self.target:
            with self.fault("disconnect"):
                yield
            return
        name = as_setting("overrides")
        before = self.cluster.admin.get("/v1/cluster_config", key=name)[name]
        others = [entry for entry in before if entry.rpartition(":")[0].strip("[]") != self.address]
        own = f"[{self.address}]:0" if ":" in self.address else f"{self.address}:0"
        try:
            self.cluster.set({name: [*others, own]})
            self.end_connections()
            yield
        finally:
            surely(lambda: self.cluster.set({name: before or None}))

    @contextmanager
    def refused_with_an_error(self) -> Iterator[None]:
        """As closed_at_accept, but a new connection is answered: its ApiVersions as usual, its next request with POLICY_VIOLATION.
        For a client that a client id names, a fault answers each request but ApiVersions with that error."""
        if "client_id" in self.target:
            with self.cut("error", api=BUT_API_VERSIONS, error="POLICY_VIOLATION"):
                yield
            return
        before: dict[str, object] = {}
        for name, default in _REFUSE_DEFAULTS.items():
            value = self.cluster.admin.get("/v1/cluster_config", key=name)[name]
            before[name] = None if value == default else value
        try:
            self.cluster.set({**_REFUSE_DEFAULTS, "turnstile.refuse.mode": "api-error"})
            with self.closed_at_accept():
                yield
        finally:
            surely(lambda: self.cluster.set(before))

    @contextmanager
    def cut(self, kind: FaultKind, **what: Unpack[FaultOptions]) -> Iterator[None]:
        """Sets a fault, and ends the connections that are open."""
        with self.fault(kind, **what):
            self.end_connections()
            yield

    def end_connections(self) -> None:
        with self.fault("disconnect"):
            pass


def surely(undo: Callable[[], None]) -> None:
    """Calls `undo()`, and once more if Ctrl-C interrupts it; so `undo` must bear being called twice."""
    try:
        undo()
    except KeyboardInterrupt:
        with suppress(AdminError):
            undo()
        raise
