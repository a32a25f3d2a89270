"""The plan of client quotas: a log of requests against candidate quotas, and the smallest that leave usual traffic alone."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple

from shards.limits.client_quota_managers import MUTATION
from shards.limits.quota_entities import Entity, entity_of
from turnstile.entities import entity_text
from turnstile.pipeline.plan.recommend import Recommendation, recommend
from turnstile.pipeline.quota_plan.commands import commands
from turnstile.pipeline.quota_plan.demand import STEPS, Demand, demand
from turnstile.pipeline.quota_plan.usage import Usage
from turnstile.pipeline.quota_plan.what_if import Outcome, Quotas, outcome

SHARES = (Fraction(1), Fraction(1, 2), Fraction(1, 5), Fraction(1, 20))
"""Without candidates, quotas of these shares of the highest rate are tried."""
NAMED = 5


class Judged(NamedTuple):
    """Quotas, and what they would have done."""

    name: str
    quotas: Quotas
    outcome: Outcome

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        return {
            "quotas": [{"entity": dict(entity), "values": dict(values)} for entity, values in self.quotas.items()],
            "charges": dict(self.outcome.charges),
            "throttled": [
                {**each._asdict(), "worst_minute": at(each.worst_minute_ms)} for each in self.outcome.clients
            ],
            "minutes": {
                kind: [{"at": at(minute), "throttle_ms": ms} for minute, ms in sorted(each.items())]
                for kind, each in self.outcome.minutes.items()
            },
        }


class Advice(NamedTuple):
    """A default quota and overrides (name -> quota) of a kind, with headroom; `observed`: the default quota without headroom."""

    kind: str
    default: float
    overrides: dict[str, float]
    observed: float


class Variant(NamedTuple):
    """One way to set quotas of all kinds, what it would have done, and the commands that set it."""

    name: str
    advice: list[Advice]
    judged: Judged
    commands: dict[str, list[str]]


class QuotaPlan(NamedTuple):
    """A quota plan's answer."""

    usage: Usage
    by: str
    demands: list[Demand]
    candidates: list[Judged]
    recommended: list[Variant]
    headroom: float
    notes: list[str]

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        first, last = self.usage.span
        return {
            "charges": len(self.usage.uses),
            "users": len(self.usage.names("user")),
            "client_ids": len(self.usage.names("client_id")),
            "brokers": len(self.usage.names("broker")),
            "from": first.isoformat(),
            "to": last.isoformat(),
            "put_aside": dict(self.usage.put_aside),
            "by": self.by,
            "headroom": self.headroom,
            "needed": {
                each.kind: {name: float(peak * STEPS[each.kind]) for name, peak in each.levels.peaks.items()}
                for each in self.demands
            },
            "candidates": [each.as_json() for each in self.candidates],
            "recommended": {
                each.name: {
                    "advice": [one._asdict() for one in each.advice],
                    **each.judged.as_json(),
                    "commands": each.commands,
                }
                for each in self.recommended
            },
            "notes": self.notes,
        }


def quota_plan(
    usage: Usage,
    candidates: Sequence[Quotas],
    *,
    by: str | None = None,
    at_most_throttled: float = 0.001,
    headroom: Fraction = Fraction(1, 2),
) -> QuotaPlan:
    """Replays a log against every candidate, or against shares of the highest rates if there is none, and recommends quotas."""
    by = by or _by(usage)
    demands = [demand(usage, kind, by) for kind in usage.kinds]
    found = {each.kind: recommend(each.levels, at_most=at_most_throttled) for each in demands}
    chosen = list(candidates) or _ladder(demands, by)
    variants = [_variant("simple", {kind: pair[0] for kind, pair in found.items()}, demands, by, headroom, usage)]
    if any(pair[1].overrides for pair in found.values()):
        variants.append(
            _variant("tight", {kind: pair[1] for kind, pair in found.items()}, demands, by, headroom, usage)
        )
    return QuotaPlan(
        usage=usage,
        by=by,
        demands=demands,
        candidates=[Judged(named(each), each, outcome(usage, each)) for each in chosen],
        recommended=variants,
        headroom=float(headroom),
        notes=[*usage.notes, *_absent(usage, candidates), *_notes(usage, variants)],
    )


