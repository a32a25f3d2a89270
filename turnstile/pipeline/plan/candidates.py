"""Candidate limits of a plan: the limits to try, and the settings that set them, of addresses in both vocabularies."""

import shlex
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, NotRequired, TypedDict

from shards.limits.connection_limits import CORE_CAP, CORE_IP_CAP, CORE_IP_OVERRIDES, IPV6_PREFIX, ConnectionLimits
from shards.limits.quota_entities import CONNECTION_RATE, quota_of
from shards.settings.broker_config import IP_CAP, IP_OVERRIDES, RATE, USER_CAP, USER_OVERRIDES, USER_RATE
from shards.settings.errors import ConfigInvalid
from shards.settings.overrides import Overrides
from shards.settings.user_overrides import UserOverrides
from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.inputs.entities import IP, USER, EntityType, Ips


class EntitySettings(NamedTuple):
    """The settings that limit each entity of a type."""

    cap: str
    rate: str
    overrides: str


_SETTINGS = {
    "ip": EntitySettings(CORE_IP_CAP, CONNECTION_RATE, CORE_IP_OVERRIDES),
    "user": EntitySettings(USER_CAP, USER_RATE, USER_OVERRIDES),
}


def settings_of(by: EntityType) -> EntitySettings:
    """The settings that limit each entity of a type."""
    return _SETTINGS[by.name]


class Candidate(NamedTuple):
    """One combination of limits; None: not set. `cap`, `rate`: of each entity, connections and new ones a second; `overrides`:
    other caps, as their setting has them: "ip:count,network:count", "user:count"."""

    cap: int | None = None
    broker_cap: int | None = None
    rate: int | None = None
    broker_rate: int | None = None
    overrides: str = ""
    by: EntityType = IP

    @property
    def limits(self) -> dict[str, int | str]:
        """The settings that this candidate sets, by name."""
        own = settings_of(self.by)
        named = {
            own.cap: self.cap,
            CORE_CAP: self.broker_cap,
            own.rate: self.rate,
            RATE: self.broker_rate,
            own.overrides: self.overrides or None,
        }
        return {name: value for name, value in named.items() if value is not None}

    @property
    def is_per_entity(self) -> bool:
        """True if every entity can be replayed on its own."""
        return self.broker_cap is None and self.broker_rate is None

    @property
    def is_broker_cap_alone(self) -> bool:
        """True if only the broker's cap is set: then one replay answers for all such caps."""
        return self.limits.keys() == {CORE_CAP}

    def connection_limits(self) -> ConnectionLimits:
        """The limits as a broker reads them; the rate of an IP is a quota and not among them. Raises ConfigInvalid."""
        limits = ConnectionLimits()
        if isinstance(self.by, Ips) and not self.by.brokers_limit_it:
            limits = limits.with_change(IPV6_PREFIX, str(self.by.ipv6_prefix))
        for name, value in self.limits.items():
            if name == CONNECTION_RATE and isinstance(value, int):
                quota_of((("ip", None),), CONNECTION_RATE, value)
            else:
                limits = limits.with_change(name, str(value))
        return limits


class WorstMinute(TypedDict):
    """The minute in which a candidate refused most. `at`: its start, ISO 8601 in UTC."""

    at: str
    refused: int


class IncidentComparison(TypedDict):
    """Connections that a candidate refused in the incident, in the rest of the log, and of addresses not in the incident."""

    incident_refused: int
    quiet_refused: int
    others_refused: int


class CandidateOutcome(TypedDict):
    """The effect of a candidate on a log, as docs/plan.md lists it. `headroom`: above the highest peak that it does not
    touch, as a share of that peak; None without a cap."""

    limits: dict[str, int | str]
    refused: int
    delayed: int
    entities_affected: int
    networks_affected: int
    refused_share: float
    worst_minute: WorstMinute | None
    headroom: float | None
    compare: NotRequired[IncidentComparison]


def grid(
    caps: Sequence[int],
    broker_caps: Sequence[int],
    rates: Sequence[int],
    broker_rates: Sequence[int],
    overrides: str = "",
    by: EntityType = IP,
) -> list[Candidate]:
    """Every combination of what is given. Raises PipelineError for a value that no setting may have."""
    combined = [
        Candidate(cap, broker_cap, rate, broker_rate, overrides, by)
        for cap, broker_cap, rate, broker_rate in product(
            _axis(caps), _axis(broker_caps), _axis(rates), _axis(broker_rates)
        )
    ]
    if combined == [Candidate(by=by)]:
        return []
    try:
        for candidate in combined:
            candidate.connection_limits()
    except ConfigInvalid as fault:
        raise PipelineError(f"A candidate can't be set: {fault}") from None
    return combined


def _axis(values: Sequence[int]) -> list[int | None]:
    return [*dict.fromkeys(values)] or [None]


def paste(cap: int, overrides: dict[str, int], by: EntityType = IP) -> dict[str, dict[str, str]]:
    """The settings of a recommendation, ready to paste, by vocabulary: of addresses `redpanda` and `kafka`, of users
    and of IPv6 networks `turnstile`, as neither broker limits them."""
    if by.name == USER.name:
        users = {USER_CAP: str(cap)} | ({USER_OVERRIDES: str(UserOverrides(overrides))} if overrides else {})
        return {"turnstile": users}
    entries = str(Overrides.parse([_entry(ip, count) for ip, count in overrides.items()]))
    redpanda = {CORE_IP_CAP: str(cap)}
    kafka = {IP_CAP: str(cap)}
    if overrides:
        quoted = ", ".join(f'"{entry}"' for entry in entries.split(","))
        redpanda[CORE_IP_OVERRIDES] = f"[{quoted}]"
        kafka[IP_OVERRIDES] = entries
    return {"redpanda": redpanda, "kafka": kafka} if by.brokers_limit_it else {"turnstile": redpanda}


def commands(cap: int, overrides: dict[str, int], by: EntityType = IP) -> dict[str, list[str]]:
    """The commands that set a recommendation: a running Redpanda, Kafka, or this emulator; last, how it is rehearsed here."""
    settings = paste(cap, overrides, by)
    own = settings.get("redpanda") or settings["turnstile"]
    of_brokers = {}
    if "kafka" in settings:
        kafka = [f"{name}={value}" for name, value in settings["kafka"].items()]
        file = f"<(printf '%s\\n' {shlex.join(kafka)})"  # a list has commas, which --add-config splits at
        of_brokers = {
            "redpanda": _each(settings["redpanda"], "rpk", "cluster", "config", "set"),
            "kafka": [
                "kafka-configs.sh --bootstrap-server localhost:9092 --alter --entity-type brokers --entity-default "
                + (f"--add-config-file {file}" if overrides else f"--add-config {kafka[0]}")
            ],
        }
    return {**of_brokers, **own_commands(own)}


def own_commands(settings: dict[str, str]) -> dict[str, list[str]]:
    """The commands that set settings of this emulator, and those that rehearse them."""
    return {
        "turnstile": _each(settings, "turnstile", "config", "set"),
        "rehearsal": _each(settings, "turnstile", "config", "set", "--observe"),
    }


def _each(settings: dict[str, str], *command: str) -> list[str]:
    """The command for each setting."""
    return [shlex.join([*command, *each]) for each in settings.items()]


def _entry(ip: str, count: int) -> str:
    return f"[{ip}]:{count}" if ":" in ip else f"{ip}:{count}"
