"""The course: what the cluster does to the client, step by step, and what it saw meanwhile.

V1  Whatever ends a step, what the step did to the cluster is undone: faults, caps and quotas.
V2  A step of which the client would see nothing is left out, and the timeline says why.
V3  The order of the variants follows from the seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Protocol

from turnstile.verdict.checks.deadline import pairs
from turnstile.verdict.checks.kip599 import MUTATIONS
from turnstile.verdict.tail import Tail
from turnstile.verdict.timeline import SECOND, Event, Step, Timeline, is_work

_BUT_API_VERSIONS = (
    "Produce,Fetch,ListOffsets,Metadata,OffsetCommit,OffsetFetch,FindCoordinator,JoinGroup,Heartbeat,LeaveGroup,SyncGroup,"
    "InitProducerId,CreateTopics,DeleteTopics,CreatePartitions,DescribeConfigs,DescribeCluster,SaslHandshake"
)
_DATA = ("Produce", "Fetch")
_TRIES, _PAIRS = 8, 2
"""Whether two requests are on the way when the throttle times are told is chance; so many times it is tried, for so many pairs."""
_OVERLAP_LONG_MS, _OVERLAP_SHORT_MS, _OVERLAP_DELAY_MS = 1000, 100, 150


class CannotJudge(Exception):
    """There is no client to judge; `str()` says why."""


class Judged(Protocol):
    """The part of turnstile.Cluster that the course needs."""

    def set(self, settings: Mapping[str, Any] | None = None, /, **named: Any) -> None: ...
    def quota(self, entity: str, /, **rates: float | None) -> None: ...
    def fault(self, kind: str, /, **what: Any) -> str: ...
    def remove_fault(self, *names: str) -> None: ...
    def kill_shard(self, shard: int = 0, broker: int = 0) -> None: ...


class Client(Protocol):
    """The program under test (program.py)."""

    def exit_code(self) -> int | None: ...
    def busy_s(self) -> float: ...
    def terminate(self) -> None: ...
    def wait(self, within_s: float) -> bool: ...
    def kill(self) -> None: ...


@dataclass(frozen=True)
class Times:
    """Seconds of each step. `request_timeout_s`: the client's; None: no throttle time is longer than it."""

    connect_s: float = 30.0
    baseline_s: float = 4.0
    short_s: float = 2.5
    long_s: float = 5.0
    long_ms: int = 1500
    mutation_s: float = 5.0
    refuse_s: float = 6.0
    recover_s: float = 15.0
    settle_s: float = 1.0
    herd_s: float = 7.0
    shutdown_s: float = 12.0
    copies: int = 5
    request_timeout_s: float | None = None

    def quick(self) -> Times:
        """As short as a client with pauses of tens of milliseconds can be judged by; for tests."""
        return replace(
            self, connect_s=12, baseline_s=1.0, short_s=0.5, long_s=0.9, long_ms=300, mutation_s=2, refuse_s=2.4, recover_s=4,
            settle_s=0.4, herd_s=3.6, shutdown_s=3,
        )  # fmt: skip


