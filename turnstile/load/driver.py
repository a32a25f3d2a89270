"""One run, from addresses to a result: counters before, traffic and storm, counters after, reconciliation."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turnstile.admin_client import AdminClient, AdminError
from turnstile.load import counters
from turnstile.load.drivers import DriverReport
from turnstile.load.own_addresses import IPV6_BITS, OwnAddresses
from turnstile.load.raw_sockets import Address, DriverError
from turnstile.load.reconciliation import Reconciliation, baseline, reconcile, settle
from turnstile.load.sources import SourceAddresses
from turnstile.load.spec import LoadScenario
from turnstile.load.tally import Tally
from turnstile.load.traffic import Clients, TrafficResult
from turnstile.load.watch import Lookout, Watch
from turnstile.load.workers import Crew, raise_file_limit

_IPV6_PREFIX = "turnstile.ipv6.prefix.length"

KEPT_FOR_OURSELVES = 64
"""File descriptors a worker needs besides its connections, generously."""


@dataclass
class LoadResult:
    """The result of a run. `groups` has one Tally per group of the scenario, `total` their sum; `drivers` are those of a run
    on several machines."""

    scenario: LoadScenario
    groups: list[Tally]
    total: Tally
    seconds: float
    interrupted: bool
    traffic: TrafficResult | None
    cluster: counters.Counters | None
    reconciliation: Reconciliation
    drivers: tuple[DriverReport, ...] = ()

    @property
    def lost(self) -> list[DriverReport]:
        """Drivers that ended without their last word."""
        return [driver for driver in self.drivers if driver.lost_s is not None]

    @property
    def limited(self) -> bool:
        """True if anything was refused or throttled."""
        refused = self.total.refused + (self.cluster.refused_in_all if self.cluster is not None else 0)
        return refused > 0 or (self.traffic is not None and self.traffic.limited)


class Played(NamedTuple):
    """The counts of a scenario's drivers, one Tally per group."""

    groups: list[Tally]
    seconds: float
    interrupted: bool
    drivers: tuple[DriverReport, ...] = ()


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
    targets = [
        resolve(group.bootstrap or bootstrap, group.sources if scenario.proxy_protocol is None else None)
        for group in scenario.groups
    ]
    processes = processes or default_processes(scenario)
    check_files(scenario, processes)

    def play() -> Played:
        began_s = time.monotonic()
        groups, interrupted = _storm(scenario, targets, processes, Lookout(scenario, bootstrap, began_s, watch))
        seconds = time.monotonic() - began_s
        return Played(groups, seconds, interrupted)

    return around(scenario, bootstrap, admin, _own_addresses(scenario, targets, bootstrap), play)


def around(
    scenario: LoadScenario, bootstrap: str, admin: AdminClient, own: OwnAddresses, play: Callable[[], Played]
) -> LoadResult:
    """The course of a run, whatever plays its groups from `own`: counters before, traffic meanwhile, counters after,
    reconciliation."""
    own = own.counted_by(_ipv6_prefix(admin))
    before = baseline(admin, own)
    clients = Clients(scenario.traffic, bootstrap) if scenario.traffic else None
    try:
        if clients is not None:
            clients.wait_until_ready()
        played = play()
    finally:
        traffic = clients.stop() if clients is not None else None
    total = Tally()
    for tally in played.groups:
        total.add(tally)
    lost = any(driver.lost_s is not None for driver in played.drivers)

    def agree(counted: counters.Counters) -> Reconciliation:
        died = before is not None and counted.epochs != before.epochs
        opened = traffic.connections if traffic else 0
        return reconcile(total, counted, traffic=opened, shards_died=died, own=own, drivers_lost=lost)

    cluster, verdict = settle(admin, before, agree)
    if cluster is not None and verdict.others:
        cluster = cluster.of(own)
    groups, seconds, interrupted, drivers = played
    return LoadResult(scenario, groups, total, seconds, interrupted, traffic, cluster, verdict, drivers)


def _ipv6_prefix(admin: AdminClient) -> int:
    """The prefix length by which the cluster counts IPv6 clients, where it can be asked."""
    try:
        prefix: int = admin.get("/v1/cluster_config", key=_IPV6_PREFIX)[_IPV6_PREFIX]
    except (AdminError, KeyError, TypeError):
        return IPV6_BITS
    return prefix


def _own_addresses(scenario: LoadScenario, targets: Sequence[Sequence[Address]], bootstrap: str) -> OwnAddresses:
    sources = [group.sources for group in scenario.groups if group.sources is not None]
    return OwnAddresses(sources, [*unbound(scenario, targets), *(resolve(bootstrap) if scenario.traffic else [])])


def unbound(scenario: LoadScenario, targets: Sequence[Sequence[Address]]) -> list[Address]:
    """The brokers to which some connections go without a source of their own."""
    pairs = zip(scenario.groups, targets, strict=True)
    return [target for group, of_group in pairs if group.sources is None for target in of_group]


class _StormResult(NamedTuple):
    """The tally of each group, and whether Ctrl-C ended the storm."""

    groups: list[Tally]
    interrupted: bool


def _storm(scenario: LoadScenario, targets: list[list[Address]], processes: int, lookout: Lookout) -> _StormResult:
    # A Ctrl-C while the workers start could not end them in good order yet, so it waits.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    crew = Crew(scenario, targets, processes=processes, began=lookout.began_s)
    interrupted = False

    def look() -> None:
        try:
            lookout.look([progress for progress in crew.latest if progress is not None])
        except DriverError:
            crew.kill()
            raise

    while True:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return _StormResult(crew.collect(look), interrupted)
        except KeyboardInterrupt:
            if interrupted:
                crew.kill()
                raise
            interrupted = True
            crew.end()


def resolve(bootstrap: str, sources: SourceAddresses | None = None) -> list[Address]:
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
    return max(1, min((os.cpu_count() or 1) // 2, 4, scenario.clients or 1))


def check_files(scenario: LoadScenario, processes: int) -> None:
    """Raises DriverError when so many processes with this machine's limit can't hold what is to be held."""
    limit = raise_file_limit() - KEPT_FOR_OURSELVES
    held = sum(group.clients for group in scenario.groups if group.hold_s > 0 and group.recorded is None)
    rates = [g for g in scenario.groups if g.rate is not None]
    held -= sum(max(0, g.clients - int((g.rate or 0) * g.hold_s)) for g in rates if g.hold_s < float("inf"))
    if held > limit * processes:
        raise DriverError(
            f"{held} connections held at once need more open files than the {limit * processes} this run may have: "
            f"raise `ulimit -n`, use --processes {-(-held // limit)}, or hold fewer."
        )
