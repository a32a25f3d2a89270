"""Client quotas across the shards of a broker: where each client is metered, and what a request is charged.

Each (user, client-id) that is metered under one key has one sensor, at the home of that key. Every other shard asks the
home for each request it charges, so a client on many connections of many shards is limited as one, to the byte. No
grants are handed out ahead: a request that is charged is about to be answered, and a call to another process is small
beside it, while a grant would have to be taken back before the throttle that is reported could be the right one. All that
a pass of the loop charges at one home is one call.

Q1  While no quota of a kind was ever set, a request costs one look at a flag.
Q2  The sensor of a key lives on one shard only. A shard that starts again begins with empty sensors, as a broker does.
Q3  A changed quota holds for the first request charged after the change has returned.
Q4  A sensor that was not used for an hour is dropped at the next turn over all sensors. A turn looks at EXPIRED_AT_ONCE of
    them at a time, so that it never stops the loop for long.
Q5  Everything that is kept by the names of clients is bounded: sensors by shards/limits/sensor_table.py, what is told of a
    client with its sensor, look-ups by MOST_KNOWN. A name in a call to a home is at most LONGEST_KNOWN characters long.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from shards.config.image import ClusterImage
from shards.errors import DeadlineExceeded, PeerLost
from shards.limits.average import Average
from shards.limits.client_quota_managers import (
    FETCH,
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
from shards.limits.rate import DEFAULT_WINDOW, Rate, Window
from shards.limits.short_names import LONGEST_KNOWN, short_name
from shards.mesh.deferred import Deferred, MaybeDeferred
from shards.tokens.homes import home_of

KINDS: Final = (PRODUCE, FETCH, REQUEST, MUTATION)
_METHOD = "charge"
EXPIRED_AT_ONCE: Final = 2000
MOST_IN_A_CALL: Final = 500
"""Charges: with the longest names of clients they are far from the length of a frame."""

Call = Callable[..., Deferred[Any]]
"""mesh.call: (peer, method, *args) -> value."""

_Asked = tuple[Deferred["RecordedCharge"], tuple[str, str, str, float, bool]]
"""Who waits, and for what: kind, user, client-id, amount, strict."""

_Client = tuple[int, float | None]
"""The shard at which a client is metered, and its quota."""


class RecordedCharge(NamedTuple):
    """A Charged, and when its home recorded it (ms); 0: nothing was recorded."""

    accepted: bool
    throttle_ms: int
    at_ms: int


class SensorCounts(NamedTuple):
    """Sensors that are kept, how many made room for others, and the kinds of quota of which clients share sensors now."""

    kept: int
    evicted: int
    sharing: list[str]


NOTHING_RECORDED: Final = RecordedCharge(True, 0, 0)


class ShardedQuotas:
    """The sensors at home here, and calls to the homes of the others. `now_ms()` is the machine's monotonic clock; `touch()` has
    flush() called soon, at the end of a pass."""

    def __init__(
        self,
        me: int,
        shards: int,
        image: ClusterImage,
        *,
        call: Call,
        now_ms: Callable[[], int],
        touch: Callable[[], None],
    ) -> None:
        self._me = me
        self._shards = shards
        self._image = image
        self._call = call
        self._now_ms = now_ms
        self._touch = touch
        self._asked: dict[int, list[_Asked]] = {}  # what this pass charges at each home
        self._known: dict[str, dict[Any, float]] = {kind: {} for kind in KINDS}
        self._clients: dict[tuple[str, str, str], _Client] = {}  # what `_look_up` found in this version
        self._throttles: dict[tuple[str, str, str], Average] = {}
        self._mutation_rates: dict[tuple[str, str], Rate] = {}
        self._began = False
        self._turn = self._sensors()
        self._build(DEFAULT_WINDOW, DEFAULT_WINDOW)

    def _build(self, window: Window, mutations: Window) -> None:
        self.produce = ProduceQuotaManager(window=window, dropped=partial(self._dropped, PRODUCE))
        self.fetch = FetchQuotaManager(window=window, dropped=partial(self._dropped, FETCH))
        self.request = ClientRequestQuotaManager(window=window, dropped=partial(self._dropped, REQUEST))
        self.mutation = ControllerMutationQuotaManager(window=mutations, dropped=partial(self._dropped, MUTATION))
        self._exempt = Rate(window)
        self._managers: dict[str, Any] = {
            PRODUCE: self.produce,
            FETCH: self.fetch,
            REQUEST: self.request,
            MUTATION: self.mutation,
        }

    def serve_on(self, serve: Callable[[str, Callable[..., Any]], None]) -> None:
        """Offers the sensors at home here to the other shards."""
        serve(_METHOD, lambda peer, charges: [self._charge_here(*each) for each in charges])

    def reset(self) -> None:
        """Forgets what every client used, and which levels of quotas were ever set, as a broker that starts."""
        self._began = False
        self._known = {kind: {} for kind in KINDS}
        self._throttles.clear()
        self._mutation_rates.clear()
        self.image_changed()

    def image_changed(self) -> None:
        """Takes over the quotas of the image's version (Q3); the first time, the windows too, which never change."""
        if not self._began:
            self._began = True
            windows = [
                Window(
                    self._image.get(f"{whose}quota.window.num"),
                    1000 * self._image.get(f"{whose}quota.window.size.seconds"),
                )
                for whose in ("", "controller.")
            ]
            self._build(*windows)
        self._clients.clear()
        for kind in KINDS:
            now = {
                entity: quotas[kind]
                for entity, quotas in self._image.quotas.items()
                if kind in quotas and entity[0][0] != "ip"
            }
            before, table = self._known[kind], self._managers[kind].table
            for entity in before.keys() | now.keys():
                if before.get(entity) != now.get(entity):
                    table.update(dict(entity), now.get(entity))
            self._known[kind] = now

    def in_use(self, kind: str) -> bool:
        """Whether any client is metered for this kind."""
        table: QuotaTable = self._managers[kind].table
        return table.in_use

    def limit(self, kind: str, user: str, client_id: str) -> float | None:
        """The quota that holds for a client; None: it has none."""
        return (self._clients.get((kind, user, client_id)) or self._look_up(kind, user, client_id))[1]

    def _look_up(self, kind: str, user: str, client_id: str) -> _Client:
        """Where a client is metered, and its quota; remembered until a quota changes."""
        if len(self._clients) >= MOST_KNOWN:
            self._clients.clear()
        table: QuotaTable = self._managers[kind].table
        found = self._home(kind, table, user, client_id), table.limit(table.key(user, client_id))
        if len(client_id) <= LONGEST_KNOWN:
            self._clients[kind, user, client_id] = found
        return found

    def charge(
        self, kind: str, user: str, client_id: str, amount: float, *, strict: bool = False
    ) -> MaybeDeferred[RecordedCharge]:
        """Records `amount` (bytes, handler ms, partitions); the answer comes later when its home is elsewhere."""
        table: QuotaTable = self._managers[kind].table
        if not table.in_use:
            return NOTHING_RECORDED
        home, _ = self._clients.get((kind, user, client_id)) or self._look_up(kind, user, client_id)
        if home == self._me:
            return self._charge_here(kind, user, client_id, amount, strict)
        return self._charge_there(home, kind, user, client_id, amount, strict)

    def rates_here(self, user: str, client_id: str) -> dict[str, float]:
        """The present rate of each kind this client is metered for at home here, per second."""
        now_ms = self._now_ms()
        found = {}
        for kind in KINDS:
            table: QuotaTable = self._managers[kind].table
            if not table.in_use or self._home(kind, table, user, client_id) != self._me:
                continue
            if kind == MUTATION:
                rate = self._mutation_rates.get(table.key(user, client_id))
                found[kind] = 0.0 if rate is None else rate.peek(now_ms=now_ms)
            else:
                found[kind] = self._managers[kind].rate(user, client_id, now_ms=now_ms)
        return found

    def expire(self, most: int = EXPIRED_AT_ONCE) -> None:
        """Drops sensors that were not used for an hour, as Kafka does; looks at `most` of them, in turn (Q4)."""
        now_ms, looked = self._now_ms(), 0
        for kind, key in itertools.islice(self._turn, most):
            looked += 1
            self._managers[kind].expire_one(key, now_ms=now_ms)
        if looked < most:
            self._turn = self._sensors()
        for manager in self._managers.values():
            manager.places.drop_shared(now_ms=now_ms)

    def _dropped(self, kind: str, key: Key) -> None:
        self._throttles.pop((kind, *key), None)
        if kind == MUTATION:
            self._mutation_rates.pop(key, None)

    def sensors(self) -> SensorCounts:
        """How full the places for sensors are here."""
        places = [manager.places for manager in self._managers.values()]
        sharing = [kind for kind, manager in self._managers.items() if manager.places.is_sharing]
        return SensorCounts(sum(len(each.own) for each in places), sum(each.evicted for each in places), sharing)

    def _sensors(self) -> Iterator[tuple[str, tuple[str, str]]]:
        for kind, manager in self._managers.items():
            for key in list(manager.sensors):
                yield kind, key

    def most_at_once(self, user: str, client_id: str) -> float | None:
        """Bytes beyond which a single fetch would surely be throttled; None: any number."""
        return self.fetch.most_at_once(self.limit(FETCH, user, client_id)) if self.fetch.table.in_use else None

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
            for (user, client_id), rate in itertools.islice(self._mutation_rates.items(), most)
        ]

    def describe(self, most: int) -> list[tuple[str, str, str, float, float | None]]:
        """(kind, user, client-id, rate or tokens left, average throttle in ms) of at most `most` sensors at home here."""
        now_ms = self._now_ms()
        told: list[tuple[str, str, str, float, float | None]] = []
        for kind in KINDS:
            manager = self._managers[kind]
            for (user, client_id), sensor in itertools.islice(manager.sensors.items(), most - len(told)):
                if kind == MUTATION:
                    limit = manager.table.limit((user, client_id))
                    value = 0.0 if limit is None else sensor.peek(limit, now_ms=now_ms)
                else:
                    value = sensor.peek(now_ms=now_ms)
                throttles = self._throttles.get((kind, user, client_id))
                told.append((kind, user, client_id, value, throttles.measure(now_ms=now_ms) if throttles else None))
        return told

    def _home(self, kind: str, table: QuotaTable, user: str, client_id: str) -> int:
        return home_of("\0".join((kind, *table.key(user, client_id))), self._shards)

    def _charge_here(self, kind: str, user: str, client_id: str, amount: float, strict: bool) -> RecordedCharge:
        now_ms = self._now_ms()
        if kind == FETCH and amount < 0:
            self.fetch.take_back(user, client_id, -amount, now_ms=now_ms)
            return NOTHING_RECORDED
        manager = self._managers[kind]
        charged: Charged
        if kind == MUTATION:
            charged = manager.record(user, client_id, amount, strict=strict, now_ms=now_ms)
            if charged.accepted:
                rates, client = self._mutation_rates, manager.table.key(user, client_id)
                if client in manager.sensors:
                    rates.setdefault(client, Rate(manager.window)).record(amount, now_ms=now_ms)
        else:
            charged = manager.record(user, client_id, amount, now_ms=now_ms)
        if charged.throttle_ms:
            key = manager.table.key(user, client_id)
            if key in manager.sensors:
                average = self._throttles.setdefault((kind, *key), Average(manager.window))
                average.record(charged.throttle_ms, now_ms=now_ms)
        return RecordedCharge(charged.accepted, charged.throttle_ms, now_ms)

    def _charge_there(
        self, home: int, kind: str, user: str, client_id: str, amount: float, strict: bool
    ) -> Deferred[RecordedCharge]:
        answer: Deferred[RecordedCharge] = Deferred()
        asked = self._asked.get(home)
        if asked is None:
            asked = self._asked[home] = []
        asked.append((answer, (kind, user, short_name(client_id), amount, strict)))
        if len(asked) == 1:
            self._touch()
        elif len(asked) >= MOST_IN_A_CALL:
            self._ask(home)
        return answer

    def flush(self) -> None:
        """Sends what was charged at other homes; at the end of each pass, before the mesh writes."""
        while self._asked:
            self._ask(next(iter(self._asked)))

    def _ask(self, home: int) -> None:
        asked = self._asked.pop(home)
        told = self._call(home, _METHOD, [charge for _, charge in asked])
        told.add_callback(partial(_came, [answer for answer, _ in asked]))


def _came(answers: list[Deferred[RecordedCharge]], told: Deferred[list[list[Any]]]) -> None:
    """If a home goes away, its sensors are gone with it: its clients are not throttled."""
    try:
        recorded = [RecordedCharge(*each) for each in told.result()]
    except (PeerLost, DeadlineExceeded):
        recorded = [NOTHING_RECORDED] * len(answers)
    except Exception as error:
        for answer in answers:
            answer.fail(error)
        return
    for answer, charge in zip(answers, recorded, strict=True):
        answer.resolve(charge)
