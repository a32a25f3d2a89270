"""Caps and creation rates on the connections of one broker, in Kafka's order, at times that the caller tells: for
`turnstile replay` and `plan`, and for tests as the reference of what a cluster decides (broker/accept).

One acceptor per listener takes its connects one after the other, in the order they came:

rates_before_slots  Record in the broker's rate (not the inter-broker listener), then in the listener's. Wait for the larger
    delay, at most one window; nothing shortens or lengthens it once it runs, and after it the rate is not asked again.
slots_first_come_first_served  Then wait for a slot: of the listener's `max.connections`, then of the broker's (not the
    inter-broker listener). A freed slot or a moved cap wakes the waiters at that instant, first come, first served. Nothing
    is counted for a waiter: a full listener leaves the broker's slots to the other listeners.
violated_ip_rate_is_taken_back  Then the address's rate: if it is violated, take the record back from all three and refuse.
ip_cap_last  Then the address's cap: over it, refuse; the rates keep the record.
users_after_all  A client with a user logs in at the instant of its admission: refused for its user, it has ended in that
    instant, and has evicted nothing (user_quotas.py).
inter_broker_evicts_the_idle  An inter-broker connection that takes the broker over its cap closes the oldest connection of
    another listener, which here is the one idle longest.
nothing_else_closes  Nothing else ever closes a connection, and a connection is counted exactly from its admission to its
    close.

The inter-broker listener has these exceptions only beside another listener. Redpanda's settings join in as in docs/semantics.md: a
token of the core's bucket before rates_before_slots, the tighter cap in ip_cap_last, and in slots_first_come_first_served
`kafka_connections_max`, which refuses once the listener has a slot; where it is the tighter one or equal, `max.connections` does
not let wait for it. Then `turnstile.max.ssl.connections` refuses, of listeners with TLS alone. Limits of the cluster refuse as if
it were this broker: its rate after the core's bucket, its cap after ip_cap_last. Things due at the same instant happen in the order
they came. Time is whole milliseconds, never back. Source: SocketServer.ConnectionQuotas, KIP-402, KIP-612.
"""

from collections import deque
from collections.abc import Collection, Iterable
from heapq import heappop, heappush

from shards.limits.caps import CLUSTER
from shards.limits.connection_limits import CORE_RATE, ConnectionLimits
from shards.limits.core_bucket import CoreBucket, core_bucket
from shards.limits.ip_quotas import IpQuotaTable
from shards.limits.rate import Rate
from shards.limits.user_quotas import UserQuotas

ADMITTED = "admitted"
REFUSED = "refused"
WAITING = "waiting"

_CORE_WAIT_MS = 100


class IncomingConnection:
    """One connect and its answer: `outcome` None until decided, then `at_ms`, and `reason` unless admitted; `user` if any."""

    __slots__ = ("acceptor", "at_ms", "gone", "ip", "open", "outcome", "reason", "user")

    def __init__(self, acceptor: "Acceptor", ip: str, user: str | None = None) -> None:
        self.acceptor = acceptor
        self.ip = ip
        self.user = user
        self.outcome: str | None = None
        self.at_ms = 0
        self.reason: str | None = None
        self.open = False
        self.gone = False  # closed by its client before it was decided


class Acceptor:
    """A listener: its rate, its count, and the connect that blocks it, with those behind."""

    __slots__ = ("behind", "busy", "cap", "count", "exempt", "has_tls", "name", "quota", "rate")

    def __init__(self, name: str, rate: Rate, *, has_tls: bool) -> None:
        self.name = name
        self.has_tls = has_tls
        self.rate = rate
        self.quota: float | None = None
        self.cap: int | None = None
        self.count = 0
        self.exempt = False  # from the broker-wide rate and cap
        self.busy: IncomingConnection | None = None
        self.behind: deque[IncomingConnection] = deque()


