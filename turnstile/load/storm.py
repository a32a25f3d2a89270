"""The engine of a load: one process's share of the clients, on plain sockets and one epoll.

A connection counts as *refused* if the broker closes it (FIN or RST) before the first byte of an answer. It counts as *admitted* at
the first byte of the answer to ApiVersions; with no probe, if it is still open after the grace time. With a probe of several
requests (probes.py) it is admitted when the last answer is whole, and each answer may refuse it.

A connection costs some 25 us of kernel time on this side, so Python may add little. Sockets are of the raw type, and the request is
sent right after connect: on loopback the handshake is over by then; if it is not, the request waits until epoll says so.
"""

from __future__ import annotations

import contextlib
import errno
import math
import select
import time
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from turnstile.load.announcement import announced
from turnstile.load.lanes import Lane
from turnstile.load.probes import AFTER_API_VERSIONS, CLOSE, NO_PROBE, probe_requests
from turnstile.load.raw_sockets import Address, PutOff, connect
from turnstile.load.spec import RST, UNTIL_THE_END, LoadScenario
from turnstile.load.storm_connection import ASKED, CLOSED, CONNECTING, OPEN, READING, StormConnection

REPORT_EVERY_S = 0.1
PUT_OFF_S = 0.05
BATCH = 64
"""The most connections that are opened between two looks at the answers: more would add to the measured latency."""


