"""Candidate limits of a plan: what to try, and the settings that mean it in both vocabularies."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from shards.limits.connection_settings import ConnectionSettings
from shards.limits.overrides import Overrides
from turnstile.pipeline.errors import PipelineError

PER_IP = "kafka_connections_max_per_ip"
BROKER = "kafka_connections_max"
IP_RATE = "connection_creation_rate"
BROKER_RATE = "max.connection.creation.rate"
OVERRIDES = "kafka_connections_max_overrides"


class Candidate(NamedTuple):
    """One combination of limits; None: not set. `overrides` is as the setting has them: "ip:count,network:count"."""

    per_ip_cap: int | None = None
    broker_cap: int | None = None
    ip_rate: int | None = None
    broker_rate: int | None = None
    overrides: str = ""

    @property
    def limits(self) -> dict[str, Any]:
        """The settings by name, without the overrides of others than this candidate."""
        named = {
            PER_IP: self.per_ip_cap,
            BROKER: self.broker_cap,
            IP_RATE: self.ip_rate,
            BROKER_RATE: self.broker_rate,
            OVERRIDES: self.overrides or None,
        }
        return {name: value for name, value in named.items() if value is not None}

    @property
    def is_per_ip(self) -> bool:
        """Whether every address can be replayed on its own."""
        return self.broker_cap is None and self.broker_rate is None

    @property
    def is_broker_cap_alone(self) -> bool:
        """Whether only the broker's cap is set: then one replay answers for all such caps."""
        return self.limits.keys() == {BROKER}

    def settings(self, listeners: Sequence[str]) -> ConnectionSettings:
        """As the emulator's own settings; the IP's rate is a quota and not among them."""
        settings = ConnectionSettings(listeners)
        for name, value in self.limits.items():
            if name != IP_RATE:
                settings = settings.with_change(name, value if name == OVERRIDES else str(value))
        return settings


def grid(
    per_ip_caps: Sequence[int],
    broker_caps: Sequence[int],
    ip_rates: Sequence[int],
    broker_rates: Sequence[int],
    overrides: str = "",
) -> list[Candidate]:
    """Every combination of what is given. Raises PipelineError for a value that no setting may have."""
    values = (per_ip_caps, broker_caps, ip_rates, broker_rates)
    axes = [list(dict.fromkeys(given)) or [None] for given in values]
    combined = [Candidate(*each, overrides) for each in product(*axes)]  # type: ignore[arg-type]
    if combined == [Candidate()]:
        return []
    try:
        for candidate in combined:
            candidate.settings(["L"])
    except ValueError as error:
        raise PipelineError(f"A candidate can't be set: {error}.") from None
    return combined


def paste(per_ip_cap: int, overrides: dict[str, int]) -> dict[str, dict[str, str]]:
    """The settings of a recommendation, ready to paste, by vocabulary."""
    entries = str(Overrides.parse([_entry(ip, count) for ip, count in overrides.items()]))
    redpanda = {PER_IP: str(per_ip_cap)}
    kafka = {"max.connections.per.ip": str(per_ip_cap)}
    if overrides:
        quoted = ", ".join(f'"{entry}"' for entry in entries.split(","))
        redpanda[OVERRIDES] = f"[{quoted}]"
        kafka["max.connections.per.ip.overrides"] = entries
    return {"redpanda": redpanda, "kafka": kafka}


def _entry(ip: str, count: int) -> str:
    return f"[{ip}]:{count}" if ":" in ip else f"{ip}:{count}"
