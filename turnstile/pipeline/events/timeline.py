"""The configuration versions that could be in force at each time, and the limits of each. Pure Python over a few config events.

A change is pushed, applied by one shard after the other, and acknowledged. In between both the old and the new limits are
legitimate, so at an instant the versions in force are all from the last acknowledged one to the newest that any process
can have known; the widest of their caps is the one that must hold.

in_force_once_it_is_stored  version v can be in force from when the coordinator stored it; where the journal does not tell, from
    its first trace
over_once_a_later_one_is_acknowledged  no version below v is in force any more once the coordinator has journaled that every
    shard acknowledged v
unknown_version_may_allow_anything  so may one that follows on a version which is not in the journal
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import NamedTuple

from shards.limits.connection_limits import ConnectionLimits
from shards.limits.ip_quotas import IpQuotaTable
from shards.limits.quota_entities import CALLBACK, CLIENT_KEYS, REDPANDAS, SEMANTICS, Entity, entity_of_key, is_of_kafka
from shards.limits.rate import DEFAULT_WINDOW
from shards.settings.broker_config import given
from shards.settings.errors import ConfigInvalid
from turnstile.pipeline.events.config_states import (
    HOST,
    OBSERVED,
    OBSERVED_QUOTA,
    QUOTA,
    SETTING,
    STATIC,
    ConfigEvent,
    State,
    brokers_with_settings,
    in_force,
    is_limit,
    limit_place,
    named_place,
    shown_value,
    states_of,
)
from turnstile.pipeline.events.version_limits import UNLIMITED, VersionLimits

_SEMANTICS = STATIC, f"/{SEMANTICS}"
_CALLBACK = STATIC, f"/{CALLBACK}"


class VersionPeriod(NamedTuple):
    """A time, from `start_ns` to the next period, in which the versions `versions` may be in force."""

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
        self._states = states_of(ordered, self.unknown)
        self._limits: dict[tuple[int, int], VersionLimits] = {}
        self._own = brokers_with_settings(self._states)
        self.versions = sorted(self._states)
        if not self.versions:
            self.unknown.append("there is no configuration in the journal, so no cap is known")
        self.acknowledged = [
            (event.at_ns, event.version) for event in ordered if event.broker < 0 and event.is_acknowledged
        ]
        self.stored: dict[int, int] = {}
        """Version -> the mono_ns at which the coordinator stored it, where it says so."""
        for event in ordered:
            if event.broker < 0 and not event.is_acknowledged and not event.is_full:
                self.stored.setdefault(event.version, event.at_ns)
        missing = sorted(version for version in first_seen if version > 0 and version not in self._states)
        if missing and self.versions:
            self.unknown.append(f"what version {missing[0]} says is not in the journal")
            self._states.update((version, {}) for version in missing)  # unknown_version_may_allow_anything
            self.versions = sorted(self._states)
        self.periods = self._periods(_started(ordered, first_seen, self.versions, self.stored))
        self._starts = [period.start_ns for period in self.periods]

    def period(self, at_ns: int) -> int:
        """The index of the period an instant is in; instants before the first belong to it."""
        return max(0, bisect_right(self._starts, at_ns) - 1)

    def limits(self, version: int, broker: int) -> VersionLimits:
        """The limits of a version for a broker. Values that a later release wrote, and so don't parse, are in `unknown`."""
        if broker not in self._own:
            broker = -1
        found = self._limits.get((version, broker))
        if found is None:
            found = self._limits[version, broker] = self._compute(version, broker)
        return found

    def observed_settings(self, version: int, broker: int) -> dict[str, str]:
        """The caps that a version observes on a broker instead of enforcing them, as records: "broker or nothing/name" -> text."""
        state = self._states.get(version, {})
        places = ("/", f"{broker}/")
        return {key: text for (record, key), text in state.items() if record == OBSERVED and key.startswith(places)}

    def allowed(self, period: int, broker: int, kind: str, key: str) -> int:
        """The widest cap of a pool that may be in force in a period."""
        if not self.periods:
            return UNLIMITED
        versions = self.periods[period].versions
        return max(self.limits(version, broker).cap(kind, key, **self._stopping) for version in versions)

    def changed(self, version: int) -> list[str]:
        """The settings of a version that the one before it set otherwise, as `name old -> new`; empty where that one isn't
        known."""
        before, state = self._states.get(version - 1), self._states.get(version, {})
        if before is None:
            return []
        values = [(place, in_force(before, place), in_force(state, place)) for place in sorted({*before, *state})]
        return [
            f"{named_place(*place)} {shown_value(old)} -> {shown_value(new)}"
            for place, old, new in values
            if old != new
        ]

    def limits_over_time(self) -> dict[str, list[str]]:
        """Each limit of connections that any version sets, and its values in order; `none` where it is not set."""
        states = [self._states[version] for version in self.versions]
        places = sorted({limit_place(place) for state in states for place in state if is_limit(*place)})
        found = {}
        for place in places:
            values = [shown_value(in_force(state, place)) for state in states]
            found[named_place(*place)] = [
                value for value, before in zip(values, [None, *values], strict=False) if value != before
            ]
        return found

    def newest(self, at_ns: int) -> int:
        """The last version that was stored by an instant; 0: none was."""
        return max((version for version, stored_ns in self.stored.items() if stored_ns <= at_ns), default=0)

    def unsettled(self, at_ns: int, version: int) -> list[int]:
        """The versions from the last that all shards had acknowledged at an instant up to `version`; none if that is unknown."""
        lowest = max((each for acknowledged_ns, each in self.acknowledged if acknowledged_ns < at_ns), default=None)
        return [] if lowest is None else [each for each in self.versions if lowest <= each <= version]

    def without_slots(self) -> "Timeline":
        """The timeline, without max.connections as a limit of the brokers' pools (KIP-402)."""
        return self._with(slots=False)

    def only_slots(self) -> "Timeline":
        """The timeline, without kafka_connections_max as a limit of the brokers' pools."""
        return self._with(refusing=False)

    def _with(self, **stopping: bool) -> "Timeline":
        other = copy(self)
        other._stopping = {**self._stopping, **stopping}
        return other

    @property
    def limits_slots(self) -> bool:
        """True if any version has a max.connections, of a broker or of a listener."""
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

    def periods_within(self, start_ns: int, end_ns: int) -> int:
        """The number of times the versions in force may have changed from start to end."""
        return self.period(end_ns) - self.period(start_ns) if self.periods else 0

    def any_limit(self, kind: str, measure: str = "cap") -> bool:
        """True if any version limits pools of this kind, on any broker."""
        each = [self.limits(version, broker) for version in self.versions for broker in self.brokers]
        if measure == "rate":
            return any(limits.rates(kind) for limits in each)
        if kind == "user":
            return any(one.limits.limits_users for one in each)
        if kind == "ip":
            return any(not one.limits.same_for_all_ips or one.limits.ip_default.cap is not None for one in each)
        keys = self._listeners if kind == "listener" else ("",)
        return any(limits.cap(kind, key) < UNLIMITED for limits in each for key in keys)

    @property
    def has_quota_callback(self) -> bool:
        """True if client.quota.callback.class decides of client quotas in any version."""
        return any(_CALLBACK in state for state in self._states.values())

    @property
    def has_redpandas_quotas(self) -> bool:
        """True if any version sets a quota of a client by Redpanda's semantics."""
        return any(
            state.get(_SEMANTICS) == REDPANDAS
            and any(kind == QUOTA and entity_of_key(key)[0][0] != "ip" for kind, key in state)
            for state in self._states.values()
        )

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
        return self._quotas_of(version, (QUOTA,))

    def _quotas_of(self, version: int, records: Sequence[str]) -> dict[str, dict[Entity, float]] | None:
        """The quotas in some kinds of record; of an entity in several, those of the last. By Redpanda's semantics no quota
        holds."""
        state = self._states.get(version)
        if not state:
            return None
        found: dict[str, dict[Entity, float]] = {kind: {} for kind in CLIENT_KEYS}
        is_kafkas = state.get(_SEMANTICS) != REDPANDAS and _CALLBACK not in state
        rows = [(key, values) for each in records for (record, key), values in state.items() if record == each]
        for key, values in rows:
            entity = entity_of_key(key) if isinstance(values, Mapping) else ()
            if entity and is_kafkas and is_of_kafka(entity):
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
        """The limits of a version for a broker; `with_observed`: what it would say if the observed caps were set."""
        state = self._states.get(version, {})  # unknown_version_may_allow_anything
        layers = {
            kind: {key: text for (record, key), text in state.items() if record == kind} for kind in (STATIC, SETTING)
        }

        def unreadable(fault: ConfigInvalid) -> None:
            self.unknown.append(f"version {version}: {fault}")

        more = self.observed_settings(version, broker) if with_observed else {}
        found = given(broker, layers[STATIC], {**layers[SETTING], **more}, unreadable)
        names = {*self._listeners, *_listener_names(str(found.get("listeners", "")))}
        inter_broker = found.get("inter.broker.listener.name")
        hosts = {key: value for (kind, key), value in state.items() if kind == HOST}
        limits = ConnectionLimits(found, hosts)
        return VersionLimits(
            limits,
            _ip_quotas(state, limits, with_observed),
            None if inter_broker is None else str(inter_broker),
            len(names),
            _ssl_listeners(str(found.get("listener.security.protocol.map", ""))),
        )