class ReplayGate:
    """All listeners of one broker. Call `advance` (or anything else that takes the time) with times that never fall."""

    def __init__(
        self,
        limits: ConnectionLimits,
        listeners: Iterable[str],
        *,
        inter_broker: str | None = None,
        ssl: Collection[str] = (),
    ) -> None:
        """`ssl`: the listeners with TLS. ValueError if `inter_broker` is none of the listeners."""
        window = limits.window
        self.acceptors = {name: Acceptor(name, Rate(window), has_tls=name in ssl) for name in listeners}
        if inter_broker is not None and inter_broker not in self.acceptors:
            raise ValueError(f"the inter-broker listener {inter_broker} is not one of {', '.join(self.acceptors)}")
        self.count = 0
        self.count_of: dict[str, int] = {}
        self._window = window
        self._rate, self._cluster_rate = Rate(window), Rate(window)
        self._ip_rates: dict[str, Rate] = {}
        self.ip_quotas = IpQuotaTable()
        self._users = UserQuotas(window)
        self._buckets: dict[str, CoreBucket] = {}
        self.due: list[tuple[int, int, str, IncomingConnection]] = []  # a heap of (at_ms, order, wait, connection)
        self._order = 0
        self._parked: dict[IncomingConnection, None] = {}  # waiting for a slot, longest first
        self._oldest: deque[IncomingConnection] | None = None  # of listeners that are not exempt; closed ones linger
        if inter_broker is not None and len(self.acceptors) > 1:
            self.acceptors[inter_broker].exempt = True
            self._oldest = deque()
        self.configure(limits, now_ms=0)

    def configure(self, limits: ConnectionLimits, *, now_ms: int) -> None:
        """Other limits from now on, for the same listeners and windows."""
        self.limits = limits
        self._users.configure(limits)
        self._quota = limits.rate_of("broker").rate
        self._cluster_quota = limits.rate_of(CLUSTER).rate
        broker = limits.rule_of("broker")
        self._cap = broker.cap if broker.wait else None
        self._refuse_above = limits.refusing.cap
        self._ssl_cap = limits.rule_of("ssl").cap
        self._cluster_cap = limits.rule_of(CLUSTER).cap
        self._same_ip_cap = limits.same_for_all_ips
        self._ip_cap = limits.ip_default.cap
        self._core_rates = limits.limits_core_rate
        for name, acceptor in self.acceptors.items():
            pool = f"listener:{name}"
            acceptor.cap, acceptor.quota = limits.rule_of(pool).cap, limits.rate_of(pool).rate
        self._wake(now_ms)

    def connect(self, connection: IncomingConnection, *, now_ms: int) -> None:
        """A client connects; `connection` is decided at once, or by a later call."""
        acceptor = connection.acceptor
        if acceptor.busy is not None:
            acceptor.behind.append(connection)
        elif self._core_rates:
            self._take_core_token(connection, acceptor, now_ms)
        else:
            self._record(connection, acceptor, now_ms)

    def close(self, connection: IncomingConnection, *, now_ms: int) -> None:
        """A client closes. Before it was decided: the acceptor, which can't know, still goes through all of it."""
        if connection.open:
            self._release(connection)
            if self._parked:
                self._wake(now_ms)
        elif connection.outcome is None:
            connection.gone = True

    def advance(self, *, now_ms: int) -> None:
        """Let every delay that ends until `now_ms` end, in order."""
        due = self.due
        while due and due[0][0] <= now_ms:
            at_ms, _, wait, connection = heappop(due)
            acceptor = connection.acceptor
            if wait == "held":
                self._check_again(connection, acceptor, at_ms)
                continue
            acceptor.busy = None
            if wait == "core":
                self._record(connection, acceptor, at_ms)
            elif wait == "late":
                _decide(connection, REFUSED, at_ms, "core_rate")
            else:
                self._enter(connection, acceptor, at_ms)
            self._go_on(acceptor, at_ms)

    def finish(self) -> None:
        """Let time run on until nothing more can happen; what is then undecided will never be, and says so."""
        while self.due:
            self.advance(now_ms=self.due[0][0])
        for acceptor in self.acceptors.values():
            for connection in () if acceptor.busy is None else (acceptor.busy, *acceptor.behind):
                connection.outcome = WAITING
                connection.reason = self._full(acceptor)

    def _go_on(self, acceptor: Acceptor, now_ms: int) -> None:
        """The acceptor takes what came while it was blocked, until something blocks it again."""
        while acceptor.behind and acceptor.busy is None:
            self.connect(acceptor.behind.popleft(), now_ms=now_ms)

    def _wake(self, now_ms: int) -> None:
        """Every connection that waits for a slot looks again, longest waiting first; only then do the freed acceptors go on.

        One pass is enough: a slot that a waiter takes and gives back in it (ip_cap_last) was no use to the waiters before it.
        """
        woken = list(self._parked)
        self._parked.clear()
        for connection in woken:
            connection.acceptor.busy = None
            self._enter(connection, connection.acceptor, now_ms)
        for connection in woken:
            self._go_on(connection.acceptor, now_ms)

    def _take_core_token(self, connection: IncomingConnection, acceptor: Acceptor, now_ms: int) -> None:
        rule = self.limits.core_rate_of(connection.ip)
        if rule.rate is None:
            return self._record(connection, acceptor, now_ms)
        owner, per_s = "" if rule.name == CORE_RATE else connection.ip, int(rule.rate)
        bucket = core_bucket(self._buckets.get(owner), per_s, exact=self.limits.exact_core_rate, now_ms=now_ms)
        self._buckets[owner] = bucket
        wait_ms = bucket.take(now_ms=now_ms, most_ms=_CORE_WAIT_MS)
        if wait_ms == 0:
            return self._record(connection, acceptor, now_ms)
        acceptor.busy = connection
        if wait_ms is None:
            return self._wait("late", connection, now_ms + _CORE_WAIT_MS)
        return self._wait("core", connection, now_ms + wait_ms)

    def _record(self, connection: IncomingConnection, acceptor: Acceptor, now_ms: int) -> None:
        """Records the connection in the rates of cluster, broker and listener (rates_before_slots)."""
        if self._cluster_quota is not None and self._cluster_rate.charge(1, self._cluster_quota, now_ms=now_ms):
            self._cluster_rate.record(-1, now_ms=now_ms)
            return _decide(connection, REFUSED, now_ms, "cluster_rate")
        delay_ms = acceptor.rate.charge(1, acceptor.quota, now_ms=now_ms)
        if not acceptor.exempt:
            delay_ms = max(delay_ms, self._rate.charge(1, self._quota, now_ms=now_ms))
        if not delay_ms:
            return self._enter(connection, acceptor, now_ms)
        acceptor.busy = connection
        return self._wait("rate", connection, now_ms + min(delay_ms, self._window.size_ms))

    def _enter(self, connection: IncomingConnection, acceptor: Acceptor, now_ms: int) -> None:
        """Goes on to slot, rate and cap of the address, as far as that needs no waiting (rates_before_slots and those after it)."""
        if self._full(acceptor):
            acceptor.busy = connection
            self._parked[connection] = None
            return None
        if self._refuse_above is not None and self.count >= self._refuse_above:
            return _decide(connection, REFUSED, now_ms, "broker_cap")
        if self._ssl_cap is not None and self._is_beyond_ssl_cap(acceptor):
            return _decide(connection, REFUSED, now_ms, "ssl_cap")
        if self.ip_quotas.by_ip and not self._within_ip_rate(connection, acceptor, now_ms):
            return None
        return self._admit_within_ip_cap(connection, acceptor, now_ms)

    def _within_ip_rate(self, connection: IncomingConnection, acceptor: Acceptor, now_ms: int) -> bool:
        """violated_ip_rate_is_taken_back. An address without a quota is not recorded; earlier records still count."""
        ip = connection.ip
        quota = self.ip_quotas.quota(ip)
        if quota is None:
            return True
        rate = self._ip_rates.get(ip)
        if rate is None:
            rate = self._ip_rates[ip] = Rate(self._window)
        delay_ms = rate.charge(1, quota, now_ms=now_ms, max_ms=self._window.size_ms)
        if not delay_ms:
            return True
        rate.record(-1, now_ms=now_ms)
        if not acceptor.exempt:
            self._rate.record(-1, now_ms=now_ms)
        acceptor.rate.record(-1, now_ms=now_ms)
        if self.limits.recheck:
            self._wait("held", connection, now_ms + delay_ms)
        else:
            _decide(connection, REFUSED, now_ms, "ip_rate")
        return False

    def _check_again(self, connection: IncomingConnection, acceptor: Acceptor, now_ms: int) -> None:
        """KIP-612's text, `turnstile.ip.rate.recheck`: after its delay an address may be within its rate again.

        Its acceptor has long gone on, so this connection can't wait: without a slot it is refused.
        """
        quota = self.ip_quotas.quota(connection.ip)
        rate = self._ip_rates[connection.ip]
        if quota is not None and rate.charge(1, quota, now_ms=now_ms):
            rate.record(-1, now_ms=now_ms)
            return _decide(connection, REFUSED, now_ms, "ip_rate")
        acceptor.rate.record(1, now_ms=now_ms)
        if not acceptor.exempt:
            self._rate.record(1, now_ms=now_ms)
        full = self._full(acceptor)
        if full or (self._refuse_above is not None and self.count >= self._refuse_above):
            return _decide(connection, REFUSED, now_ms, full or "broker_cap")
        if self._is_beyond_ssl_cap(acceptor):
            return _decide(connection, REFUSED, now_ms, "ssl_cap")
        return self._admit_within_ip_cap(connection, acceptor, now_ms)

    def _admit_within_ip_cap(self, connection: IncomingConnection, acceptor: Acceptor, now_ms: int) -> None:
        """ip_cap_last, then the cap of the cluster, then admit, then inter_broker_evicts_the_idle."""
        ip = connection.ip
        count = self.count_of.get(ip, 0)
        cap = self._ip_cap if self._same_ip_cap else self.limits.rule_of(f"ip:{ip}").cap
        if cap is not None and count >= cap:
            return _decide(connection, REFUSED, now_ms, "ip_cap")
        if self._cluster_cap is not None and self.count >= self._cluster_cap:
            return _decide(connection, REFUSED, now_ms, "cluster_cap")
        user = None if connection.gone else connection.user
        if user is not None and (refusal := self._users.login(user, now_ms=now_ms)):
            return _decide(connection, REFUSED, now_ms, refusal)
        self.count_of[ip] = count + 1
        self.count += 1
        acceptor.count += 1
        connection.open = True
        connection.outcome = ADMITTED
        connection.at_ms = now_ms
        if connection.gone:
            self._release(connection)
        elif self._oldest is not None:
            self._keep_order(connection, acceptor)
        return None

    def _keep_order(self, connection: IncomingConnection, acceptor: Acceptor) -> None:
        """inter_broker_evicts_the_idle: remembers the order of admission on the other listeners, and closes the oldest
        connection of these if need be."""
        oldest = self._oldest
        assert oldest is not None
        if not acceptor.exempt:
            if len(oldest) > 2 * self.count + 1000:
                oldest = self._oldest = deque(kept for kept in oldest if kept.open)
            oldest.append(connection)
        elif self._cap is not None and self.count > self._cap:
            while oldest:
                first = oldest.popleft()
                if first.open:
                    return self._release(first)
        return None

    def _release(self, connection: IncomingConnection) -> None:
        connection.open = False
        if connection.user is not None and not connection.gone:
            self._users.close(connection.user)
        count = self.count_of.pop(connection.ip) - 1
        if count:
            self.count_of[connection.ip] = count
        self.count -= 1
        connection.acceptor.count -= 1

    def _full(self, acceptor: Acceptor) -> str | None:
        """The cap that leaves this listener no slot; the broker's where both do, as its own may only be inherited."""
        if self._cap is not None and self.count >= self._cap and not acceptor.exempt:
            return "broker_cap"
        if acceptor.cap is not None and acceptor.count >= acceptor.cap:
            return "listener_cap"
        return None

    def _is_beyond_ssl_cap(self, acceptor: Acceptor) -> bool:
        if self._ssl_cap is None or not acceptor.has_tls:
            return False
        return sum(each.count for each in self.acceptors.values() if each.has_tls) >= self._ssl_cap

    def _wait(self, what: str, connection: IncomingConnection, until_ms: int) -> None:
        self._order += 1
        heappush(self.due, (until_ms, self._order, what, connection))


def _decide(connection: IncomingConnection, outcome: str, at_ms: int, reason: str) -> None:
    connection.outcome = outcome
    connection.at_ms = at_ms
    connection.reason = reason
