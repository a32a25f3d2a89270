"""One run, from addresses to a result: counters before, traffic and storm, counters after, reconciliation."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from turnstile.admin_client import AdminClient
from turnstile.load import counters
from turnstile.load.own_addresses import OwnAddresses
from turnstile.load.raw_sockets import Address, DriverError
from turnstile.load.reconciliation import Reconciliation, baseline, reconcile, settle
from turnstile.load.sources import Sources
from turnstile.load.spec import LoadScenario
from turnstile.load.tally import COUNTS, Tally
from turnstile.load.traffic import Clients, TrafficResult
from turnstile.load.workers import Crew, WorkerProgress, raise_file_limit

MANY_FAILURES = 50
"""Connects that failed, with none that succeeded, after which the run is given up: nothing listens there."""
KEPT_FOR_OURSELVES = 64
"""File descriptors a worker needs besides its connections, generously."""


@dataclass
class LoadResult:
    """What a run has to show. `groups` has one Tally per group of the scenario, `total` their sum."""

    scenario: LoadScenario
    groups: list[Tally]
    total: Tally
    seconds: float
    interrupted: bool
    traffic: TrafficResult | None
    cluster: counters.Counters | None
    reconciliation: Reconciliation

    @property
    def limited(self) -> bool:
        """Whether anything was refused or throttled."""
        refused = self.total.refused + (self.cluster.refused_in_all if self.cluster is not None else 0)
        return refused > 0 or (self.traffic is not None and self.traffic.limited)


@dataclass(frozen=True)
class Watch:
    """A moment of a run, for a progress bar: sums over groups and processes, by name as in tally.COUNTS."""

    seconds: float
    counts: dict[str, int]
    open_now: int


def run(
    scenario: LoadScenario,
    bootstrap: str,
    admin: AdminClient,
    *,
    processes: int | None = None,
    watch: Callable[[Watch], None] = lambda _: None,
) -> LoadResult:
    """Run `scenario` against the brokers of `bootstrap` ("host:port,...").

    `admin` is the cluster's admin API, for its counters. Ctrl-C ends the run early and returns what there is. Raises
    DriverError when nothing listens or this machine can't run the scenario, AdminRefused when the API needs a token.
    """
    targets = [resolve(group.bootstrap or bootstrap, group.sources) for group in scenario.groups]
    processes = processes or default_processes(scenario)
    _check_files(scenario, processes)
    own = _own_addresses(scenario, targets, bootstrap)
    before = baseline(admin, own)
    clients = Clients(scenario.traffic, bootstrap) if scenario.traffic else None
    try:
        if clients is not None:
            clients.wait_until_ready()
        began = time.monotonic()
        groups, interrupted = _storm(scenario, targets, processes, began, watch, bootstrap)
        seconds = time.monotonic() - began
    finally:
        traffic = clients.stop() if clients is not None else None
    total = Tally()
    for tally in groups:
        total.add(tally)

    def agree(counted: counters.Counters) -> Reconciliation:
        died = before is not None and counted.epochs != before.epochs
        return reconcile(total, counted, traffic=traffic.connections if traffic else 0, shards_died=died, own=own)

    cluster, verdict = settle(admin, before, agree)
    if cluster is not None and verdict.others:
        cluster = cluster.of(own)
    return LoadResult(scenario, groups, total, seconds, interrupted, traffic, cluster, verdict)


def _own_addresses(scenario: LoadScenario, targets: Sequence[Sequence[Address]], bootstrap: str) -> OwnAddresses:
    sources = [group.sources for group in scenario.groups if group.sources is not None]
    unbound = [
        target for group, of in zip(scenario.groups, targets, strict=True) if group.sources is None for target in of
    ]
    return OwnAddresses(sources, [*unbound, *(resolve(bootstrap) if scenario.traffic else [])])


def _storm(
    scenario: LoadScenario,
    targets: list[list[Address]],
    processes: int,
    began: float,
    watch: Callable[[Watch], None],
    bootstrap: str,
) -> tuple[list[Tally], bool]:
    # A Ctrl-C while the workers start could not end them in good order yet, so it waits.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    crew = Crew(scenario, targets, processes=processes, began=began)
    interrupted = False

    def look() -> None:
        now = _sum([progress for progress in crew.latest if progress is not None], time.monotonic() - began)
        watch(now)
        nothing = now.counts["admitted"] + now.counts["refused"] == 0
        if nothing and now.counts["connect_errors"] >= min(MANY_FAILURES, _clients(scenario)):
            crew.kill()
            raise DriverError(_nothing_listens(bootstrap, crew.latest))

    while True:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return crew.collect(look), interrupted
        except KeyboardInterrupt:
            if interrupted:
                crew.kill()
                raise
            interrupted = True
            crew.end()


def _sum(latest: Sequence[WorkerProgress], seconds: float) -> Watch:
    counts = dict.fromkeys(COUNTS, 0)
    for progress in latest:
        for group in progress.counts:
            for name, value in zip(COUNTS, group, strict=True):
                counts[name] += value
    return Watch(seconds, counts, sum(progress.open_now for progress in latest))


def _clients(scenario: LoadScenario) -> int:
    return sum(group.clients for group in scenario.groups) or 1


def _nothing_listens(bootstrap: str, latest: Sequence[WorkerProgress | None]) -> str:
    errors = {os.strerror(progress.last_error) for progress in latest if progress is not None and progress.last_error}
    return f"Nothing answers at {bootstrap}: {', '.join(sorted(errors))}. Is the cluster up (turnstile status)?"


def resolve(bootstrap: str, sources: Sources | None = None) -> list[Address]:
    """Socket addresses of "host:port,..."; IPv6 as [::1]:9092. Raises DriverError where one can't be had."""
    family = {None: 0, 4: socket.AF_INET, 6: socket.AF_INET6}[sources.version if sources is not None else None]
    targets: list[Address] = []
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise DriverError(f"{address.strip()!r} is not HOST:PORT.")
        try:
            found = socket.getaddrinfo(host.strip("[]"), int(port), family, socket.SOCK_STREAM)
        except socket.gaierror as error:
            raise DriverError(f"{host} can't be resolved: {error}.") from None
        # "localhost" is ::1 first on many machines, where brokers listen on 127.0.0.1.
        found.sort(key=lambda info: info[0] != socket.AF_INET)
        targets.append((found[0][0], found[0][4]))  # type: ignore[arg-type]
    return targets


def default_processes(scenario: LoadScenario) -> int:
    """Half of the cores, as the other half is the cluster's, at most four, and never more than there are clients."""
    return max(1, min((os.cpu_count() or 1) // 2, 4, _clients(scenario)))


def _check_files(scenario: LoadScenario, processes: int) -> None:
    limit = raise_file_limit() - KEPT_FOR_OURSELVES
    held = sum(group.clients for group in scenario.groups if group.hold_s > 0 and group.recorded is None)
    rates = [g for g in scenario.groups if g.rate is not None]
    held -= sum(max(0, g.clients - int((g.rate or 0) * g.hold_s)) for g in rates if g.hold_s < float("inf"))
    if held > limit * processes:
        raise DriverError(
            f"{held} connections held at once need more open files than the {limit * processes} this run may have: "
            f"raise `ulimit -n`, use --processes {-(-held // limit)}, or hold fewer."
        )