def _started(
    ordered: list[ConfigEvent], first_seen: Mapping[int, int], versions: list[int], stored: Mapping[int, int]
) -> dict[int, int]:
    """Version -> when it can have been in force first (in_force_once_it_is_stored).

    Without the coordinator's own event, shards may have known a version before one of them wrote an event: then it counts
    from when the version before it was acknowledged, for versions are pushed one after the other.
    """
    started: dict[int, int] = {}
    acknowledged = {event.version: event.at_ns for event in ordered if event.broker < 0 and event.is_acknowledged}
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


def _ip_quotas(state: State, limits: ConnectionLimits, with_observed: bool) -> IpQuotaTable:
    """`with_observed`: as they would be if the observed ones were set."""
    quotas = (
        (entity_of_key(key), value)
        for record in ((QUOTA, OBSERVED_QUOTA) if with_observed else (QUOTA,))
        for (kind, key), value in state.items()
        if kind == record and isinstance(value, Mapping)
    )
    return IpQuotaTable(quotas).counted_by(limits.ipv6_prefix)


def _listener_names(listeners: str) -> list[str]:
    """`EXTERNAL://host:port,INTERNAL://...` -> the names."""
    return [each.partition("://")[0].strip() for each in listeners.split(",") if "://" in each]


def _ssl_listeners(protocols: str) -> list[str]:
    """`EXTERNAL:SASL_SSL,INTERNAL:PLAINTEXT` -> the names of those with TLS."""
    pairs = (each.strip().partition(":") for each in protocols.split(","))
    return [name for name, _, protocol in pairs if protocol.endswith("SSL")]
