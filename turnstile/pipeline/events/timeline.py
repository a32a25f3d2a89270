"""Which configuration versions could be in force when, and what each of them allows. Pure Python over a few config events.

A change is pushed, applied by one shard after the other, and acknowledged. In between both the old and the new limits are
legitimate, so at an instant the versions in force are all from the last acknowledged one to the newest that any process
can have known; the widest of their caps is the one that must hold.

T1  version v can be in force from when the coordinator stored it; where the journal does not tell, from its first trace
T2  no version below v is in force any more once the coordinator has journaled that every shard acknowledged v
T3  a version that is not in the journal, or that follows on one which isn't, may allow anything
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, NamedTuple

from shards.limits.connection_limits import READ, ConnectionLimits
from shards.limits.ip_quotas import IpQuotaTable
from shards.limits.quota_entities import CLIENT_KEYS, Entity, entity_of_key
from shards.limits.rate import DEFAULT_WINDOW
from shards.settings.broker_config import given
from shards.settings.errors import ConfigInvalid

UNLIMITED = 1 << 62
STATIC, SETTING, QUOTA, OBSERVED = "static", "setting", "quota", "observed"


class ConfigEvent(NamedTuple):
    """One `config` event of the journal. `at_ns` is mono_ns; broker -1 is the coordinator."""

    version: int
    at_ns: int
    broker: int
    detail: str


class VersionLimits:
    """What one version says, for one broker; `limits` are its settings, read as the broker read them."""

    def __init__(
        self, limits: ConnectionLimits, ip_quotas: IpQuotaTable, inter_broker: str | None = None, listeners: int = 1
    ) -> None:
        """`listeners`: how many the broker has; the inter-broker one is special only beside another."""
        self.limits = limits
        self.ip_quotas = ip_quotas
        self.inter_broker = inter_broker if listeners > 1 else None

    def cap(self, kind: str, key: str, *, refusing: bool = True, slots: bool = True) -> int:
        """The cap of a pool: kind broker, listener or ip; UNLIMITED when it has none.

        The broker's is asked with the listener as key: the inter-broker one is exempt from max.connections (KIP-402).
        Without `slots` max.connections stops no connection, without `refusing` kafka_connections_max stops none.
        """
        limits = self.limits
        if kind != "broker":
            cap = limits.rule_of(f"{kind}:{key}").cap
        else:
            shared = limits.waiting.cap if slots and key != self.inter_broker else None
            above = limits.refusing.cap if refusing else None
            cap = min((each for each in (above, shared) if each is not None), default=None)
        return UNLIMITED if cap is None else cap

    def rate(self, kind: str, key: str) -> float:
        """New connections a second that a pool may have; infinite when it has no limit."""
        limits = self.limits
        if kind == "ip":
            rate = self.ip_quotas.quota(key)
        elif kind == "listener":
            rate = limits.rate_of(f"listener:{key}").rate
        elif kind == "core":  # the bucket of every address without one of its own
            rate = None if limits.core_overrides() else limits.core_rate.rate
        elif kind == "core_ip":
            rule = limits.core_rate_of(key)
            rate = None if rule == limits.core_rate else rule.rate
        else:
            rate = limits.rate_of("broker").rate
        return float("inf") if rate is None else rate

    def rates(self, kind: str) -> list[float]:
        """Every rate that this version sets for pools of a kind."""
        limits = self.limits
        if kind == "ip":
            return self.ip_quotas.quotas()
        if kind == "core_ip":
            return limits.core_overrides()
        if kind == "core":
            return [self.rate(kind, "")] if limits.core_rate.rate is not None else []
        rules = (
            [limits.rate_of("broker"), *limits.listener_rates()] if kind == "listener" else [limits.rate_of("broker")]
        )
        return [rule.rate for rule in rules if rule.rate is not None]


class VersionPeriod(NamedTuple):
    """From `start_ns` until the next period, the versions `versions` may be in force."""

    start_ns: int
    versions: tuple[int, ...]


class Timeline:
    """Built from config events and from when each version was first decided under."""

    def __init__(self, configs: Iterable[ConfigEvent], first_seen: Mapping[int, int], listeners: Iterable[str]) -> None:
        """`first_seen`: version -> the first mono_ns of any event that carries it. `listeners`: names that were seen."""
        ordered = sorted(configs, key=lambda event: event.at_ns)
        self.unknown: list[str] = []
        self._listeners = tuple(listeners)
        self._stopping = {"refusing": True, "slots": True}
        self._states = _states(ordered, self.unknown)
        self._limits: dict[tuple[int, int], VersionLimits] = {}
        self._own = _own_settings(self._states)
        self.versions = sorted(self._states)
        if not self.versions:
            self.unknown.append("there is no configuration in the journal, so no cap is known")
        self.acknowledged = [
            (event.at_ns, event.version) for event in ordered if event.broker < 0 and _is_acknowledged(event)
        ]
        self.stored: dict[int, int] = {}
        """Version -> the mono_ns at which the coordinator stored it, where it says so."""
        for event in ordered:
            if event.broker < 0 and not _is_acknowledged(event) and not _is_full(event):
                self.stored.setdefault(event.version, event.at_ns)
        missing = sorted(version for version in first_seen if version > 0 and version not in self._states)
        if missing and self.versions:
            self.unknown.append(f"what version {missing[0]} says is not in the journal")
            self._states.update((version, {}) for version in missing)  # T3
            self.versions = sorted(self._states)
        self.periods = self._periods(_started(ordered, first_seen, self.versions, self.stored))
        self._starts = [period.start_ns for period in self.periods]

    def period(self, at_ns: int) -> int:
        """The index of the period an instant is in; instants before the first belong to it."""
        return max(0, bisect_right(self._starts, at_ns) - 1)

    def limits(self, version: int, broker: int) -> VersionLimits:
        """What a version says for a broker. Values that a later release wrote, and so don't parse, are in `unknown`."""
        if broker not in self._own:
            broker = -1
        found = self._limits.get((version, broker))
        if found is None:
            found = self._limits[version, broker] = self._compute(version, broker)
        return found

    def observed_settings(self, version: int, broker: int) -> dict[str, str]:
        """The caps that a version observes on a broker instead of enforcing them, as records: "broker or nothing/name" -> text."""
        state = self._states.get(version, {})
        mine = ("/", f"{broker}/")
        return {key: text for (record, key), text in state.items() if record == OBSERVED and key.startswith(mine)}

    def allowed(self, period: int, broker: int, kind: str, key: str) -> int:
        """The widest cap of a pool that may be in force in a period."""
        if not self.periods:
            return UNLIMITED
        versions = self.periods[period].versions
        return max(self.limits(version, broker).cap(kind, key, **self._stopping) for version in versions)

    def changed(self, version: int) -> list[str]:
        """What a version sets that the one before it set otherwise, as `name old -> new`; empty where that one isn't known."""
        before, state = self._states.get(version - 1), self._states.get(version, {})
        if before is None:
            return []
        values = [(place, _in_force(before, place), _in_force(state, place)) for place in sorted({*before, *state})]
        return [f"{_named(*place)} {_shown(old)} -> {_shown(new)}" for place, old, new in values if old != new]

    def limits_over_time(self) -> dict[str, list[str]]:
        """Each limit of connections that any version sets, and its values in order; `none` where it is not set."""
        states = [self._states[version] for version in self.versions]
        places = sorted({_limit_place(place) for state in states for place in state if _is_limit(*place)})
        found = {}
        for place in places:
            values = [_shown(_in_force(state, place)) for state in states]
            found[_named(*place)] = [
                value for value, before in zip(values, [None, *values], strict=False) if value != before
            ]
        return found

    def unsettled(self, at_ns: int, version: int) -> list[int]:
        """The versions from the last that all shards had acknowledged at an instant up to `version`; none if that is unknown."""
        lowest = max((each for acknowledged_ns, each in self.acknowledged if acknowledged_ns < at_ns), default=None)
        return [] if lowest is None else [each for each in self.versions if lowest <= each <= version]

    def without_slots(self) -> "Timeline":
        """The same, but no broker's pool is limited by max.connections (KIP-402)."""
        return self._with(slots=False)

    def only_slots(self) -> "Timeline":
        """The same, but no broker's pool is limited by kafka_connections_max."""
        return self._with(refusing=False)

    def _with(self, **stopping: bool) -> "Timeline":
        other = copy(self)
        other._stopping = {**self._stopping, **stopping}
        return other

    @property
    def limits_slots(self) -> bool:
        """Whether any version has a max.connections, of a broker or of a listener."""
        each = [self.limits(version, broker).limits for version in self.versions for broker in self.brokers]
        return any(rule.cap is not None for limits in each for rule in (limits.waiting, *limits.listeners.values()))

    @property
    def protected(self) -> list[str]:
        """Names of inter-broker listeners that max.connections does not stop; none where no version sets that."""
        each = [self.limits(version, broker) for version in self.versions for broker in self.brokers]
        return self.inter_broker if any(one.limits.waiting.cap is not None for one in each) else []

    @property
    def inter_broker(self) -> list[str]:
        """Names of inter-broker listeners that are one of several."""
        each = [self.limits(version, broker) for version in self.versions for broker in self.brokers]
        return sorted({limits.inter_broker for limits in each if limits.inter_broker is not None})

    def allowed_rate(self, start_ns: int, end_ns: int, broker: int, kind: str, key: str) -> float:
        """The highest rate of a pool that may be in force at any time from start to end."""
        if not self.periods:
            return float("inf")
        span = self.periods[self.period(start_ns) : self.period(end_ns) + 1]
        versions = {version for period in span for version in period.versions}
        return max(self.limits(version, broker).rate(kind, key) for version in versions)

    def any_limit(self, kind: str, measure: str = "cap") -> bool:
        """Whether any version limits pools of this kind, on any broker."""
        each = [self.limits(version, broker) for version in self.versions for broker in self.brokers]
        if measure == "rate":
            return any(limits.rates(kind) for limits in each)
        if kind == "ip":
            return any(not one.limits.same_for_all_ips or one.limits.ip_default.cap is not None for one in each)
        keys = self._listeners if kind == "listener" else ("",)
        return any(limits.cap(kind, key) < UNLIMITED for limits in each for key in keys)

    @property
    def floor(self) -> list[tuple[int, int]]:
        """(when, version) of each acknowledgement that is of a higher version than all before it, in order."""
        highest, found = 0, []
        for at_ns, version in sorted(self.acknowledged):
            if version > highest:
                highest = version
                found.append((at_ns, version))
        return found

    def client_quotas(self, version: int) -> dict[str, dict[Entity, float]] | None:
        """The quotas of users and client ids that a version sets, by kind of quota; None where it is not in the journal."""
        state = self._states.get(version)
        if not state:
            return None
        found: dict[str, dict[Entity, float]] = {kind: {} for kind in CLIENT_KEYS}
        for (record, key), values in state.items():
            entity = entity_of_key(key) if record == QUOTA and isinstance(values, Mapping) else ()
            if entity and entity[0][0] != "ip":
                for kind in CLIENT_KEYS:
                    if kind in values:
                        found[kind][entity] = values[kind]
        return found

    @property
    def windows(self) -> list[tuple[int, int]]:
        """Samples and their size in ms, the longest first: several if a broker was started again with another window."""
        if not self.versions:
            return [(DEFAULT_WINDOW.samples, DEFAULT_WINDOW.size_ms)]
        each = [self.limits(version, broker).limits.window for version in self.versions for broker in self.brokers]
        windows = {(window.samples, window.size_ms) for window in each}
        return sorted(windows, key=lambda window: window[0] * window[1], reverse=True)

    def lowest_rate(self, kind: str) -> float:
        """A rate that no version's limit of this kind is below, so that most windows need no second look."""
        each = [self.limits(version, broker) for version in self.versions for broker in self.brokers]
        return min((rate for limits in each for rate in limits.rates(kind)), default=0.0)

    @property
    def brokers(self) -> list[int]:
        """Brokers with settings of their own, and one that stands for all others (-1)."""
        return [-1, *sorted(self._own)]

    def _periods(self, started: Mapping[int, int]) -> list[VersionPeriod]:
        instants = sorted({*started.values(), *(at_ns for at_ns, _ in self.acknowledged)})
        periods = []
        for instant in instants:
            lowest = max((version for at_ns, version in self.acknowledged if at_ns <= instant), default=0)
            known = [version for version in self.versions if started[version] <= instant]
            possible = tuple(version for version in known if version >= lowest) or tuple(known[-1:])
            periods.append(VersionPeriod(instant, possible))
        return periods

    def _compute(self, version: int, broker: int) -> VersionLimits:
        return self.read(version, broker)

    def read(self, version: int, broker: int, *, with_observed: bool = False) -> VersionLimits:
        """What a version says for a broker; `with_observed`: what it would say if the observed caps were set."""
        state = self._states.get(version, {})  # T3
        layers = {
            kind: {key: text for (record, key), text in state.items() if record == kind} for kind in (STATIC, SETTING)
        }

        def unreadable(fault: ConfigInvalid) -> None:
            self.unknown.append(f"version {version}: {fault}")

        more = self.observed_settings(version, broker) if with_observed else {}
        found = given(broker, layers[STATIC], {**layers[SETTING], **more}, unreadable)
        names = {*self._listeners, *_listener_names(str(found.get("listeners", "")))}
        inter_broker = found.get("inter.broker.listener.name")
        return VersionLimits(
            ConnectionLimits(found), _ip_quotas(state), None if inter_broker is None else str(inter_broker), len(names)
        )