def _by(usage: Usage) -> str:
    """Users where clients log in, client ids where they don't."""
    return "user" if usage.names("user") - {"", "ANONYMOUS"} else "client-id"


def _ladder(demands: Sequence[Demand], by: str) -> list[Quotas]:
    """The candidates where none is given: default quotas, of one kind each."""
    made: list[Quotas] = []
    for each in demands:
        highest = max(each.levels.all_peaks)
        steps = dict.fromkeys(max(1, math.ceil(highest * share)) for share in SHARES)
        made += [{default_of(by): {each.kind: value(each.kind, step)}} for step in steps]
    return made


def _variant(
    name: str, found: Mapping[str, Recommendation], demands: Sequence[Demand], by: str, headroom: Fraction, usage: Usage
) -> Variant:
    advice = []
    for each in demands:
        observed = found[each.kind]
        cap = _raised(observed.cap, headroom)
        above = {text: _raised(peak, headroom) for text, peak in observed.overrides.items()}
        overrides = {
            text: value(each.kind, most) for text, most in above.items() if most > cap and all(each.names[text])
        }
        advice.append(Advice(each.kind, value(each.kind, cap), overrides, value(each.kind, observed.cap)))
    quotas: dict[Entity, dict[str, float]] = {}
    for one, each in zip(advice, demands, strict=True):
        quotas.setdefault(default_of(by), {})[one.kind] = one.default
        for text, most in one.overrides.items():
            quotas.setdefault(named_entity(by, each.names[text]), {})[one.kind] = most
    return Variant(name, advice, Judged(name, quotas, outcome(usage, quotas)), commands(quotas))


def _raised(level: int, headroom: Fraction) -> int:
    return math.ceil(level * (1 + headroom))


def value(kind: str, step: int) -> float:
    """A level as a quota."""
    return float(step * STEPS[kind])


def default_of(by: str) -> Entity:
    """The default entity."""
    return entity_of(dict.fromkeys(by.split(",")))


def named_entity(by: str, name: Sequence[str]) -> Entity:
    """The entity of a name."""
    return entity_of(dict(zip(by.split(","), name, strict=True)))


def named(quotas: Quotas) -> str:
    """Quotas in one line, as --quota takes them."""
    return "; ".join(
        f"{entity_text(dict(entity))} {' '.join(f'{kind}={number(each)}' for kind, each in values.items())}"
        for entity, values in quotas.items()
    )


def number(each: float) -> str:
    """A number as text; a whole one without a fraction."""
    return f"{each:.10g}" if each != int(each) else str(int(each))


def at(epoch_ms: int) -> str:
    """An instant as ISO text, UTC."""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat()


def _absent(usage: Usage, candidates: Sequence[Quotas]) -> list[str]:
    """The entities of candidates that limit no client of this log: a misspelt name would look like a quota without effect."""
    clients = {(use.user, use.client_id) for use in usage.uses}
    absent = {
        entity: None for quotas in candidates for entity in quotas if not any(_names(entity, *each) for each in clients)
    }
    return [
        f"No client of this log is {entity_text(dict(entity))}: its quota limits nothing here." for entity in absent
    ]


def _names(entity: Entity, user: str, client_id: str) -> bool:
    of = {"user": user, "client-id": client_id}
    return all(name is None or of[kind] == name for kind, name in entity)


def _notes(usage: Usage, variants: Sequence[Variant]) -> list[str]:
    window = usage.window
    notes = [
        f"A window of {window.samples} samples of {window.size_ms / 1000:g} s: after a pause {window.burst_s:g} s worth of a quota "
        "pass at once. In this replay a throttled client does not wait."
    ]
    if len(usage.names("broker")) > 1:
        notes.append("A quota holds on each broker by itself, and so does this plan.")
    if any(one.kind == MUTATION for each in variants for one in each.advice):
        notes.append("controller_mutation_rate counts on the controller: plan it from the controller's log.")
    return notes
