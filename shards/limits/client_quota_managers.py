"""Client quotas: under which key a client is metered, and how long it is throttled. One manager per quota type.

nothing_recorded_before_a_quota  Before the first quota of a type is set, nothing of that type is recorded.
every_client_recorded_under_its_key  After that every client is recorded under its key (`precedence.py`), with or without a
    quota of its own; a client that comes under another key goes on with the history of that key. sensor_table.py bounds how
    many are kept.
violation_includes_the_record  Whether a record violates is decided with the record in it; only strict mutations are decided
    before.

Source: ClientQuotaManager, ClientRequestQuotaManager, ControllerMutationQuotaManager (Apache Kafka).
"""

from collections.abc import Callable
from typing import Generic, NamedTuple

from shards.limits.bucket import TokenBucket
from shards.limits.precedence import EntityNames, Key, QuotaTable
from shards.limits.rate import DEFAULT_WINDOW, Rate, Window
from shards.limits.sensor_table import MOST_SENSORS, Sensor, SensorTable
from shards.limits.short_names import LONGEST_KNOWN
from shards.limits.throttle_time import bucket_throttle_ms, java_round
from shards.settings.ranges import INT_MAX, LONG_MAX

PRODUCE = "producer_byte_rate"
FETCH = "consumer_byte_rate"
REQUEST = "request_percentage"
MUTATION = "controller_mutation_rate"

IDLE_MS = 3_600_000  # Kafka drops a sensor that was not used for an hour
MOST_KNOWN = MOST_SENSORS
"""The look-ups of so many clients are remembered, of ids of at most LONGEST_KNOWN characters: clients choose them."""
PERCENT_PER_NANO = 100.0 / 1e9


class Charged(NamedTuple):
    """The answer to a record: whether it was accepted (only a strict mutation can be refused), and the throttle."""

    accepted: bool
    throttle_ms: int


WITHIN = Charged(True, 0)


def _ignore(key: Key) -> None:
    """Hears of dropped sensors where nothing else is kept by their keys."""


class _ClientQuotaManager(Generic[Sensor]):
    """A quota table, and the sensors of the keys recorded of late. `dropped(key)` hears of each sensor that is dropped."""

    sensor: type[Sensor]

    def __init__(
        self,
        table: QuotaTable | None = None,
        *,
        window: Window = DEFAULT_WINDOW,
        dropped: Callable[[Key], None] = _ignore,
        most_sensors: int = MOST_SENSORS,
    ) -> None:
        self.table = QuotaTable() if table is None else table
        self.window = window
        self._hears_of_dropped = dropped
        self.places: SensorTable[Sensor] = SensorTable(self.sensor, window, self.table, self._drop, most=most_sensors)
        self._known: dict[tuple[str, str], tuple[Sensor, float | None]] = {}  # the results of `_resolve` at `_version`
        self._version = self.table.version

    @property
    def sensors(self) -> dict[Key, Sensor]:
        """The sensors that are not shared, by key."""
        return self.places.own

    def _drop(self, key: Key) -> None:
        self._known.clear()
        self._hears_of_dropped(key)

    def update(self, entity: EntityNames, value: float | None) -> None:
        """Set or remove a quota; it holds from the next record on. ValueError for an entity that can have none."""
        self.table.update(entity, value)

    def expire(self, *, now_ms: int, idle_ms: int = IDLE_MS) -> int:
        """Drop sensors that nothing was recorded in for `idle_ms`; how many. Bounds memory."""
        return sum(self.expire_one(key, now_ms=now_ms, idle_ms=idle_ms) for key in list(self.sensors))

    def expire_one(self, key: tuple[str, str], *, now_ms: int, idle_ms: int = IDLE_MS) -> bool:
        """Drop the sensor of one key if nothing was recorded in it for `idle_ms`; whether it was."""
        return self.places.expire(key, now_ms=now_ms, idle_ms=idle_ms)

    def units(self, amount: float) -> float:
        """An amount in the sensor's own unit."""
        return amount

    def _resolve(self, user: str, client_id: str, now_ms: int) -> tuple[Sensor, float | None]:
        """The sensor and the limit of a client, looked up anew after a change of any quota."""
        if self._version != self.table.version or len(self._known) >= MOST_KNOWN or not self.table.remembers:
            self._known.clear()
            self._version = self.table.version
        client = (user, client_id)
        found = self._known.get(client)
        if found is None:
            key = self.table.key(user, client_id)
            found = self.places.take(key, now_ms=now_ms), self.table.limit(key)
            if len(client_id) <= LONGEST_KNOWN and key in self.sensors:
                self._known[client] = found
        return found


