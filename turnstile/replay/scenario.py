"""A replay's scenario: what each event does to the broker being replayed.

delays_end_before_events  A delay that ends at or before an event's `at` ends before the event.
refused_changes_are_not_made  A change that a cluster would refuse (`max.connections` of 0, a quota of 0) is not made: the
    old value stays, and ChangeRefused says why. Settings are read, checked and interpreted by ConnectionLimits, quotas by
    quota_entities, as in a cluster. `quota.window.*` can't change once there was a connect or a record.
one_listener_without_setup  Without a `setup` there is one listener, PLAINTEXT; a connect may leave `listener` out where
    there is only one. `ssl` of a setup names the listeners with TLS.
closed_undecided_are_decided  A connection closed by its client before it was decided is decided all the same, and closed in
    that instant. Closing one that was refused, or that the broker closed (`replay_gate.py`,
    inter_broker_evicts_the_idle), does nothing.
time_runs_on  After the last line time runs on. A connect that still waits is `waiting`, with the cap its listener waits
    for.
users_log_in_at_once  A connect with a `user` logs in at the instant at which it is admitted; without one it has no login, and no
    limit of a user holds for it.
mutations_are_strict  A `mutation` without `strict` is strict. An absent user or client_id is an empty one.
"""

from collections.abc import Callable
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from shards.limits.client_quota_managers import (
    FETCH,
    MUTATION,
    PRODUCE,
    REQUEST,
    WITHIN,
    ClientRequestQuotaManager,
    ControllerMutationQuotaManager,
    FetchQuotaManager,
    ProduceQuotaManager,
)
from shards.limits.connection_limits import READ, ConnectionLimits
from shards.limits.ip_quotas import IpQuotaTable
from shards.limits.precedence import QuotaTable
from shards.limits.quota_entities import entity_of, quota_of
from shards.limits.replay_gate import ADMITTED, WAITING, Acceptor, IncomingConnection, ReplayGate
from shards.settings.addresses import IPV6_BITS, counted_address
from shards.settings.config_def import LISTENER_PREFIX, broker_setting, canonical_name, listener_of
from shards.settings.config_types import text_of
from shards.settings.errors import ConfigInvalid
from shards.settings.ranges import LONG_MAX

_QUOTA_OF = {"produce": PRODUCE, "fetch": FETCH, "request": REQUEST, "mutation": MUTATION}
_LATEST_MS = 2**53
_MOST_REMEMBERED = 100_000
_WITHIN = '{"outcome":"accepted","throttle_ms":0}'

ScenarioEvent = dict[str, Any]


class ChangeRefused(Exception):
    """A change that a cluster would refuse (refused_changes_are_not_made)."""


class Pending:
    """A connect whose answer is not there yet."""

    __slots__ = ("connection", "name")

    def __init__(self, name: str | int, connection: IncomingConnection) -> None:
        self.name = name
        self.connection = connection

    def text(self) -> str | None:
        """The answer; None while undecided."""
        return None if self.connection.outcome is None else _answer(self.name, self.connection)