class Storm:
    """Runs the lanes, each against its own `targets`, until every client is done.

    `report(settled)` is called ten times a second, and once more at the end.
    """

    def __init__(
        self,
        scenario: LoadScenario,
        lanes: list[Lane],
        targets: list[list[Address]],
        *,
        began: float,
        report: Callable[[bool], None],
    ) -> None:
        self.lanes = lanes
        self.last_error = 0
        """errno of the last connection that could not be made."""
        self._scenario = scenario
        self._targets = dict(zip(lanes, targets, strict=True))
        self._began = began
        self._report = report
        self._probe = probe_requests(scenario.probe, scenario.login)
        self._poller = select.epoll()
        self._connections: dict[int, StormConnection] = {}
        self._waiting: deque[StormConnection] = deque()
        """Connections by their deadline for an answer, the earliest first. Answered ones stay until they come to the front."""
        self._patience_s = scenario.grace_s if scenario.probe == NO_PROBE else scenario.timeout_s
        self._holds: list[tuple[float, int, StormConnection]] = []
        self._holding_order = count()
        self._drops = sorted(
            (lane.group.drop_at_s, i) for i, lane in enumerate(lanes) if lane.group.drop_at_s is not None
        )
        self._ends = sorted((lane.end_s, i) for i, lane in enumerate(lanes) if lane.end_s < math.inf)
        self._next_report_s = 0.0
        self._finish = False
        self._control: tuple[int, Callable[[], None]] | None = None

    @property
    def open_now(self) -> int:
        """The number of connections that are open or being made."""
        return len(self._connections)

    def listen_to(self, fd: int, wake: Callable[[], None]) -> None:
        """Calls `wake` when `fd` is readable; `wake` may call `finish`."""
        self._control = (fd, wake)
        self._poller.register(fd, select.EPOLLIN)

    def finish(self) -> None:
        """Ends the run at the next pass. Open connections are closed; those without an answer count as unanswered."""
        self._finish = True

    def run(self) -> None:
        """Runs to the end. Raises DriverError if a source address does not belong to this machine."""
        try:
            while not self._finish:
                now_s = time.monotonic() - self._began
                busy = self._open_due(now_s)
                self._expire(now_s)
                if now_s >= self._next_report_s:
                    self._tell(now_s)
                for fd, events in self._poller.poll(0 if busy else self._sleep_s(now_s), 1024):
                    self._event(fd, events)
        finally:
            self._close_all()
            self._poller.close()
        for lane in self.lanes:
            lane.tally.tick(int(time.monotonic() - self._began) + 1)
        self._report(True)

    def _tell(self, now_s: float) -> None:
        self._next_report_s = now_s + REPORT_EVERY_S
        for lane in self.lanes:
            lane.tally.tick(int(now_s))
        self._report(not self._drops and all(lane.settled(now_s) for lane in self.lanes))

    def _sleep_s(self, now_s: float) -> float:
        due = min((lane.next_s() for lane in self.lanes), default=math.inf)
        if self._holds:
            due = min(due, self._holds[0][0])
        if self._waiting:
            due = min(due, self._waiting[0].started_s - self._began + self._patience_s)
        return max(0.0005, min(due, self._next_report_s) - now_s)

    # Opening

    def _open_due(self, now_s: float) -> bool:
        """Opens a batch of the connections that are due. True if more may be due."""
        while self._drops and self._drops[0][0] <= now_s:
            self._drop(self.lanes[self._drops.pop(0)[1]], now_s)
        for _ in range(BATCH):
            opened = False
            for lane in self.lanes:
                client = lane.take(now_s)
                if client is not None:
                    self._open(lane, client, now_s)
                    opened = True
            if not opened:
                return False
        return True

    def _open(self, lane: Lane, client: int, now_s: float) -> None:
        clients_per_round = 1 if lane.group.sources is None else len(lane.group.sources)
        # Not just client % targets: a source would then always meet the same broker.
        targets = self._targets[lane]
        target = targets[(client + client // clients_per_round) % len(targets)]
        started_s = time.monotonic()
        try:
            bound_to = lane.source(client) if self._scenario.proxy_protocol is None else None
            sock, failed = connect(target, bound_to, rst=self._scenario.close == RST)
        except PutOff as short:
            lane.tally.file_waits += short.files
            lane.tally.port_waits += not short.files
            lane.put_off(client, now_s + PUT_OFF_S)
            return
        lane.tally.attempted += 1
        lane.in_flight += 1
        greeting = self._probe[0].frame if self._probe else b""
        if self._scenario.proxy_protocol is not None:
            own = sock.getsockname()[:2]
            greeting = (
                announced(self._scenario.proxy_protocol, lane.source(client), client, own, target[1][:2]) + greeting
            )
        connection = StormConnection(lane, client, sock, started_s, greeting)
        self._connections[connection.fd] = connection
        if failed:
            self._ended(connection, failed)
            return
        self._waiting.append(connection)
        self._ask(connection)

    def _ask(self, connection: StormConnection) -> None:
        """Sends the probe. If the handshake is not over yet, it is sent when epoll says so."""
        events = select.EPOLLIN | select.EPOLLOUT
        if self._scenario.probe != NO_PROBE:
            try:
                connection.sock.send(connection.greeting)
                connection.state = ASKED
                events = select.EPOLLIN
            except BlockingIOError:
                pass
            except OSError as error:
                self._ended(connection, error.errno or errno.EIO)
                return
        self._poller.register(connection.fd, events)

    # Answers

    def _event(self, fd: int, events: int) -> None:
        connection = self._connections.get(fd)
        if connection is None:
            if self._control is not None and fd == self._control[0]:
                self._control[1]()
            return
        if (
            connection.state == CONNECTING
            and events & select.EPOLLOUT
            and not events & (select.EPOLLERR | select.EPOLLHUP)
        ):
            self._connected(connection)
            if not events & select.EPOLLIN or fd not in self._connections:
                return
        try:
            data = connection.sock.recv(4096)
        except BlockingIOError:
            return
        except OSError as error:
            self._ended(connection, error.errno or errno.EIO)
            return
        if not data:
            self._ended(connection, 0)
        elif connection.state == ASKED and len(self._probe) > 1:
            self._answered_one(connection, data)
        elif connection.state == ASKED:
            self._answered(connection, data)
        elif connection.state == READING:
            self._read(connection, data)

    def _connected(self, connection: StormConnection) -> None:
        if self._scenario.probe == NO_PROBE:
            connection.took_us = int((time.monotonic() - connection.started_s) * 1e6)
        try:
            if connection.greeting:
                connection.sock.send(connection.greeting)
        except OSError as error:
            self._ended(connection, error.errno or errno.EIO)
            return
        connection.state = ASKED
        self._poller.modify(connection.fd, select.EPOLLIN)

    def _answered(self, connection: StormConnection, data: bytes) -> None:
        connection.took_us = int((time.monotonic() - connection.started_s) * 1e6)
        self._admit(connection)
        self._read(connection, data)

    def _answered_one(self, connection: StormConnection, data: bytes) -> None:
        """Reads the answer to one of several requests; sends the next request once the answer is whole."""
        answer = connection.whole_answer(data)
        if answer is None:
            return
        refused_as = self._probe[connection.answered].refused(answer)
        connection.answered += 1
        if refused_as:
            self._close(connection)
            self._refused(connection, refused_as)
        elif connection.answered == len(self._probe):
            connection.took_us = int((time.monotonic() - connection.started_s) * 1e6)
            self._admit(connection)
            self._hold(connection)
        else:
            try:
                connection.sock.send(self._probe[connection.answered].frame)
            except OSError as error:
                self._ended(connection, error.errno or errno.EIO)

    def _refused(self, connection: StormConnection, refused_as: str) -> None:
        lane, now = connection.lane, time.monotonic()
        lane.in_flight -= 1
        lane.tally.refused += 1
        lane.tally.refused_as[refused_as] += 1
        lane.tally.refused_us.record(int((now - connection.started_s) * 1e6))
        lane.refused(connection.client, now - self._began)

    def _admit(self, connection: StormConnection) -> None:
        lane = connection.lane
        lane.tally.admitted += 1
        lane.tally.admitted_us.record(connection.took_us)
        lane.in_flight -= 1
        lane.held += 1
        lane.admitted(connection.client)
        connection.state = READING

    def _read(self, connection: StormConnection, data: bytes) -> None:
        """Reads the answer to its end: a close with unread bytes would send a RST instead of a FIN."""
        if connection.whole_answer(data) is not None:
            self._hold(connection)

    def _hold(self, connection: StormConnection) -> None:
        connection.state = OPEN
        hold_s = connection.lane.hold_s(connection.client)
        now_s = time.monotonic() - self._began
        if hold_s <= 0 or connection.lane.over(now_s):
            self._leave(connection, now_s)
        elif hold_s != UNTIL_THE_END:
            heappush(self._holds, (now_s + hold_s, next(self._holding_order), connection))

    def _ended(self, connection: StormConnection, error: int) -> None:
        """The broker closed the connection (`error`: 0, ECONNRESET or EPIPE), or it could not be made (another errno)."""
        lane, tally = connection.lane, connection.lane.tally
        now_s = time.monotonic() - self._began
        before_an_answer = connection.state in (CONNECTING, ASKED)
        never_made = error not in (0, errno.ECONNRESET, errno.EPIPE)
        self._close(connection)
        if before_an_answer and not never_made:
            self._refused(connection, AFTER_API_VERSIONS if connection.answered else CLOSE)
            return
        if before_an_answer:
            lane.in_flight -= 1
            tally.connect_errors += 1
            self.last_error = error
        else:
            tally.closed_by_broker += 1
        lane.refused(connection.client, now_s)

    # Closing

    def _expire(self, now_s: float) -> None:
        while self._holds and self._holds[0][0] <= now_s:
            connection = heappop(self._holds)[2]
            if connection.state == OPEN:
                self._leave(connection, now_s)
        patient_since_s = now_s + self._began - self._patience_s
        while self._waiting and (self._waiting[0].state > ASKED or self._waiting[0].started_s <= patient_since_s):
            connection = self._waiting.popleft()
            if connection.state <= ASKED:
                self._patience_over(connection)
        while self._ends and self._ends[0][0] <= now_s:
            self._close_held(self.lanes[self._ends.pop(0)[1]])

    def _patience_over(self, connection: StormConnection) -> None:
        if connection.state == ASKED and self._scenario.probe == NO_PROBE:
            self._admit(connection)
            self._hold(connection)
            return
        connection.lane.in_flight -= 1
        connection.lane.tally.unanswered += 1
        self._close(connection)

    def _leave(self, connection: StormConnection, now_s: float) -> None:
        self._close(connection)
        connection.lane.left(connection.client, now_s)

    def _close_held(self, lane: Lane) -> None:
        for connection in [c for c in self._connections.values() if c.lane is lane and c.state == OPEN]:
            self._close(connection)

    def _drop(self, lane: Lane, now_s: float) -> None:
        """Ends every connection in one moment, as clients see a broker's restart."""
        for connection in [c for c in self._connections.values() if c.lane is lane and c.state == OPEN]:
            self._close(connection)
            lane.dropped(connection.client, now_s)

    def _close(self, connection: StormConnection) -> None:
        connection.lane.held -= connection.state in (READING, OPEN)
        connection.state = CLOSED
        del self._connections[connection.fd]
        connection.sock.close()

    def _close_all(self) -> None:
        for connection in list(self._connections.values()):
            if connection.state <= ASKED:
                connection.lane.in_flight -= 1
                connection.lane.tally.unanswered += 1
            with contextlib.suppress(OSError):
                self._close(connection)
