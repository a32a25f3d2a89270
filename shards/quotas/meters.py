"""The meters of client quotas on one shard: the quotas in force, a sensor for each key, and what is shown of them.

unset_quotas_cost_a_flag  While no quota of a kind is set, a request costs one look at a flag.
changed_quotas_hold_on_return  A changed quota holds for the first request charged after the change has returned.
unused_sensors_are_dropped  A turn over all sensors drops those whose key is at home here and that were not used for an hour, and
    those whose key is at home on another shard once nothing in them counts. A turn looks at EXPIRED_AT_ONCE of them at a time,
    so that it never stops the loop for long.
others_quotas_are_left_out  By Redpanda's semantics no client is metered here (shared_buckets.py); by Kafka's, quotas of entities
    that Kafka does not have are not in force.
meters_are_bounded  Everything that is kept by the names of clients is bounded: sensors by shards/limits/sensor_table.py,
    what is told of a client with its sensor, look-ups by MOST_KNOWN. A name in a call to a home is at most LONGEST_KNOWN
    characters long.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from shards.limits.average import Average
from shards.limits.client_quota_managers import (
    FETCH,
    IDLE_MS,
    MOST_KNOWN,
    MUTATION,
    PRODUCE,
    REQUEST,
    Charged,
    ClientRequestQuotaManager,
    ControllerMutationQuotaManager,
    FetchQuotaManager,
    ProduceQuotaManager,
)
from shards.limits.precedence import Key, QuotaTable
from shards.limits.quota_callback import CallbackQuotaTable, ClientQuotaCallback, Mistaken, make_callback
from shards.limits.quota_entities import CALLBACK, KAFKAS, SEMANTICS, Entity, is_of_kafka
from shards.limits.rate import DEFAULT_WINDOW, Rate, Window
from shards.limits.short_names import LONGEST_KNOWN
from shards.ownership import home_of
from shards.quotas.charge_history import MeterKey

KINDS: Final = (PRODUCE, FETCH, REQUEST, MUTATION)
EXPIRED_AT_ONCE: Final = 2000
Manager = TypeVar(
    "Manager", ProduceQuotaManager, FetchQuotaManager, ClientRequestQuotaManager, ControllerMutationQuotaManager
)


class QuotaImage(Protocol):
    """The quotas and the settings of a version of the configuration: a ClusterImage."""

    @property
    def quotas(self) -> Mapping[Entity, Mapping[str, float]]: ...

    def get(self, name: str) -> Any: ...


class Metered(NamedTuple):
    """The meter of a client: the home of its key, its quota (None: it has none), and the key."""

    home: int
    limit: float | None
    place: MeterKey


class SensorCounts(NamedTuple):
    """Sensors that are kept, how many made room for others, and the kinds of quota of which clients share sensors now."""

    kept: int
    evicted: int
    sharing: list[str]


class Decision(NamedTuple):
    """The answer to a charge that was decided here. `recorded`, by its sensor, in its own units: () if it was refused, (units,) if
    it is kept, (units, -units) if it was recorded and taken back."""

    accepted: bool
    throttle_ms: int
    recorded: tuple[float, ...]


class QuotaUse(NamedTuple):
    """The use that a client makes of its quota now: `used` and `limit` in bytes a second, percent, or mutations a second;
    `throttle_ms`, its average throttle within the window (None: it was not throttled). `user` and `client_id` are "" where the
    quota does not tell them apart."""

    kind: str
    user: str
    client_id: str
    used: float
    limit: float
    throttle_ms: float | None


class Meters:
    """The sensors of one shard, at home here or not. `now_ms()` is the machine's monotonic clock."""

    def __init__(
        self, me: int, shards: int, image: QuotaImage, *, now_ms: Callable[[], int], callback_mistaken: Mistaken
    ) -> None:
        self._me = me
        self._shards = shards
        self._image = image
        self._now_ms = now_ms
        self._known: dict[str, dict[Any, float]] = {kind: {} for kind in KINDS}
        self._clients: dict[tuple[str, str, str], Metered] = {}  # the results of `_look_up` in this version
        self._throttles: dict[tuple[str, str, str], Average] = {}
        self._mutation_rates: dict[Key, Rate] = {}
        self._began = False
        self._callback: ClientQuotaCallback | None = None
        self._hear_fault = callback_mistaken
        self._turn = self._sensors()
        self._build(DEFAULT_WINDOW, DEFAULT_WINDOW)

    def _build(self, window: Window, mutations: Window) -> None:
        """New sensors. By kind: `keep_ms`, how long an amount may count, as a sample counts until its last amount is one window
        old; `window_s`, for how many seconds' worth of its quota a client may use at once."""

        def made(make: Callable[..., Manager], kind: str, window: Window) -> Manager:
            return make(self._table(kind), window=window, dropped=partial(self._dropped, kind))

        self.produce = made(ProduceQuotaManager, PRODUCE, window)
        self.fetch = made(FetchQuotaManager, FETCH, window)
        self.request = made(ClientRequestQuotaManager, REQUEST, window)
        self.mutation = made(ControllerMutationQuotaManager, MUTATION, mutations)
        self._exempt = Rate(window)
        self._managers: dict[str, Any] = {
            PRODUCE: self.produce,
            FETCH: self.fetch,
            REQUEST: self.request,
            MUTATION: self.mutation,
        }
        self.keep_ms = {**dict.fromkeys(KINDS, (window.samples + 1) * window.size_ms), MUTATION: IDLE_MS}
        self.window_s = {
            **dict.fromkeys(KINDS, (window.samples - 1) * window.size_ms / 1000),
            MUTATION: mutations.samples * mutations.size_ms / 1000,
        }

    def _table(self, kind: str) -> QuotaTable:
        return QuotaTable() if self._callback is None else CallbackQuotaTable(kind, self._callback, self._hear_fault)

    @property
    def is_by_callback(self) -> bool:
        """True if the operator's class decides (quota_callback.py)."""
        return self._callback is not None

    def reset(self) -> None:
        """Forgets what every client used, as a broker that starts."""
        self._began = False
        self._known = {kind: {} for kind in KINDS}
        self._throttles.clear()
        self._mutation_rates.clear()
        self.read_quotas()

    def read_quotas(self) -> None:
        """Takes over the quotas of the image's version (changed_quotas_hold_on_return); the first time, the windows too,
        which never change."""
        if not self._began:
            self._began = True
            windows = [
                Window(
                    self._image.get(f"{whose}quota.window.num"),
                    1000 * self._image.get(f"{whose}quota.window.size.seconds"),
                )
                for whose in ("", "controller.")
            ]
            path = self._image.get(CALLBACK)
            self._callback = make_callback(path) if path else None
            self._build(*windows)
        self._clients.clear()
        is_kafkas = self._image.get(SEMANTICS) == KAFKAS
        for kind in KINDS:
            now = {
                entity: quotas[kind]
                for entity, quotas in self._image.quotas.items()
                if is_kafkas and kind in quotas and is_of_kafka(entity)
            }
            before, table = self._known[kind], self._managers[kind].table
            for entity in before.keys() | now.keys():
                if before.get(entity) != now.get(entity):
                    table.update(dict(entity), now.get(entity))
            self._known[kind] = now

    def in_use(self, kind: str) -> bool:
        """True if any client is metered for this kind."""
        table: QuotaTable = self._managers[kind].table
        return table.in_use

    def limit(self, kind: str, user: str, client_id: str) -> float | None:
        """The quota that holds for a client; None: it has none."""
        return self._metered(kind, user, client_id).limit

    def is_metered_as(self, other: Meters, kind: str, user: str, client_id: str) -> bool:
        """True if a client has the same quota by other meters, under the same key."""
        return self._metered(kind, user, client_id) == other._metered(kind, user, client_id)

    def most_at_once(self, user: str, client_id: str) -> float | None:
        """Bytes beyond which a single fetch would surely be throttled; None: any number."""
        return self.fetch.most_at_once(self.limit(FETCH, user, client_id)) if self.in_use(FETCH) else None

    def _metered(self, kind: str, user: str, client_id: str) -> Metered:
        return self._clients.get((kind, user, client_id)) or self._look_up(kind, user, client_id)

    def _look_up(self, kind: str, user: str, client_id: str) -> Metered:
        """The meter of a client; remembered until a quota changes."""
        if len(self._clients) >= MOST_KNOWN:
            self._clients.clear()
        table: QuotaTable = self._managers[kind].table
        key = table.key(user, client_id)
        found = Metered(self._home(kind, key), table.limit(key), MeterKey(kind, *key))
        if len(client_id) <= LONGEST_KNOWN and table.remembers:
            self._clients[kind, user, client_id] = found
        return found

    def _home(self, kind: str, key: Key) -> int:
        return home_of("\0".join((kind, *key)), self._shards)

    # Deciding

    def decide(self, kind: str, user: str, client_id: str, amount: float, *, strict: bool, now_ms: int) -> Decision:
        """Records `amount` in the sensor here, and answers by Kafka's arithmetic; a negative one takes back."""
        if kind == FETCH and amount < 0:
            self.fetch.take_back(user, client_id, -amount, now_ms=now_ms)
            return Decision(True, 0, (amount,))
        manager = self._managers[kind]
        charged: Charged
        if kind == MUTATION:
            charged = manager.record(user, client_id, amount, strict=strict, now_ms=now_ms)
            if charged.accepted and (client := manager.table.key(user, client_id)) in manager.sensors:
                self._mutation_rates.setdefault(client, Rate(manager.window)).record(amount, now_ms=now_ms)
        else:
            charged = manager.record(user, client_id, amount, now_ms=now_ms)
        accepted, throttle_ms = charged
        if throttle_ms:
            key = manager.table.key(user, client_id)
            if key in manager.sensors:
                average = self._throttles.setdefault((kind, *key), Average(manager.window))
                average.record(throttle_ms, now_ms=now_ms)
        if not accepted:
            return Decision(False, throttle_ms, ())
        units = manager.units(amount)
        return Decision(True, throttle_ms, (units, -units) if kind == FETCH and throttle_ms else (units,))

    def insert(self, place: MeterKey, amount: float, *, at_ms: int, now_ms: int) -> None:
        """Counts what another shard recorded under a key."""
        self._managers[place.kind].insert(place[1:], amount, at_ms=at_ms, now_ms=now_ms)

    def expire(self, most: int = EXPIRED_AT_ONCE) -> None:
        """Drops sensors of which nothing counts, as Kafka does; looks at `most` of them, in turn (unused_sensors_are_dropped)."""
        now_ms, looked = self._now_ms(), 0
        for kind, key in itertools.islice(self._turn, most):
            looked += 1
            idle_ms = IDLE_MS if self._home(kind, key) == self._me else self.keep_ms[kind]
            self._managers[kind].expire_one(key, now_ms=now_ms, idle_ms=idle_ms)
        if looked < most:
            self._turn = self._sensors()
        for manager in self._managers.values():
            manager.places.drop_shared(now_ms=now_ms)

    def is_kept(self, place: MeterKey) -> bool:
        """True if a key has a sensor of its own."""
        return place[1:] in self._managers[place.kind].sensors

    def _dropped(self, kind: str, key: Key) -> None:
        self._throttles.pop((kind, *key), None)
        if kind == MUTATION:
            self._mutation_rates.pop(key, None)

    def sensors(self) -> SensorCounts:
        """The use of the places for sensors here."""
        places = [manager.places for manager in self._managers.values()]
        sharing = [kind for kind, manager in self._managers.items() if manager.places.is_sharing]
        return SensorCounts(sum(len(each.own) for each in places), sum(each.evicted for each in places), sharing)

    def _sensors(self) -> Iterator[tuple[str, Key]]:
        for kind, manager in self._managers.items():
            for key in list(manager.sensors):
                yield kind, key

    # Showing

    def rates_here(self, user: str, client_id: str) -> dict[str, float]:
        """The present rate of each kind this client is metered for at home here, per second."""
        now_ms = self._now_ms()
        found = {}
        for kind in KINDS:
            table: QuotaTable = self._managers[kind].table
            if not table.in_use or self._home(kind, table.key(user, client_id)) != self._me:
                continue
            if kind == MUTATION:
                rate = self._mutation_rates.get(table.key(user, client_id))
                found[kind] = 0.0 if rate is None else rate.peek(now_ms=now_ms)
            else:
                found[kind] = self._managers[kind].rate(user, client_id, now_ms=now_ms)
        return found

    def record_exempt(self, handler_ms: float) -> None:
        """Handler time of a request that no quota applies to; measured while request quotas are in use, as in Kafka."""
        if self.request.table.in_use:
            self._exempt.record(handler_ms / 10, now_ms=self._now_ms())

    def exempt_percent(self) -> float | None:
        """The handler time of exempt requests here, in percent of one thread; None while no request quota is in use."""
        return self._exempt.peek(now_ms=self._now_ms()) if self.request.table.in_use else None

    def mutation_rates(self, most: int) -> list[tuple[str, str, float]]:
        """(user, client-id, mutations per second) of at most `most` sensors at home here."""
        now_ms = self._now_ms()
        return [
            (user, client_id, rate.peek(now_ms=now_ms))
            for (user, client_id), rate in itertools.islice(self._at_home(MUTATION, self._mutation_rates), most)
        ]

    def describe(self, most: int) -> list[tuple[str, str, str, float, float | None]]:
        """(kind, user, client-id, rate or tokens left, average throttle in ms) of at most `most` sensors at home here."""
        now_ms = self._now_ms()
        rows: list[tuple[str, str, str, float, float | None]] = []
        for kind in KINDS:
            manager = self._managers[kind]
            for (user, client_id), sensor in itertools.islice(self._at_home(kind, manager.sensors), most - len(rows)):
                if kind == MUTATION:
                    limit = manager.table.limit((user, client_id))
                    value = 0.0 if limit is None else sensor.peek(limit, now_ms=now_ms)
                else:
                    value = sensor.peek(now_ms=now_ms)
                throttles = self._throttles.get((kind, user, client_id))
                rows.append((kind, user, client_id, value, throttles.measure(now_ms=now_ms) if throttles else None))
        return rows

    def sensor_keys(self) -> Iterator[tuple[str, Key]]:
        """(kind, key) of every sensor here at the time of the call; some may be dropped before their turn."""
        return self._sensors()

    def use(self, kind: str, key: Key) -> QuotaUse | None:
        """The present use of the quota of a key; None: it has none, or is not metered at home here."""
        manager, now_ms = self._managers[kind], self._now_ms()
        measured = (self._mutation_rates if kind == MUTATION else manager.sensors).get(key)
        limit = manager.table.limit(key)
        if limit is None or measured is None or self._home(kind, key) != self._me:
            return None
        throttles = self._throttles.get((kind, *key))
        throttle_ms = None if throttles is None else throttles.measure(now_ms=now_ms)
        return QuotaUse(kind, *key, measured.peek(now_ms=now_ms), limit, throttle_ms)

    def _at_home(self, kind: str, by_key: dict[Key, Any]) -> Iterator[tuple[Key, Any]]:
        return (each for each in by_key.items() if self._home(kind, each[0]) == self._me)
