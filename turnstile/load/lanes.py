"""The schedule of a group: which client connects when. No sockets and no clock: `now_s` is seconds since the run began.

clients_in_one_place  a client is in exactly one place: not started yet, waiting in `_later`, with the engine (storm.py), or
    done
at_most_concurrency_unanswered  without a rate and without a log, never more than `concurrency` connections are without an
    answer
"""

from __future__ import annotations

import math
import random
from heapq import heappop, heappush

from turnstile.load.spec import UNTIL_THE_END, ClientGroup
from turnstile.load.tally import Tally


class Lane:
    """The clients of one group that one of `processes` processes plays."""

    def __init__(self, group: ClientGroup, *, process: int = 0, processes: int = 1) -> None:
        self.group = group
        self.tally = Tally()
        self.in_flight = 0
        """Connections without an answer yet; kept by the engine, as `held` is."""
        self.held = 0
        """Admitted connections that are open."""
        self._share = group.share(process, processes)
        self._started = 0
        self._later: list[tuple[float, int]] = []
        self._refusals: dict[int, int] = {}
        self._random = random.Random(f"{group.name}/{process}")
        self.end_s = math.inf if group.duration_s is None else group.start_s + group.duration_s
        self._paced = group.rate is not None or group.recorded is not None
        self._room = math.inf if self._paced else max(1, group.concurrency // processes)

    def take(self, now_s: float) -> int | None:
        """The client to connect now, if there is one."""
        if self.in_flight >= self._room or now_s >= self.end_s or now_s < self.group.start_s:
            return None
        if self._later and self._later[0][0] <= now_s:
            return heappop(self._later)[1]
        if self._started < len(self._share):
            client = self._share[self._started]
            due_s = self._due_s(client)
            if due_s <= now_s:
                self._started += 1
                if self._paced and now_s - due_s > self.tally.late_s:
                    self.tally.late_s = now_s - due_s
                return client
        return None

    def next_s(self) -> float:
        """The time at which take() may have a client, as far as time alone decides; infinity when never again."""
        due = self._later[0][0] if self._later else math.inf
        if self._started < len(self._share):
            due = min(due, self._due_s(self._share[self._started]))
        return due if due < self.end_s else math.inf

    def put_off(self, client: int, until_s: float) -> None:
        """This machine could not make the connection just now: the same client, a little later."""
        heappush(self._later, (until_s, client))

    def refused(self, client: int, now_s: float) -> None:
        """The client was refused, or cut off: it comes back after a back-off, if its group reconnects."""
        if self.group.reconnect:
            times = self._refusals.get(client, 0)
            self._refusals[client] = times + 1
            backoff_s = min(self.group.backoff_s * 2 ** min(times, 30), self.group.backoff_max_s)
            # A fifth more or less, as Kafka's clients do, so that a crowd does not come back in step.
            heappush(self._later, (now_s + backoff_s * self._random.uniform(0.8, 1.2), client))

    def admitted(self, client: int) -> None:
        """The client got in, so its next back-off starts small."""
        self._refusals.pop(client, None)

    def left(self, client: int, now_s: float) -> None:
        """The client closed its connection of its own will."""
        if self.group.repeat:
            heappush(self._later, (now_s + self.group.pause_s, client))

    def dropped(self, client: int, now_s: float) -> None:
        """The client was cut off by drop_at_s and connects again at once."""
        heappush(self._later, (now_s, client))

    def hold_s(self, client: int) -> float:
        """The seconds for which this client's connection stays open."""
        recorded = self.group.recorded
        return self.group.hold_s if recorded is None else recorded.hold_s[client]

    def source(self, client: int) -> str | None:
        """The address this client binds to."""
        if self.group.sources is None:
            return None
        recorded = self.group.recorded
        return self.group.sources[client if recorded is None else recorded.address[client]]

    def over(self, now_s: float) -> bool:
        """True if the group's duration is over: what it holds is to be closed."""
        return now_s >= self.end_s

    def settled(self, now_s: float) -> bool:
        """True if no client of this lane will open or close a connection before the run is ended."""
        if self.in_flight:
            return False
        if self.over(now_s):
            return True
        kept_for_the_others = self.group.hold_s == UNTIL_THE_END and self.group.duration_s is None
        return self.next_s() == math.inf and (self.held == 0 or kept_for_the_others)

    def _due_s(self, client: int) -> float:
        group = self.group
        if group.recorded is not None:
            return group.start_s + group.recorded.at_s[client]
        return group.start_s if group.rate is None else group.start_s + client / group.rate
