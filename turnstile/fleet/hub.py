"""The hub of a fleet: it waits for the drivers, measures their clocks, starts them together, collects their counts, ends them.

together      All drivers start at one instant, which each is told by its own clock.
each_once     The work of a driver is counted once: its result, or, if the driver is lost, the last counts that it reported.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hmac import compare_digest

from turnstile.fleet.clocks import Offset, Reading, offset
from turnstile.fleet.member import keep_alive
from turnstile.fleet.messages import (
    FIRST_BYTES,
    LONGEST_BYTES,
    BadFrame,
    Company,
    Done,
    End,
    Failed,
    Go,
    Incoming,
    Join,
    Message,
    Ping,
    Pong,
    Progress,
    Ready,
    Snapshot,
    frame,
)
from turnstile.load.raw_sockets import DriverError
from turnstile.load.tally import Tally
from turnstile.load.watch import WorkerProgress

PINGS = 10
LEAD_S = 0.2
"""The time from Go to the start, on top of the time that messages take."""
SILENT_S = 30.0
"""A driver reports ten times a second. One that is silent for so long counts as lost: it is stopped, or its machine is gone."""
LOOK_S = 0.2


@dataclass(eq=False)
class Driver:
    """The connection of a driver, and what the driver has reported. `number`: None until it has joined."""

    sock: socket.socket
    incoming: Incoming = field(default_factory=lambda: Incoming(FIRST_BYTES))
    number: int | None = None
    join: Join | None = None
    is_ready: bool = False
    asked: tuple[float, float] = (0.0, 0.0)
    monotonic: list[Reading] = field(default_factory=list)
    wall: list[Reading] = field(default_factory=list)
    progress: WorkerProgress | None = None
    snapshot: list[object] | None = None
    done: Done | None = None
    lost_s: float | None = None
    lost_because: str = ""
    heard_s: float = 0.0

    @property
    def clock(self) -> Offset:
        """The offset of the driver's time of day: how far it is ahead of this machine's, in seconds."""
        return offset(self.wall)

    @property
    def connects_from(self) -> list[str]:
        """The addresses of the driver's host that it connects from."""
        return [*self.join.usable, *self.join.chosen] if self.join is not None else []

    @property
    def is_over(self) -> bool:
        """True if the driver has sent its result, or is lost."""
        return self.done is not None or self.lost_s is not None

    def tallies(self, groups: int) -> list[Tally]:
        """The counts of the driver's work, by group: its result; without one its last snapshot, with the counts of its last
        progress report."""
        dumped = self.done.dumped if self.done is not None else self.snapshot
        tallies = [Tally.load(each) for each in dumped] if dumped is not None else [Tally() for _ in range(groups)]  # type: ignore[arg-type]
        if self.done is None and self.progress is not None:
            for tally, counts in zip(tallies, self.progress.counts, strict=True):
                tally.set_counts(counts)
        return tallies