class ProduceQuotaManager(_ClientQuotaManager[Rate]):
    """`producer_byte_rate`: what was produced stays recorded when it is throttled; the throttle has no cap."""

    sensor = Rate
    max_throttle_ms = INT_MAX

    def record(self, user: str, client_id: str, amount: float, *, now_ms: int) -> Charged:
        """Count `amount`; the client is to be muted for `throttle_ms` after it is answered."""
        if not self.table.in_use:
            return WITHIN
        sensor, limit = self._resolve(user, client_id, now_ms)
        throttle = sensor.charge(amount, limit, now_ms=now_ms, max_ms=self.max_throttle_ms)
        if not throttle:
            return WITHIN
        window_ms = self.window.samples * self.window.size_ms
        if limit and throttle > window_ms and self.table.key(user, client_id) not in self.sensors:
            # What others have recorded in a sensor that it shares counts for a window, and so does their debt.
            throttle = min(throttle, window_ms + java_round(1000 * amount / limit))
        return Charged(True, throttle)

    def record_unthrottled(self, user: str, client_id: str, amount: float, *, now_ms: int) -> None:
        """Count without asking (Kafka's recordNoThrottle): the next `record` takes it into account."""
        if self.table.in_use:
            self._resolve(user, client_id, now_ms)[0].record(amount, now_ms=now_ms)

    def insert(self, key: Key, amount: float, *, at_ms: int, now_ms: int) -> None:
        """Count what another shard recorded under a key at `at_ms`, in the sensor's own unit."""
        self.places.take(key, now_ms=now_ms).insert(amount, at_ms=at_ms, now_ms=now_ms)

    def rate(self, user: str, client_id: str, *, now_ms: int) -> float:
        """The current rate of this client's key, per second; 0.0 if nothing is recorded."""
        sensor = self.sensors.get(self.table.key(user, client_id))
        return 0.0 if sensor is None else sensor.peek(now_ms=now_ms)


class FetchQuotaManager(ProduceQuotaManager):
    """`consumer_byte_rate`: a throttled fetch is answered empty, so its bytes are taken back at the same instant."""

    def record(self, user: str, client_id: str, amount: float, *, now_ms: int) -> Charged:
        """Count `amount` bytes about to be sent; with a throttle, send none of them."""
        charged = super().record(user, client_id, amount, now_ms=now_ms)
        if charged.throttle_ms:
            self.take_back(user, client_id, amount, now_ms=now_ms)
        return charged

    def take_back(self, user: str, client_id: str, amount: float, *, now_ms: int) -> None:
        """Uncount, as when the request quota throttles a fetch that its byte quota lets through."""
        self.record_unthrottled(user, client_id, -amount, now_ms=now_ms)

    def most_at_once(self, limit: float | None) -> float | None:
        """Bytes beyond which a single fetch would surely be throttled under this quota; None: any number."""
        samples, size_ms = self.window
        return None if limit is None else limit * (samples - 1) * (size_ms / 1000)


class ClientRequestQuotaManager(ProduceQuotaManager):
    """`request_percentage`: handler time, in percent of one thread; the throttle is at most one window."""

    @property
    def max_throttle_ms(self) -> int:  # type: ignore[override]
        return self.window.size_ms

    def record(self, user: str, client_id: str, amount: float, *, now_ms: int) -> Charged:
        """Count `amount` milliseconds of handler time, to the nanosecond."""
        return super().record(user, client_id, self.units(amount), now_ms=now_ms)

    def record_unthrottled(self, user: str, client_id: str, amount: float, *, now_ms: int) -> None:
        """Count milliseconds without asking, as Kafka does with the network thread's share."""
        super().record_unthrottled(user, client_id, self.units(amount), now_ms=now_ms)

    def units(self, amount: float) -> float:
        """Milliseconds in percent of one thread for a second."""
        return java_round(amount * 1e6) * PERCENT_PER_NANO


class ControllerMutationQuotaManager(_ClientQuotaManager[TokenBucket]):
    """`controller_mutation_rate` (KIP-599): partitions created or deleted, against a token bucket."""

    sensor = TokenBucket

    def record(self, user: str, client_id: str, amount: float, *, strict: bool, now_ms: int) -> Charged:
        """Strict: refused, and not recorded, while the bucket is below zero; permissive: recorded, and throttled.

        So a strict record may empty the bucket far below zero and is yet not throttled: the next one pays.
        """
        if not self.table.in_use:
            return WITHIN
        bucket, limit = self._resolve(user, client_id, now_ms)
        quota = refill_per_s(limit)
        if not strict:
            throttle = bucket.charge(amount, quota, now_ms=now_ms)
            return Charged(True, throttle) if throttle else WITHIN
        tokens = bucket.tokens(quota, now_ms=now_ms)
        if tokens < 0:
            return Charged(False, bucket_throttle_ms(tokens, quota))
        bucket.record(amount, quota, now_ms=now_ms)
        return WITHIN

    def insert(self, key: Key, amount: float, *, at_ms: int, now_ms: int) -> None:
        """Take the tokens that another shard took under a key at `at_ms`; now, if this bucket was refilled since."""
        bucket = self.places.take(key, now_ms=now_ms)
        bucket.record(amount, refill_per_s(self.table.limit(key)), now_ms=max(at_ms, bucket.idle_since_ms()))

    def tokens(self, user: str, client_id: str, *, now_ms: int) -> float | None:
        """Tokens left for this client's key; None without a quota."""
        match = self.table.match(user, client_id)
        if match.limit is None or match.key is None:
            return None
        bucket = self.sensors.get(match.key)
        return (TokenBucket(self.window) if bucket is None else bucket).peek(match.limit, now_ms=now_ms)


def refill_per_s(limit: float | None) -> float:
    """The tokens a second of a bucket: Kafka refills that of an unlimited client, too."""
    return float(LONG_MAX) if limit is None else limit
