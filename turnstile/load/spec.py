"""A run as plain data: groups of clients that open connections, and traffic of real Kafka clients.

Times are seconds from the start of the run. Every field is checked here, whether it came from the command line, a
scenario file or a connection log, so that the engine can trust it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from turnstile.load.announcement import V1, V2
from turnstile.load.probes import API_VERSIONS, LOGIN, NO_PROBE, Login
from turnstile.load.sources import SourceAddresses
from turnstile.load.suggestion import NONE, Suggestion

FIN, RST = "fin", "rst"
CHOICES = {"probe": (API_VERSIONS, LOGIN, NO_PROBE), "close": (FIN, RST)}
"""The values that some fields of a scenario may have."""
UNTIL_THE_END = math.inf
"""A hold: until every client of every group has had its answer."""


class SpecInvalid(ValueError):
    """A scenario or an option that can't be run; the message is one sentence that names it and the rule."""


@dataclass(frozen=True)
class RecordedConnection:
    """Connections as a log has them, one entry per connection in each list, in order of `at_s`."""

    at_s: Sequence[float]
    hold_s: Sequence[float]
    address: Sequence[int]
    """Index of the source: how many other addresses the log showed before this one."""


@dataclass(frozen=True)
class ClientGroup:
    """Clients that do the same. A client opens one connection, and another one only where `reconnect` or `repeat` say so."""

    name: str = "clients"
    clients: int = 1
    sources: SourceAddresses | None = None
    """Client i binds to source i modulo their number; None: the kernel chooses."""
    bootstrap: str | None = None
    """Another listener than the run's, "host:port,..."."""
    rate: float | None = None
    """Clients that start per second, evenly spaced, however the earlier ones fare; None: see `concurrency`."""
    start_s: float = 0.0
    duration_s: float | None = None
    """From start_s: then nothing more is opened, and what is held is closed. None: until every client is done."""
    hold_s: float = 0.0
    """The seconds for which an admitted connection stays open; UNTIL_THE_END is allowed."""
    reconnect: bool = False
    """True if a client that was refused or cut off tries again, after a back-off that doubles, as Kafka's clients do."""
    backoff_s: float = 0.05
    backoff_max_s: float = 1.0
    repeat: bool = False
    """True if a client whose hold is over opens its next connection, after pause_s."""
    pause_s: float = 0.0
    drop_at_s: float | None = None
    """All connections are cut at this time, and every client that had one connects again at once."""
    concurrency: int = 256
    """The number of connections that may be without an answer at a time, where `rate` is None; all processes together."""
    recorded: RecordedConnection | None = None
    """Replaces rate and hold_s: each client is one connection of a log."""

    def __post_init__(self) -> None:
        for name in ("clients", "concurrency"):
            _require(getattr(self, name) >= 1, self, name, "must be at least 1")
        for name in ("start_s", "hold_s", "backoff_s", "backoff_max_s", "pause_s"):
            value = getattr(self, name)
            _require(value >= 0, self, name, "must be a number of at least 0")
            _require(math.isfinite(value) or name == "hold_s", self, name, "can't be endless")
        for name in ("rate", "duration_s"):
            value = getattr(self, name)
            _require(
                value is None or 0 < value < math.inf, self, name, "must be a number of more than 0, and not endless"
            )
        endless = self.reconnect or self.repeat
        _require(self.duration_s is not None or not endless, self, "duration_s", "is needed with reconnect or repeat")

    def share(self, process: int, processes: int) -> Sequence[int]:
        """The clients that process number `process` plays."""
        return range(process, self.clients, processes)


