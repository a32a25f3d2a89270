"""The effects that quotas would have had on a log of requests. The emulator's own arithmetic (shards/limits) decides each charge.

The decisions are those of `turnstile replay` for the same quotas and records; test_quota_plan.py compares them one by one. The
requests keep the times of the log, also those of a client that the quotas would have throttled.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shards.limits.client_quota_managers import (
    FETCH,
    MUTATION,
    PRODUCE,
    REQUEST,
    Charged,
    ClientRequestQuotaManager,
    ControllerMutationQuotaManager,
    FetchQuotaManager,
    ProduceQuotaManager,
)
from shards.limits.precedence import QuotaTable
from shards.limits.quota_entities import Entity
from turnstile.pipeline.quota_plan.usage import Charge, Usage

MINUTE_MS = 60_000
Manager = ProduceQuotaManager | ControllerMutationQuotaManager
_MANAGERS: dict[str, type[Manager]] = {
    PRODUCE: ProduceQuotaManager,
    FETCH: FetchQuotaManager,
    REQUEST: ClientRequestQuotaManager,
    MUTATION: ControllerMutationQuotaManager,
}
Quotas = Mapping[Entity, Mapping[str, float]]
"""Entity -> kind of quota -> its value."""


class Throttled(NamedTuple):
    """The effect of one kind of quota on one client.

    `throttles`: charges that were throttled or refused; `refusals`: the refused ones. `throttle_ms`, `longest_ms`: the sum of the
    throttle times, and the longest. `worst_minute_ms`: the minute with the largest sum (epoch ms).
    """

    kind: str
    user: str
    client_id: str
    charges: int
    throttles: int
    refusals: int
    throttle_ms: int
    longest_ms: int
    worst_minute_ms: int


class Outcome(NamedTuple):
    """The effect of quotas on all clients. `charges`: numbers by kind. `clients`: the clients that were throttled, the one with the
    most throttle time first. `minutes`: kind -> minute (epoch ms) -> throttle time (ms)."""

    charges: Counter[str]
    clients: list[Throttled]
    minutes: dict[str, dict[int, int]]

    def throttles(self, kind: str) -> int:
        """The number of charges of a kind that were throttled or refused."""
        return sum(each.throttles for each in self.clients if each.kind == kind)

    def of(self, kind: str) -> list[Throttled]:
        """The clients that quotas of a kind throttled."""
        return [each for each in self.clients if each.kind == kind]


def decisions(usage: Usage, quotas: Quotas) -> Iterator[tuple[Charge, Charged]]:
    """Each charge of a kind for which there is a quota, with its decision."""
    kinds = {kind for values in quotas.values() for kind in values}
    meters: dict[tuple[str, str], Manager] = {}
    for use in usage.uses:
        if use.kind not in kinds:
            continue
        meter = meters.get((use.broker, use.kind))
        if meter is None:
            meter = meters[use.broker, use.kind] = _meter(usage, use.kind, quotas)
        if isinstance(meter, ControllerMutationQuotaManager):
            yield use, meter.record(use.user, use.client_id, use.amount, strict=use.strict, now_ms=use.at_ms)
        else:
            yield use, meter.record(use.user, use.client_id, use.amount, now_ms=use.at_ms)


def _meter(usage: Usage, kind: str, quotas: Quotas) -> Manager:
    table = QuotaTable()
    for entity, values in quotas.items():
        if kind in values:
            table.update(dict(entity), values[kind])
    return _MANAGERS[kind](table, window=usage.mutations if kind == MUTATION else usage.window)


class _Sum:
    __slots__ = ("charges", "longest_ms", "minutes", "refusals", "throttle_ms", "throttles")

    def __init__(self) -> None:
        self.charges = self.throttles = self.refusals = self.throttle_ms = self.longest_ms = 0
        self.minutes: Counter[int] = Counter()


def outcome(usage: Usage, quotas: Quotas) -> Outcome:
    """The decisions about all charges, summed."""
    sums: defaultdict[tuple[str, str, str], _Sum] = defaultdict(_Sum)
    charges: Counter[str] = Counter()
    minutes: dict[str, dict[int, int]] = {}
    for use, charged in decisions(usage, quotas):
        charges[use.kind] += 1
        totals = sums[use.kind, use.user, use.client_id]
        totals.charges += 1
        if charged.throttle_ms or not charged.accepted:
            totals.throttles += 1
            totals.refusals += not charged.accepted
            totals.throttle_ms += charged.throttle_ms
            totals.longest_ms = max(totals.longest_ms, charged.throttle_ms)
            minute = use.at_ms // MINUTE_MS * MINUTE_MS
            totals.minutes[minute] += charged.throttle_ms
            of_kind = minutes.setdefault(use.kind, {})
            of_kind[minute] = of_kind.get(minute, 0) + charged.throttle_ms
    clients = [
        Throttled(
            *key, totals.charges, totals.throttles, totals.refusals, totals.throttle_ms, totals.longest_ms,
            max(totals.minutes.items(), key=lambda each: (each[1], -each[0]))[0],
        )
        for key, totals in sums.items()
        if totals.throttles
    ]  # fmt: skip
    return Outcome(charges, sorted(clients, key=lambda each: (-each.throttle_ms, *each[:3])), minutes)


def scenario(usage: Usage, quotas: Quotas) -> Sequence[dict[str, Any]]:
    """The settings, quotas and charges as events of `turnstile replay`, for a log of one broker."""
    names = {PRODUCE: "produce", FETCH: "fetch", REQUEST: "request", MUTATION: "mutation"}
    kinds = {kind for values in quotas.values() for kind in values}
    events: list[dict[str, Any]] = [
        {"at": 0, "do": "set", "name": f"{whose}quota.window.{name}", "value": str(value)}
        for whose, window in (("", usage.window), ("controller.", usage.mutations))
        for name, value in (("num", window.samples), ("size.seconds", window.size_ms // 1000))
    ]
    events += [
        {"at": 0, "do": "quota", "entity": dict(entity), "key": kind, "value": value}
        for entity, values in quotas.items()
        for kind, value in values.items()
    ]
    for use in usage.uses:
        if use.kind in kinds:
            event = {
                "at": use.at_ms,
                "do": "record",
                "quota": names[use.kind],
                "user": use.user,
                "client_id": use.client_id,
            }
            strict = {"strict": use.strict} if use.kind == MUTATION else {}
            events.append({**event, **strict, "amount": use.amount})
    return events