class Course:
    """Runs the steps that are wanted. `start_client()` starts the program or a copy of it; None: it runs already."""

    def __init__(
        self,
        cluster: Judged,
        tail: Tail,
        start_client: Callable[[], Client] | None,
        *,
        times: Times,
        steps: set[str],
        seed: int = 0,
        target: Mapping[str, str] | None = None,
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """`target`: the client among others, as a fault names it: {"client_id": ...} or {"ip": ...}; None: all there is."""
        self._cluster = cluster
        self._tail = tail
        self._start_client = start_client
        self._times = times
        self._wanted = steps
        self._random = Random(seed)
        self._target = dict(target or {})
        self._say = say
        self._steps: list[Step] = []
        self._busy: list[tuple[int, float]] = []
        self._skipped: dict[str, str] = {}
        self._client: Client | None = None
        self._wall_offset_ns = time.time_ns() - time.monotonic_ns()

    def run(self) -> Timeline:
        """The whole course. Raises CannotJudge, OSError when the program can't be started."""
        began_ns = time.monotonic_ns()
        try:
            self._client = self._start_client() if self._start_client is not None else None
            self._begin(began_ns)
            for kind, step in (
                ("throttle", self._throttling),
                ("overlap", self._overlapping),
                ("mutation", self._mutating),
                ("refuse", self._refusing),
                ("rate", self._rating),
                ("kill", self._killing),
                ("herd", self._herding),
                ("shutdown", self._shutting_down),
            ):
                if kind in self._wanted:
                    if self._has_ended():
                        self._skipped[kind] = "the program had ended"
                    else:
                        step()
        finally:
            if self._client is not None:
                self._client.kill()
        return Timeline(
            self._steps, self._events(), self._busy, wall_offset_ns=self._wall_offset_ns, skipped=self._skipped
        )

    # What was seen

    def _events(self) -> list[Event]:
        """Events of the client, by time."""
        self._tail.catch_up()
        events = self._tail.events
        ip, client_id = self._target.get("ip"), self._target.get("client_id")
        if client_id is not None:
            own = {event.conn for event in events if event.client_id == client_id}
            events = [event for event in events if event.conn in own]
        if ip is not None:
            events = [event for event in events if event.ip == ip]
        return sorted(events, key=lambda event: event.at_ns)

    def _works_after(self, at_ns: int) -> int | None:
        """When the client's first piece of work after an instant was taken up."""
        self._tail.catch_up()
        return min((event.at_ns for event in self._events_since(at_ns) if is_work(event)), default=None)

    def _events_since(self, at_ns: int) -> Iterator[Event]:
        client_id, ip = self._target.get("client_id"), self._target.get("ip")
        for event in reversed(self._tail.events):
            if event.at_ns < at_ns - 5 * SECOND:
                return
            if event.at_ns > at_ns and client_id in (None, event.client_id) and ip in (None, event.ip):
                yield event

    def _has_ended(self) -> bool:
        return self._client is not None and self._client.exit_code() is not None

    def _measure(self) -> None:
        if self._client is not None:
            self._busy.append((time.monotonic_ns(), self._client.busy_s()))

    def _pause(self, seconds: float) -> None:
        """Time in which the client goes on; how busy it is is measured at both ends."""
        self._measure()
        time.sleep(seconds)
        self._measure()

    @contextmanager
    def _step(self, kind: str, name: str) -> Iterator[dict[str, Any]]:
        """A step, with a detail to be filled in."""
        self._say(name)
        began_ns, detail = time.monotonic_ns(), dict[str, Any]()
        yield detail
        self._steps.append(Step(kind, name, began_ns, time.monotonic_ns(), detail))

    @contextmanager
    def _fault(self, kind: str, **what: Any) -> Iterator[None]:
        name = self._cluster.fault(kind, **what, **self._target)
        try:
            yield
        finally:
            self._cluster.remove_fault(name)

    # The baseline

    def _begin(self, began_ns: int) -> None:
        """Waits until the client works, and lets it."""
        self._say("waiting for the client")
        deadline = time.monotonic() + self._times.connect_s
        while self._works_after(began_ns) is None:
            if self._has_ended():
                raise CannotJudge("the program ended before it had asked the cluster for anything")
            if time.monotonic() > deadline:
                raise CannotJudge(f"no client asked the cluster for anything within {self._times.connect_s:g} s")
            time.sleep(0.02)
        self._await_all_connections(began_ns)
        with self._step("baseline", "baseline"):
            self._pause(self._times.baseline_s)
        self._baseline = Timeline(self._steps, self._events())
        self._address = next((e.ip for e in self._baseline.events if e.ip), "127.0.0.1")

    def _await_all_connections(self, began_ns: int) -> None:
        """Until the client has opened no connection for a while."""
        deadline = time.monotonic() + self._times.connect_s / 4
        while time.monotonic() < deadline:
            time.sleep(self._times.settle_s / 4)
            self._tail.catch_up()
            opened = [e.at_ns for e in self._events_since(began_ns) if e.kind == "admitted"]
            if not opened or time.monotonic_ns() - max(opened) > self._times.settle_s * SECOND:
                return

    # Throttling

    def _throttling(self) -> None:
        times = self._times
        seen = {event.api for event in self._events_since(self._baseline.baseline.began_ns)}
        used = [api for api in _DATA if api in seen]
        for api in used:
            self._throttle(f"{api} throttled, short", 250, times.short_s, api=api)
        self._throttle(
            f"throttled by {times.long_ms} ms", times.long_ms, times.long_s, **({"api": used} if used else {})
        )
        self._throttle("every request throttled", 400, times.short_s)
        if times.request_timeout_s is None:
            self._skipped["timeout"] = "none was longer than its request timeout, which --request-timeout tells"
        else:
            longer_s = times.request_timeout_s + 1
            self._throttle("throttled for longer than the request timeout", int(longer_s * 1000), longer_s + 2)
        with self._step("settle", "not throttled any more"):
            time.sleep(times.settle_s)

    def _throttle(self, name: str, throttle_ms: int, seconds: float, **what: Any) -> None:
        with self._step("throttle", name):
            with self._fault("throttle", throttle_ms=throttle_ms, **what):
                self._pause(seconds)
            time.sleep(throttle_ms / 1000)  # until the last connection is not muted any more

    def _overlapping(self) -> None:
        """Tells a connection that has several requests on the way a long throttle time and then a short one."""
        piped = [
            event
            for event in self._baseline.within(self._baseline.baseline, "request")
            if event.api in _DATA and event.value > 0
        ]
        candidates = piped or [e for e in self._baseline.within(self._baseline.baseline, "request") if e.api in _DATA]
        if not candidates:
            self._skipped["overlap"] = "the client neither produced nor fetched"
            return
        for number in range(_TRIES):
            if len(pairs(Timeline(self._steps, self._events()))) >= _PAIRS:
                return
            now = [
                e for e in self._events_since(time.monotonic_ns() - SECOND) if e.kind == "request" and e.api in _DATA
            ]
            chosen = max(now, key=lambda event: event.value, default=None)
            if chosen is None:
                continue
            where = f"[{chosen.ip}]:{chosen.port}" if ":" in chosen.ip else f"{chosen.ip}:{chosen.port}"
            for_one = {"api": _DATA, "connection": where}
            with (
                self._step("overlap", f"{_OVERLAP_LONG_MS} ms, then {_OVERLAP_SHORT_MS} ms ({number + 1})"),
                ExitStack() as set_,
            ):
                # Both act on the first request, and the longer is told; the next is told the shorter.
                told = {"mute": False, **for_one}
                set_.enter_context(self._fault("delay", delay_ms=_OVERLAP_DELAY_MS, **for_one))
                set_.enter_context(self._fault("throttle", throttle_ms=_OVERLAP_SHORT_MS, **told))
                set_.enter_context(self._fault("throttle", throttle_ms=_OVERLAP_LONG_MS, once=True, **told))
                time.sleep((_OVERLAP_LONG_MS + 3 * _OVERLAP_DELAY_MS) / 1000)

    def _mutating(self) -> None:
        if not any(event.api in MUTATIONS for event in self._events()):
            self._skipped["mutation"] = "the client changed no topics"
            return
        client = self._target.get("client_id", "<default>")
        with self._step("mutation", "mutation quota"):
            self._cluster.quota(f"client-id={client}", controller_mutation_rate=0.3)
            try:
                self._pause(self._times.mutation_s)
            finally:
                self._cluster.quota(f"client-id={client}", controller_mutation_rate=None)
        with self._step("settle", "mutation quota lifted"):
            time.sleep(self._times.settle_s)

    # Refusals

    def _refusing(self) -> None:
        variants: list[tuple[str, Callable[[], Any]]] = [
            ("closed at accept", self._closed_at_accept),
            ("closed after ApiVersions", lambda: self._cut(self._fault("disconnect", api=_BUT_API_VERSIONS))),
            ("silence", self._silence),
            ("reset", lambda: self._fault("disconnect", reset=True)),
        ]
        if self._baseline_has("SaslAuthenticate"):
            error = {"api": "SaslAuthenticate", "error": "SASL_AUTHENTICATION_FAILED"}
            variants.append(("failed login", lambda: self._cut(self._fault("error", **error))))
        self._random.shuffle(variants)
        for name, refused in variants:
            if self._has_ended():
                self._skipped[name] = "the program had ended"
                continue
            with self._step("refuse", name) as detail:
                with refused():
                    self._pause(self._times.refuse_s)
                self._await_recovery(detail)

    def _baseline_has(self, api: str) -> bool:
        return any(event.api == api for event in self._baseline.events)

    @contextmanager
    def _closed_at_accept(self) -> Iterator[None]:
        """The address's cap is 0, and its connections are gone. Of a client among others of its address: its connections end."""
        if "client_id" in self._target:
            with self._fault("disconnect"):
                yield
            return
        self._cluster.set(overrides={self._address: 0})
        try:
            self._end_connections()
            yield
        finally:
            self._cluster.set(overrides=None)

    @contextmanager
    def _cut(self, fault: Any) -> Iterator[None]:
        """Under the fault, once the connections that are open have ended."""
        with fault:
            self._end_connections()
            yield

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """Nothing is answered. Requests that were swallowed stay unanswered, so their connections end with it."""
        with self._cut(self._fault("blackhole")):
            yield
        self._end_connections()

    def _end_connections(self) -> None:
        with self._fault("disconnect"):
            pass

    def _await_recovery(self, detail: dict[str, Any]) -> None:
        """Until the client works again, and a little longer."""
        detail["lifted_ns"] = lifted_ns = time.monotonic_ns()
        deadline = time.monotonic() + self._times.recover_s
        recovered_ns = None
        while recovered_ns is None and time.monotonic() < deadline and not self._has_ended():
            time.sleep(0.02)
            recovered_ns = self._works_after(lifted_ns)
        detail["recovered_ns"] = recovered_ns
        detail["has_ended"] = self._has_ended()
        time.sleep(self._times.settle_s)

    def _rating(self) -> None:
        with self._step("rate", "one new connection a second") as detail:
            self._cluster.quota("ip=<default>", connection_creation_rate=1)
            try:
                self._end_connections()
                self._pause(self._times.refuse_s / 2)
            finally:
                self._cluster.quota("ip=<default>", connection_creation_rate=None)
            self._await_recovery(detail)

    def _killing(self) -> None:
        if self._start_client is None:
            self._skipped["kill"] = "a cluster that others use loses no shard"
            return
        last = [event for event in self._events_since(time.monotonic_ns() - 3 * SECOND) if event.kind == "request"]
        if not last:
            self._skipped["kill"] = "the client asked nothing"
            return
        place = last[0].conn[:3]
        with self._step("kill", "a shard killed") as detail:
            detail["place"] = place
            self._cluster.kill_shard(place[1], place[0])
            self._await_recovery(detail)

    # Copies, and the end

    def _herding(self) -> None:
        if self._start_client is None or self._times.copies < 2:
            self._skipped["herd"] = "no copies of the client were started"
            return
        copies: list[Client] = []
        try:
            with self._step("herd", f"{self._times.copies} copies cut at one instant") as detail:
                began_ns = time.monotonic_ns()
                copies += [self._start_client() for _ in range(self._times.copies - 1)]
                self._await_copies(began_ns)
                with self._closed_at_accept():
                    detail["cut_ns"] = time.monotonic_ns()
                    time.sleep(self._times.herd_s)
                detail["lifted_ns"] = time.monotonic_ns()
                detail["copies"] = self._times.copies
                time.sleep(self._times.settle_s)
        finally:
            for copy in copies:
                copy.terminate()
            for copy in copies:
                copy.wait(1.0)
                copy.kill()

    def _await_copies(self, began_ns: int) -> None:
        """Until each has worked, or for as long as the first may take."""
        deadline = time.monotonic() + self._times.connect_s / 2
        wanted = max(self._baseline.usual_connections, 1) * (self._times.copies - 1)
        while time.monotonic() < deadline:
            opened = {e.conn for e in self._events_since(began_ns) if e.kind == "admitted"}
            working = {e.conn for e in self._events_since(began_ns) if e.kind == "request"}
            if len(opened & working) >= wanted:
                break
            time.sleep(0.05)
        time.sleep(self._times.settle_s)

    def _shutting_down(self) -> None:
        client = self._client
        if client is None:
            self._skipped["shutdown"] = "the client was not started here"
            return
        with self._step("shutdown", "told to end while refused") as detail, self._closed_at_accept():
            time.sleep(self._times.settle_s)
            detail["signalled_ns"] = time.monotonic_ns()
            client.terminate()
            has_ended = client.wait(self._times.shutdown_s)
            detail["ended_ns"] = time.monotonic_ns() if has_ended else None