@dataclass(frozen=True)
class Traffic:
    """Real clients (librdkafka) that produce to and consume from one topic while the storm goes on."""

    topic: str
    producers: int = 1
    consumers: int = 1
    partitions: int = 4
    records_per_s: float = 500.0
    """The records a second of each producer, and of each impatient one."""
    size_bytes: int = 200
    client_id: str = ""
    """The client id, by which quotas go; the topic's name by default."""
    user: str = ""
    """Logs in with SASL PLAIN; the bootstrap address must be a listener that asks for it."""
    password: str = ""
    impatient: int = 0
    """Producers that come back on another connection at once when they are throttled."""
    mutators: int = 0
    """Clients that create topics of `partitions` partitions, at topics_per_s each."""
    topics_per_s: float = 5.0

    def __post_init__(self) -> None:
        for name in ("partitions", "size_bytes", "records_per_s", "topics_per_s"):
            if getattr(self, name) <= 0:
                raise SpecInvalid(f"traffic on {self.topic}: {name} must be more than 0.")
        if min(self.producers, self.consumers, self.impatient, self.mutators) < 0:
            raise SpecInvalid(
                f"traffic on {self.topic}: producers, consumers, impatient and mutators can't be negative."
            )
        if self.user and not self.password:
            raise SpecInvalid(f"traffic on {self.topic}: user {self.user} needs a password.")


@dataclass(frozen=True)
class LoadScenario:
    """A whole run."""

    name: str
    title: str = ""
    story: str = ""
    suggested: Suggestion = NONE
    """Limits that the story is about: shown, and set for the second run of `--apply`."""
    groups: tuple[ClientGroup, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    probe: str = API_VERSIONS
    user: str = ""
    """The user as which each connection logs in by PLAIN, with the probe `login`."""
    password: str = ""
    grace_s: float = 1.0
    """With no probe: a connection the broker has not closed after so long counts as admitted."""
    timeout_s: float = 30.0
    """A connection without an answer after so long is closed, and counts as unanswered."""
    close: str = FIN
    """The end of connections: `fin`, as real clients do, or `rst`, which leaves no TIME_WAIT on this machine."""
    proxy_protocol: str | None = None
    """v1 or v2: every connection begins with a header that announces its client, as a proxy's does; sources are only in there, so
    any address will do."""
    seconds: float | None = None
    """The run lasts at least so long; needed where there is only traffic."""

    def __post_init__(self) -> None:
        if not self.groups and not self.traffic:
            raise SpecInvalid(f"{self.name}: a scenario needs at least one group or traffic.")
        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            raise SpecInvalid(f"{self.name}: two groups have the same name.")
        if not self.groups and self.seconds is None:
            raise SpecInvalid(f"{self.name}: traffic without a group needs seconds, as nothing else ends it.")
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise SpecInvalid(f"{self.name}: {name} must be one of {', '.join(allowed)}.")
        if self.user and not self.password:
            raise SpecInvalid(f"{self.name}: user {self.user} needs a password.")
        if self.user and self.probe != LOGIN:
            raise SpecInvalid(f"{self.name}: a user needs the probe {LOGIN}.")
        if self.proxy_protocol not in (None, V1, V2):
            raise SpecInvalid(f"{self.name}: proxy_protocol must be {V1} or {V2}.")
        if self.proxy_protocol is not None and self.traffic:
            raise SpecInvalid(
                f"{self.name}: real clients send no PROXY header, so traffic and proxy_protocol don't go together."
            )
        for name in ("grace_s", "timeout_s"):
            if getattr(self, name) <= 0:
                raise SpecInvalid(f"{self.name}: {name} must be more than 0.")

    @property
    def login(self) -> Login | None:
        """The user and password with which each connection logs in; None: connections don't log in."""
        return Login(self.user, self.password) if self.user else None

    @property
    def clients(self) -> int:
        """The number of clients of all groups together."""
        return sum(group.clients for group in self.groups)

    def length_s(self) -> float | None:
        """The time at which the last group stops opening; None when a group only ends with its clients."""
        ends = [_end_s(group) for group in self.groups]
        if self.seconds is not None:
            ends.append(self.seconds)
        known = [end for end in ends if end is not None]
        return max(known) if known and len(known) == len(ends) else None


def _end_s(group: ClientGroup) -> float | None:
    if group.duration_s is not None:
        return group.start_s + group.duration_s
    if group.recorded is not None:
        return group.start_s + (group.recorded.at_s[-1] if len(group.recorded.at_s) else 0.0)
    return group.start_s + group.clients / group.rate if group.rate is not None else None


def _require(holds: bool, group: ClientGroup, name: str, rule: str) -> None:
    if not holds:
        raise SpecInvalid(f"group {group.name}: {name} {rule}.")