class ReplayScenario:
    """The broker being replayed: made of what was set until the first connect or record, then changed live."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._limits = ConnectionLimits()
        self._listeners: tuple[str, ...] = ("PLAINTEXT",)
        self._inter_broker: str | None = None
        self._ssl: tuple[str, ...] = ()
        self._was_set_up = False
        self._own_ip_quotas = IpQuotaTable()
        self.ip_quotas = self._own_ip_quotas
        """The quotas of the addresses that clients count as, from the first connect on."""
        self._tables = {key: QuotaTable() for key in _QUOTA_OF.values()}
        self._gate: ReplayGate | None = None
        self._meters: dict[str, ProduceQuotaManager | ControllerMutationQuotaManager] = {}
        self._connections: dict[object, IncomingConnection] = {}
        self._address = lru_cache(_MOST_REMEMBERED)(_address)
        self._doing: dict[str, Callable[[ScenarioEvent, int], str | Pending | None]] = {
            "connect": self._connect,
            "close": self._close,
            "record": self._record,
            "set": self._set,
            "quota": self._quota,
            "setup": self._setup,
        }

    @property
    def limits(self) -> ConnectionLimits:
        """The limits by the settings of this instant."""
        return self._limits

    def take(self, event: ScenarioEvent) -> "str | Pending | None":
        """One line's event, and its answer if it has one. ValueError if it makes no sense, ChangeRefused as
        refused_changes_are_not_made says."""
        if event.__class__ is not dict:
            raise ValueError("it is not a JSON object")
        now_ms = event.get("at")
        if now_ms.__class__ is not int:
            now_ms = _whole_ms(now_ms)
        if not self._now_ms <= now_ms <= _LATEST_MS:
            raise ValueError(f'"at" is {now_ms}, after {self._now_ms} on an earlier line; it must not fall')
        self._now_ms = now_ms
        gate = self._gate
        if gate is not None and gate.due:
            gate.advance(now_ms=now_ms)
        try:
            do = self._doing[event["do"]]
        except (KeyError, TypeError):
            raise ValueError(f'"do" is {event.get("do")!r}; it must be one of {", ".join(self._doing)}') from None
        return do(event, now_ms)

    def finish(self) -> None:
        """Let time run on (time_runs_on)."""
        if self._gate is not None:
            self._gate.finish()

    def _connect(self, event: ScenarioEvent, now_ms: int) -> str | Pending:
        gate = self._gate or self._start()
        name = event.get("id")
        listener: Any = event.get("listener")
        text: object = event.get("ip")
        try:
            acceptor = gate.acceptors[listener]
        except (KeyError, TypeError):
            acceptor = self._acceptor(gate, listener)
        try:
            ip = self._address(text, self._limits.ipv6_prefix)
        except TypeError:  # the value is a list or an object
            ip = _address(text, IPV6_BITS)
        if name.__class__ is not str and name.__class__ is not int:
            raise ValueError(f'"id" is {name!r}; it must be a string or a whole number')
        user = event.get("user") or None
        if user is not None and user.__class__ is not str:
            raise ValueError(f'"user" is {user!r}; it must be a string')
        earlier = self._connections.get(name)
        if earlier is not None and (earlier.open or earlier.outcome is None):
            raise ValueError(f"connection {name!r} is already there")
        self._connections[name] = connection = IncomingConnection(acceptor, ip, user)
        gate.connect(connection, now_ms=now_ms)
        return _answer(name, connection) if connection.outcome is not None else Pending(name, connection)

    def _close(self, event: ScenarioEvent, now_ms: int) -> None:
        name = event.get("id")
        try:
            connection = self._connections[name]
        except (KeyError, TypeError):
            raise ValueError(f"there is no connection {name!r} to close") from None
        if connection.outcome is not None:
            del self._connections[name]
        assert self._gate is not None
        self._gate.close(connection, now_ms=now_ms)

    def _record(self, event: ScenarioEvent, now_ms: int) -> str:
        if not self._meters:
            self._start_meters()
        kind = event.get("quota")
        amount = event.get("amount")
        if (amount.__class__ is not int and amount.__class__ is not float) or not 0 <= amount <= LONG_MAX:
            raise ValueError(f'"amount" is {amount!r}; it must be a number that is not negative')
        user = event.get("user") or ""
        client_id = event.get("client_id") or ""
        if user.__class__ is not str or client_id.__class__ is not str:
            raise ValueError('"user" and "client_id" must be strings')
        meter = self._meters.get(kind) if kind.__class__ is str else None
        if meter is None:
            raise ValueError(f'"quota" is {kind!r}; it must be one of {", ".join(_QUOTA_OF)}')
        if isinstance(meter, ControllerMutationQuotaManager):
            strict = event.get("strict", True)
            if strict.__class__ is not bool:
                raise ValueError(f'"strict" is {strict!r}; it must be true or false')
            charged = meter.record(user, client_id, amount, strict=strict, now_ms=now_ms)
        else:
            charged = meter.record(user, client_id, amount, now_ms=now_ms)
        if charged is WITHIN:
            return _WITHIN
        outcome = "accepted" if charged.accepted else "refused"
        return f'{{"outcome":"{outcome}","throttle_ms":{charged.throttle_ms}}}'

    def _set(self, event: ScenarioEvent, now_ms: int) -> None:
        name = event.get("name")
        if not isinstance(name, str):
            raise ValueError(f'"name" is {name!r}; it must be the name of a setting')
        value = event.get("value")
        try:
            setting = broker_setting(canonical_name(name))
        except ConfigInvalid:
            raise ValueError(f"{name} is not a setting that limits connections") from None
        if setting.name not in READ:
            raise ValueError(f"{name} is not a setting that limits connections")
        if not setting.dynamic and (self._gate is not None or self._meters):
            raise ChangeRefused(f"{name} is read when a broker starts; set it before the first connect or record")
        known = self._listeners if self._was_set_up or self._gate is not None else ()
        try:
            self._limits = self._limits.with_change(name, None if value is None else text_of(value), known)
        except ConfigInvalid as fault:
            raise ChangeRefused(str(fault)) from None
        if self._gate is not None:
            self._gate.configure(self._limits, now_ms=now_ms)

    def _quota(self, event: ScenarioEvent, now_ms: int) -> None:
        names, key, value = event.get("entity"), event.get("key"), event.get("value")
        if not isinstance(names, dict) or not all(name is None or isinstance(name, str) for name in names.values()):
            raise ValueError(f'"entity" is {names!r}; it must be an object such as {{"user": "alice"}}')
        if not (value is None or (isinstance(value, int | float) and not isinstance(value, bool))):
            raise ValueError(f'"value" is {value!r}; it must be a number, or null to remove the quota')
        if not isinstance(key, str):
            raise ValueError(f'"key" is {key!r}; it must be the name of a quota')
        try:
            entity = entity_of(names)
            # An entity and a key that never go together make no sense; a value that can't be is refused like any other.
            quota_of(entity, key, 1)
        except ConfigInvalid as fault:
            raise ValueError(str(fault)) from None
        try:
            quota = None if value is None else quota_of(entity, key, value)
        except ConfigInvalid as fault:
            raise ChangeRefused(str(fault)) from None
        if entity[0][0] == "ip":
            self._quota_of_address(entity[0][1], quota)
        else:
            self._tables[key].update(dict(entity), quota)

    def _quota_of_address(self, ip: str | None, quota: float | None) -> None:
        """Sets the quota of an address; of several addresses that count as one, the smallest quota holds."""
        prefix = self._limits.ipv6_prefix
        self._own_ip_quotas.update(ip, quota)
        if self.ip_quotas is not self._own_ip_quotas:
            counted = None if ip is None else counted_address(ip, prefix)
            self.ip_quotas.update(counted, self._own_ip_quotas.counted_by(prefix).by_ip.get(counted))

    def _setup(self, event: ScenarioEvent, now_ms: int) -> None:
        if self._was_set_up or self._gate is not None:
            raise ValueError("setup comes once, before the first connect")
        listeners, inter_broker = event.get("listeners"), event.get("inter_broker")
        if not isinstance(listeners, list) or not all(isinstance(name, str) and name for name in listeners):
            raise ValueError(f'"listeners" is {listeners!r}; it must be a list of names')
        if not listeners or len({name.lower() for name in listeners}) < len(listeners):
            raise ValueError('"listeners" must name at least one listener, and each one once')
        if inter_broker is not None and inter_broker not in listeners:
            raise ValueError(f'"inter_broker" is {inter_broker!r}, which is none of the listeners')
        ssl = event.get("ssl", [])
        if not isinstance(ssl, list) or not all(name in listeners for name in ssl):
            raise ValueError(f'"ssl" is {ssl!r}; it must be a list of those listeners that have TLS')
        lower = {name.lower() for name in listeners}
        strangers = [name for name in self._limits.given if name.startswith(LISTENER_PREFIX)
                     and listener_of(name) not in lower]  # fmt: skip
        if strangers:
            raise ValueError(f"{strangers[0]} is set, and {listener_of(strangers[0])} is none of the listeners")
        self._listeners = tuple(listeners)
        self._inter_broker = inter_broker
        self._ssl = tuple(ssl)
        self._was_set_up = True

    def _start(self) -> ReplayGate:
        self._gate = gate = ReplayGate(self._limits, self._listeners, inter_broker=self._inter_broker, ssl=self._ssl)
        self.ip_quotas = self._own_ip_quotas.counted_by(self._limits.ipv6_prefix)
        gate.ip_quotas = self.ip_quotas
        return gate

    def _start_meters(self) -> None:
        tables, window = self._tables, self._limits.window
        self._meters = {
            "produce": ProduceQuotaManager(tables[PRODUCE], window=window),
            "fetch": FetchQuotaManager(tables[FETCH], window=window),
            "request": ClientRequestQuotaManager(tables[REQUEST], window=window),
            "mutation": ControllerMutationQuotaManager(tables[MUTATION], window=self._limits.mutation_window),
        }

    def _acceptor(self, gate: ReplayGate, listener: object) -> Acceptor:
        if listener is None and len(gate.acceptors) == 1:
            return next(iter(gate.acceptors.values()))
        acceptor = gate.acceptors.get(listener) if isinstance(listener, str) else None
        if acceptor is None:
            raise ValueError(f'"listener" is {listener!r}; it must be one of {", ".join(gate.acceptors)}')
        return acceptor


def _address(text: object, ipv6_prefix: int) -> str:
    """The address that a client counts as. ValueError for what is no address."""
    if not isinstance(text, str):
        raise ValueError(f'"ip" is {text!r}; it must be an IP address')
    return counted_address(text, ipv6_prefix)


def _answer(name: str | int, connection: IncomingConnection) -> str:
    shown = quoted(name) if isinstance(name, str) else str(name)
    if connection.outcome == ADMITTED:
        return f'{{"id":{shown},"outcome":"admitted","at":{connection.at_ms},"reason":null}}'
    at = "null" if connection.outcome == WAITING else connection.at_ms
    return f'{{"id":{shown},"outcome":"{connection.outcome}","at":{at},"reason":"{connection.reason}"}}'


def _whole_ms(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ValueError(f'"at" is {value!r}; it must be a whole number of milliseconds')
