"""The admin API's answers about limits that are observed instead of enforced: what they are, and what they would have done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from broker.admin.cluster_answers import (
    ObservedAnswer,
    ObservedCapRow,
    ObservedClientRow,
    ObservedQuotaRow,
    ObservedQuotasAnswer,
    RefusalsAnswer,
    RefusedBy,
    RefusedRow,
)
from broker.admin.describe_settings import SettingsView
from broker.admin.redpanda import as_json
from broker.admin.sampler import Sampler
from broker.journal.schema import OBSERVED_REASONS
from broker.metrics.observed_counts import ObservedSummary, summed
from broker.metrics.observed_quota_counts import summed_quotas
from shards.config.config_state import ConfigState
from shards.config.coordinator import Coordinator
from shards.ownership import BrokerShard
from shards.settings.broker_config import EVERY_BROKER, given
from shards.settings.config_def import broker_setting
from shards.settings.config_types import Value


def observed_config(state: ConfigState, broker: int = EVERY_BROKER) -> dict[str, Any]:
    """The observed values by name, as JSON has them: of the whole cluster, or those that hold for one broker."""
    return _as_json(given(broker, {}, state.observed, unreadable=lambda fault: None))


def observed_overrides(state: ConfigState) -> dict[str, dict[str, Any]]:
    """The observed values that single brokers have of their own, by broker id."""
    brokers = sorted({int(key.partition("/")[0]) for key in state.observed if not key.startswith("/")})
    return {
        str(broker): _as_json(given(broker, {}, {k: v for k, v in state.observed.items() if not k.startswith("/")},
                                    unreadable=lambda fault: None))
        for broker in brokers
    }  # fmt: skip


def _as_json(values: dict[str, Value]) -> dict[str, object]:
    return {name: as_json(broker_setting(name), value) for name, value in values.items()}


class ObservedView:
    """Asks the shards and the counters."""

    def __init__(self, coordinator: Coordinator, sampler: Sampler, settings: SettingsView) -> None:
        self._coordinator = coordinator
        self._settings = settings
        self._sampler = sampler

    async def summary(self) -> ObservedAnswer | None:
        """The refusals and delays that observed limits would have caused; None while nothing is observed."""
        state = self._coordinator.state
        if not (state.observed or state.observed_quotas):
            return None
        sums = await self._summed()
        quotas = await self.quotas() if state.observed_quotas else None
        return {
            "refused": sums.refused, "waited": sums.waited, "undecided": sums.undecided, "addresses": sums.addresses,
            "more": sums.more, "caps": cast(list[ObservedCapRow], sums.caps),
            "set": observed_config(state), "brokers": observed_overrides(state), "quotas": quotas,
        }  # fmt: skip

    async def refusals(self, by: RefusedBy) -> RefusalsAnswer:
        """As Admin.refusals: `by` reason, listener or shard since the cluster started, by ip or limit since the observed caps
        were last changed. `total`: connections that would have been refused or made to wait."""
        sampler, now = self._sampler, self._sampler.now()

        def counts(listener: str | None = None, of: Iterable[BrokerShard] | None = None) -> dict[str, int]:
            found = {name: sampler.total(now, f"observed_{name}", listener, of) for name in OBSERVED_REASONS}
            return {name: count for name, count in found.items() if count}

        sums = await self._summed()
        rows: list[RefusedRow]
        if by == "ip":
            rows = [{"ip": ip, "count": n, "error": error, "reasons": reasons} for ip, n, error, reasons in sums.by_ip]
        elif by == "limit":
            rows = cast(list[RefusedRow], sums.caps)
        elif by == "listener":
            each = {name: counts(name) for name in sampler.layout.listeners}
            rows = [{"listener": name, "count": sum(of.values()), "reasons": of} for name, of in each.items() if of]
        elif by == "shard":
            members = {member: counts(None, [member]) for member in now.slots}
            rows = [{"broker": broker, "shard": shard, "count": sum(of.values()), "reasons": of}
                    for (broker, shard), of in members.items() if of]  # fmt: skip
        else:
            rows = [{"reason": reason, "count": count} for reason, count in counts().items()]
        total = sum(count for reason, count in counts().items() if reason != "shard_unavailable")
        summary = await self.summary()
        return {"observed": True, "by": by, "total": total, "admitted": sampler.total(now, "admitted"), "refusals": rows,
                "summary": summary}  # fmt: skip

    async def quotas(self) -> ObservedQuotasAnswer:
        """The observed client quotas and what they would have throttled; empty while none is observed."""
        sums = summed_quotas((await self._coordinator.ask_all("describe_observed_quotas")).values())
        return {
            "set": self._settings.quotas(observed=True), "requests": sums.requests, "throttle_ms": sums.throttle_ms,
            "more": sums.more,
            "quotas": [cast(ObservedQuotaRow, each._asdict()) for each in sums.quotas],
            "clients": [cast(ObservedClientRow, each._asdict()) for each in sums.clients],
        }  # fmt: skip

    async def _summed(self) -> ObservedSummary:
        return summed((await self._coordinator.ask_all("describe_observed")).values())