def _is_limit(kind: str, key: str) -> bool:
    """Whether a record is a limit of connections, of all brokers, of one, or of a listener (`listener.name.x.max.connections`)."""
    if kind == QUOTA:
        return entity_of_key(key)[0][0] == "ip"
    name = key.partition("/")[2]
    return name in READ or (name.startswith("listener.name.") and any(name.endswith(f".{each}") for each in READ))


def _limit_place(place: tuple[str, str]) -> tuple[str, str]:
    """A setting's place stands for the command line's, too (`_in_force`)."""
    kind, key = place
    return (SETTING if kind == STATIC else kind, key)


def _named(kind: str, key: str) -> str:
    """A setting's name, or a quota's entity as `turnstile quota` takes it: `ip=<default>`."""
    if kind != "quota":
        return f"{'observed ' * (kind == OBSERVED)}{key.removeprefix('/')}"
    return ", ".join(f"{type_}={'<default>' if name is None else name}" for type_, name in entity_of_key(key))


def _shown(value: Any) -> str:
    """A setting's text, or a quota's numbers; `none` where nothing is set."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={number:g}" for name, number in sorted(value.items()))
    return "none" if value is None else str(value)


def _listener_names(listeners: str) -> list[str]:
    """`EXTERNAL://host:port,INTERNAL://...` -> the names."""
    return [each.partition("://")[0].strip() for each in listeners.split(",") if "://" in each]


def _states(ordered: list[ConfigEvent], unknown: list[str]) -> dict[int, dict[tuple[str, str], Any]]:
    """Version -> every limit record at it, from whole states and deltas."""
    whole: dict[int, dict[tuple[str, str], Any]] = {}
    deltas: dict[int, list[Any]] = {}
    for event in ordered:
        detail = json.loads(event.detail or "{}")
        if "changes" not in detail:
            continue
        if detail.get("full"):
            whole[event.version] = {(kind, key): value for kind, key, value in detail["changes"]}
        else:
            deltas.setdefault(event.version, detail["changes"])
    states: dict[int, dict[tuple[str, str], Any]] = {}
    before: dict[tuple[str, str], Any] = {}
    for version in sorted({*whole, *deltas}):
        if version in whole:
            before = whole[version]
        elif version - 1 not in states:
            unknown.append(f"what was set before version {version} is not in the journal")
            continue  # T3
        else:
            before = dict(before)
            for kind, key, value in deltas[version]:
                if value is None:
                    before.pop((kind, key), None)
                else:
                    before[kind, key] = value
        states[version] = before
    return states


def _in_force(state: Mapping[tuple[str, str], Any], place: tuple[str, str]) -> Any:
    """A value of a state, or what the command line says where nothing was set."""
    kind, key = place
    return state.get(place, state.get((STATIC, key)) if kind == SETTING else None)


def _own_settings(states: Mapping[int, Mapping[tuple[str, str], Any]]) -> set[int]:
    """Brokers with settings of their own."""
    prefixes = {
        key.partition("/")[0] for state in states.values() for kind, key in state if kind in (STATIC, SETTING, OBSERVED)
    }
    return {int(prefix) for prefix in prefixes if prefix.isdigit()}


def _is_acknowledged(event: ConfigEvent) -> bool:
    return bool(json.loads(event.detail).get("acknowledged"))


def _is_full(event: ConfigEvent) -> bool:
    return bool(json.loads(event.detail).get("full"))


def _started(
    ordered: list[ConfigEvent], first_seen: Mapping[int, int], versions: list[int], stored: Mapping[int, int]
) -> dict[int, int]:
    """Version -> when it can have been in force first (T1).

    Without the coordinator's own event, shards may have known a version before one of them wrote an event: then it counts
    from when the version before it was acknowledged, for versions are pushed one after the other.
    """
    started: dict[int, int] = {}
    acknowledged = {event.version: event.at_ns for event in ordered if event.broker < 0 and _is_acknowledged(event)}
    before: int | None = None
    for version in versions:
        events = [event for event in ordered if event.version == version]
        traces = [event.at_ns for event in events] + ([first_seen[version]] if version in first_seen else [])
        if version in stored:
            started[version] = stored[version]
        else:
            started[version] = min(traces) if before is None else min(before, *traces)
        before = acknowledged.get(version, started[version])
    return started


def _ip_quotas(state: Mapping[tuple[str, str], Any]) -> IpQuotaTable:
    return IpQuotaTable(
        (entity_of_key(key), value)
        for (kind, key), value in state.items()
        if kind == QUOTA and isinstance(value, Mapping)
    )