class Hub:
    """The hub of `count` drivers. It calls `check` several times a second while it waits; an exception of `check` ends the wait."""

    def __init__(self, address: tuple[str, int], secret: str, count: int, *, check: Callable[[], None]) -> None:
        self._listener = _listen(address)
        self._secret = secret
        self._count = count
        self._check = check
        self._began_s = 0.0
        self._ending = False
        self.drivers: dict[int, Driver] = {}
        self._poller = selectors.DefaultSelector()
        self._poller.register(self._listener, selectors.EVENT_READ)

    @property
    def port(self) -> int:
        """The port that the hub listens on."""
        return int(self._listener.getsockname()[1])

    def gather(self, tell: Callable[[int], None]) -> None:
        """Returns when all drivers have joined and know their shares, and their clocks are measured. Calls `tell` with the number
        of drivers that have joined.

        Raises DriverError if a driver can't start, or is lost before the start.
        """
        while len(self.drivers) < self._count:
            tell(len(self.drivers))
            self._look()
        tell(self._count)
        ordered = [self.drivers[number] for number in range(self._count)]
        usable = [driver.join.usable for driver in ordered if driver.join is not None]
        for driver in ordered:
            self._send(driver, Company(usable))
        while not all(driver.is_ready for driver in ordered):
            self._look()
        for driver in ordered:
            self._ping(driver)
        while not all(len(driver.wall) >= PINGS for driver in ordered):
            self._look()

    def start(self) -> float:
        """Tells the drivers when to start. Returns that instant by this process's monotonic clock."""
        longest = max(each.answered_s - each.asked_s for driver in self.drivers.values() for each in driver.monotonic)
        self._began_s = time.monotonic() + LEAD_S + 2 * longest
        for driver in self.drivers.values():
            driver.heard_s = self._began_s
            self._send(driver, Go(self._began_s + offset(driver.monotonic).ahead_s))
        return self._began_s

    def collect(self, watch: Callable[[Sequence[WorkerProgress]], None], *, not_before_s: float) -> None:
        """Returns when each driver has sent its result or is lost. Ends the drivers when all of them have settled, but not before
        `not_before_s` (monotonic).

        Raises DriverError if a driver can't go on, or none is left. KeyboardInterrupt passes through: then call end() and
        collect() again.
        """
        while not all(driver.is_over for driver in self.drivers.values()):
            self._look()
            self._lose_silent()
            left = [driver for driver in self.drivers.values() if driver.lost_s is None]
            watch([driver.progress for driver in self.drivers.values() if driver.progress is not None])
            settled = all(driver.progress is not None and driver.progress.settled for driver in left)
            if settled and time.monotonic() >= not_before_s:
                self.end()

    def end(self) -> None:
        """Tells the drivers to close their connections and to send their results."""
        if not self._ending:
            self._ending = True
            for driver in self.drivers.values():
                if not driver.is_over:
                    self._send(driver, End())

    def close(self) -> None:
        """Ends every connection, which ends the drivers that still run."""
        for key in list(self._poller.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._poller.close()

    # What arrives

    def _look(self) -> None:
        for key, _ in self._poller.select(LOOK_S):
            if key.fileobj is self._listener:
                self._accept()
            else:
                self._hear(key.data)
        self._check()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return  # the driver has gone meanwhile
        keep_alive(sock)
        self._poller.register(sock, selectors.EVENT_READ, Driver(sock))

    def _hear(self, driver: Driver) -> None:
        answered = time.monotonic(), time.time()
        try:
            data = driver.sock.recv(1 << 18)
            if not data:
                raise ConnectionResetError("the connection ended")
            for message in driver.incoming.feed(data):
                self._take(driver, message, answered)
        except (OSError, BadFrame) as gone:
            self._drop(driver, str(gone))

    def _take(self, driver: Driver, message: Message, answered: tuple[float, float]) -> None:
        driver.heard_s = time.monotonic()
        if driver.join is None:
            self._admit(driver, message)
        elif isinstance(message, Progress):
            counts = [tuple(each) for each in message.counts]
            driver.progress = WorkerProgress(counts, message.open_now, message.last_error, message.settled)
        elif isinstance(message, Snapshot):
            driver.snapshot = message.dumped
        elif isinstance(message, Ready):
            driver.is_ready = True
        elif isinstance(message, Pong):
            driver.monotonic.append(Reading(driver.asked[0], message.monotonic_s, answered[0]))
            driver.wall.append(Reading(driver.asked[1], message.wall_s, answered[1]))
            if len(driver.wall) < PINGS:
                self._ping(driver)
        elif isinstance(message, Done):
            driver.done = message
        elif isinstance(message, Failed):
            raise DriverError(f"{name(driver)}: {message.sentence}")

    def _admit(self, driver: Driver, message: Message) -> None:
        """Takes the first message of a driver. Raises BadFrame for a driver of another run, or one whose number is taken, such as a
        task that Spark has started once more."""
        if not isinstance(message, Join) or not compare_digest(message.secret, self._secret):
            raise BadFrame("no driver of this run")
        if message.number in self.drivers or not 0 <= message.number < self._count:
            raise BadFrame("a driver too many")
        driver.join, driver.number = message, message.number
        driver.incoming.longest_bytes = LONGEST_BYTES
        self.drivers[message.number] = driver

    def _drop(self, driver: Driver, because: str) -> None:
        self._poller.unregister(driver.sock)
        driver.sock.close()
        if driver.number is None or driver.is_over:
            return
        if not self._began_s:
            raise DriverError(f"{name(driver)} was lost before the start.")
        driver.lost_s, driver.lost_because = max(0.0, time.monotonic() - self._began_s), because
        if all(each.lost_s is not None for each in self.drivers.values()):
            raise DriverError(f"{name(driver)} was lost after {driver.lost_s:.1f} s, and none is left.")

    def _lose_silent(self) -> None:
        for driver in self.drivers.values():
            if not driver.is_over and time.monotonic() - driver.heard_s > SILENT_S:
                self._drop(driver, f"it said nothing for {SILENT_S:.0f} s")

    # What is said

    def _ping(self, driver: Driver) -> None:
        driver.asked = time.monotonic(), time.time()
        self._send(driver, Ping())

    def _send(self, driver: Driver, message: Message) -> None:
        try:
            driver.sock.sendall(frame(message))
        except OSError as gone:
            self._drop(driver, str(gone))


def name(driver: Driver) -> str:
    """The name of a driver in messages."""
    return f"Driver {driver.number} on {driver.join.host if driver.join is not None else 'an unknown host'}"


def _listen(address: tuple[str, int]) -> socket.socket:
    """Listens on an address of this machine; on all its addresses if the address is not its own but leads here (NAT)."""
    host, port = address
    try:
        return socket.create_server(address, family=_family(host))
    except OSError:
        pass
    try:
        return socket.create_server(("", port))
    except OSError as error:
        raise DriverError(f"This command can't listen at {host}:{port}: {error.strerror}.") from None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
