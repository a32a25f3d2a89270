"""A driver that reports to the hub: its share of the clients on sockets of its own host, in the process that it is called in.

It starts when the hub says so, by its own clock, and ends when its clients are done and the hub says so, or the hub is gone.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from contextlib import closing, suppress
from typing import NamedTuple

from turnstile.fleet.messages import (
    Company,
    Done,
    End,
    Failed,
    Go,
    Join,
    Link,
    Message,
    Ping,
    Pong,
    Progress,
    Ready,
    Snapshot,
)
from turnstile.fleet.own_host import usable
from turnstile.fleet.shares import Company as Shared
from turnstile.fleet.shares import Numbering, of_driver
from turnstile.load.driver import check_files, resolve, unbound
from turnstile.load.lanes import Lane
from turnstile.load.own_addresses import local_address
from turnstile.load.raw_sockets import Address, DriverError
from turnstile.load.sources import Sources
from turnstile.load.spec import LoadScenario
from turnstile.load.storm import Storm

CONNECT_S = 20.0
SNAPSHOT_EVERY_S = 1.0
SILENT_S = 30
"""Seconds after which the kernel gives up on a hub, or a driver, that does not acknowledge."""


class Order(NamedTuple):
    """The order to a driver: the scenario, where the hub is, and the addresses that it may use (None: the scenario's)."""

    scenario: LoadScenario
    bootstrap: str
    hub: tuple[str, int]
    secret: str
    drivers: int
    allowed: str | None


class HubUnreachable(Exception):
    """One sentence."""


def play(order: Order, number: int) -> None:
    """Carry out the order as driver `number`. Raises HubUnreachable; everything else is said to the hub."""
    host = socket.gethostname()
    try:
        sock = socket.create_connection(order.hub, timeout=CONNECT_S)
    except OSError as error:
        address = f"{order.hub[0]}:{order.hub[1]}"
        raise HubUnreachable(
            f"Worker {host} can't reach this command at {address}: {error.strerror or error}. "
            "--hub HOST:PORT names another address."
        ) from None
    sock.settimeout(None)
    keep_alive(sock)
    link = Link(sock)
    with closing(link), suppress(OSError):  # a hub that is gone has no use for the result
        try:
            _Player(order, number, link, host).play()
        except DriverError as error:
            link.send(Failed(str(error)))


def keep_alive(sock: socket.socket) -> None:
    """The end of a peer whose machine is gone is seen within SILENT_S."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 4)):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_S * 1000)


class _Player:
    """A driver's run, from joining to its last message."""

    def __init__(self, order: Order, number: int, link: Link, host: str) -> None:
        self._order = order
        self._number = number
        self._link = link
        self._host = host
        self._lanes: list[Lane] = []
        self._snapshot_s = 0.0

    def play(self) -> None:
        """Raises DriverError, and OSError when the hub is gone."""
        order = self._order
        join = Join(order.secret, self._number, self._host, os.getpid(), [], [])
        try:
            allowed = Sources(order.allowed) if order.allowed is not None else None
            groups = order.scenario.groups
            targets = [resolve(group.bootstrap or order.bootstrap, allowed or group.sources) for group in groups]
            check_files(order.scenario, order.drivers)
            join = self._look_around(join, allowed, targets)
        finally:  # a driver that has joined reports what goes wrong
            self._link.send(join)
        message: Message = self._link.receive()
        while not isinstance(message, Go | End):
            if isinstance(message, Company):
                self._make_lanes(Shared(message.usable))
                self._link.send(Ready())
            elif isinstance(message, Ping):
                self._link.send(Pong(time.monotonic(), time.time()))
            message = self._link.receive()
        if isinstance(message, Go):
            self._storm(message.start_s, targets)

    def _look_around(self, join: Join, allowed: Sources | None, targets: list[list[Address]]) -> Join:
        """Raises DriverError where this host has no address to connect from."""
        if allowed is not None:
            own = usable(allowed)
            if not own:
                raise DriverError(f"this host has none of the addresses {allowed.text}.")
            return join._replace(usable=own)
        scenario = self._order.scenario
        for group, of_group in zip(scenario.groups, targets, strict=True):
            if group.sources is not None:
                _check_loopback(group.sources[0], of_group)
        return join._replace(chosen=sorted({local_address(target) for target in unbound(scenario, targets)}))

    def _make_lanes(self, company: Shared) -> None:
        groups = self._order.scenario.groups
        numbering = Numbering([group.sources for group in groups if group.sources is not None])
        for group in groups:
            played = of_driver(group, numbering, company, self._number)
            self._lanes.append(Lane(played, process=self._number, processes=self._order.drivers))

    def _storm(self, start_s: float, targets: list[list[Address]]) -> None:
        time.sleep(max(0.0, start_s - time.monotonic()))
        late_s = max(0.0, time.monotonic() - start_s)
        storm = Storm(self._order.scenario, self._lanes, targets, began=start_s, report=lambda settled: tell(settled))

        def tell(settled: bool) -> None:
            counts = [list(lane.tally.counts()) for lane in self._lanes]
            try:
                self._link.send(Progress(counts, storm.open_now, storm.last_error, settled))
                if time.monotonic() >= self._snapshot_s:
                    self._snapshot_s = time.monotonic() + SNAPSHOT_EVERY_S
                    self._link.send(Snapshot(self._dumped()))
            except OSError:
                storm.finish()

        # End, or the end of the connection; nothing else comes after Go.
        storm.listen_to(self._link.fileno(), storm.finish)
        storm.run()
        self._link.send(Done(self._dumped(), late_s))

    def _dumped(self) -> list[list[object]]:
        return [lane.tally.dump() for lane in self._lanes]


def _check_loopback(source: str, targets: list[Address]) -> None:
    """Raises DriverError for a broker elsewhere, which no loopback address reaches."""
    if not ipaddress.ip_address(source).is_loopback:
        return
    for _, (host, *_) in targets:
        if not ipaddress.ip_address(host).is_loopback:
            raise DriverError(
                f"the scenario connects from {source}, from which {host} can't be reached: --worker-sources names addresses "
                "of the workers that stand for the scenario's."
            )
