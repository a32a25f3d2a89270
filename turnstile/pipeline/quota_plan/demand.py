"""The quota that each client would have needed: the rates that Kafka's window had after each charge, and what follows.

A byte rate, or request time, throttles a charge when the window's rate with it is above the quota. As long as nothing is
throttled that rate does not depend on the quota, so one pass tells what every quota would have left alone:

level_is_the_least_quota  a level is the least quota, in STEPS of its kind, that the rate with a charge is not above. One just
    below it may delay by what rounds to 0 ms
mutations_of_a_client_have_one_level  of mutations, whose bucket depends on the quota, all charges of a client have one level:
    the least quota under which none of them is throttled
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from shards.limits.bucket import TokenBucket
from shards.limits.client_quota_managers import FETCH, MUTATION, PERCENT_PER_NANO, PRODUCE, REQUEST
from shards.limits.rate import Rate, Window
from shards.limits.throttle_time import java_round
from turnstile.pipeline.plan.recommend import LogLevels
from turnstile.pipeline.quota_plan.usage import Charge, Usage

STEPS: Final = {PRODUCE: Fraction(1), FETCH: Fraction(1), REQUEST: Fraction(1, 100), MUTATION: Fraction(1, 100)}
"""Quotas of bytes are whole numbers; of the others hundredths are fine enough."""
MOST_KEYS = 200
"""The most names that are shown, those of the highest peaks."""
MOST_OVERRIDES = 10
"""The most names that get an override, and at most a quarter of all: what more names need is no exception."""
BY = {"user": ("user",), "client-id": ("client_id",), "user,client-id": ("user", "client_id")}
"""The entities of a default quota: each user, each client id, or each pair of both."""
Name = tuple[str, ...]


class Demand(NamedTuple):
    """The demand for a kind of quota: levels of all charges and of each name, in STEPS; the highest `rates` a second of each name
    by minute."""

    kind: str
    levels: LogLevels
    names: dict[str, Name]
    minutes: dict[str, dict[int, float]]


def demand(usage: Usage, kind: str, by: str) -> Demand:
    """The needs of a log's clients, of a kind of quota."""
    step, columns = STEPS[kind], BY[by]
    of: defaultdict[tuple[Name, str], list[Charge]] = defaultdict(list)
    for use in usage.uses:
        if use.kind == kind:
            of[tuple(getattr(use, column) for column in columns), use.broker].append(use)
    histograms: defaultdict[Name, Counter[int]] = defaultdict(Counter)
    minutes: defaultdict[Name, dict[int, float]] = defaultdict(dict)
    for (name, _), uses in of.items():
        if kind == MUTATION:
            least = _least(uses, usage.mutations)
            histograms[name][max(1, least)] += len(uses)
            continue
        rate = Rate(usage.window)
        for use in uses:
            rate.charge(_units(use), None, now_ms=use.at_ms)
            now = rate.measure(now_ms=use.at_ms)
            histograms[name][level_of(now, step)] += 1
            minute = use.at_ms // 60_000 * 60_000
            minutes[name][minute] = max(minutes[name].get(minute, 0.0), now)
    names = {
        ", ".join(f"{column.replace('_', '-')}={each}" for column, each in zip(columns, name, strict=True)): name
        for name in histograms
    }
    by_text = {text: histograms[name] for text, name in names.items()}
    peaks = {text: max(each) for text, each in by_text.items()}
    kept = sorted(peaks, key=lambda text: (-peaks[text], text))[:MOST_KEYS]
    everything: Counter[int] = Counter()
    for each in by_text.values():
        everything.update(each)
    apart = {text: by_text[text] for text in kept[: min(MOST_OVERRIDES, len(peaks) // 4)]}
    levels = LogLevels(everything, apart, {text: peaks[text] for text in kept}, Counter(peaks.values()))
    return Demand(kind, levels, names, {text: minutes[names[text]] for text in kept})


def level_of(rate: float, step: Fraction) -> int:
    """The least number of steps that, as a quota, is not below a rate; at least 1."""
    level = max(1, math.ceil(rate * step.denominator))
    return level if level / step.denominator >= rate else level + 1


def _units(use: Charge) -> float:
    return java_round(use.amount * 1e6) * PERCENT_PER_NANO if use.kind == REQUEST else use.amount


def _least(uses: Sequence[Charge], window: Window) -> int:
    """The least quota, in steps of MUTATION, under which no charge of one meter is throttled; found by bisection."""
    step = float(STEPS[MUTATION])
    low, high = 0, 1
    while not _passes(uses, high * step, window):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if _passes(uses, middle * step, window):
            high = middle
        else:
            low = middle
    return high


def _passes(uses: Sequence[Charge], quota: float, window: Window) -> bool:
    """True if no charge of one meter is throttled: a strict one when its bucket is below zero before, others when it is after."""
    bucket = TokenBucket(window)
    for use in uses:
        if use.strict and bucket.tokens(quota, now_ms=use.at_ms) < 0:
            return False
        if bucket.charge(use.amount, quota, now_ms=use.at_ms) and not use.strict:
            return False
    return True
