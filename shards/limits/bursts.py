"""The burst of a rate: what passes at once after a pause, before the rate holds anything back; and the setting that makes it small.

Kafka averages over a window of samples, so a client that was quiet may use most of a window's worth in one instant. A new user
who sets 2 connections a second and opens 20 at once sees none refused. The amounts are those of the arithmetic that enforces:
`Window.burst_s`, `TokenBucket` and `ConnectionBucket`.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shards.limits.bucket import ConnectionBucket, TokenBucket
from shards.limits.connection_limits import CORE_RATE, CORE_RATE_OVERRIDES, ConnectionLimits
from shards.limits.core_bucket import EXACT, sustained_per_s
from shards.limits.quota_entities import CONNECTION_RATE, Entity
from shards.limits.rate import Window
from shards.settings.broker_config import CLUSTER_RATE, RATE, USER_RATE
from shards.settings.config_def import listener_of
from shards.settings.ranges import INT_MAX

_MUTATIONS = "controller_mutation_rate"
_UNITS = {
    "producer_byte_rate": "bytes", "consumer_byte_rate": "bytes", "request_percentage": "seconds of request time",
    _MUTATIONS: "mutations",
}  # fmt: skip
_SMALL_NUM = 2
"""Samples of the smallest window that Kafka's rates work with: at 1, each single record is over any quota."""


class Burst(NamedTuple):
    """The number that passes at once under a rate, and under `setting` = `small_num`; without a setting it can't be changed."""

    amount: float
    seconds: float
    setting: str
    small_num: int
    small_amount: float


def burst_of(name: str, per_s: float, limits: ConnectionLimits) -> Burst:
    """`name`: a setting or a quota that is a rate; `per_s`: its value. Of request_percentage, seconds of one thread's time."""
    if name in (CORE_RATE, CORE_RATE_OVERRIDES):
        whole_s = ConnectionBucket.BURST_S
        return Burst(per_s * whole_s, whole_s, "", 0, per_s * whole_s)
    if name == _MUTATIONS:
        window, small = limits.mutation_window, Window(1, limits.mutation_window.size_ms)
        return Burst(
            TokenBucket.burst(window, per_s), TokenBucket.burst(window, 1.0), "controller.quota.window.num", 1,
            TokenBucket.burst(small, per_s),
        )  # fmt: skip
    window = limits.window
    small = Window(_SMALL_NUM, window.size_ms)
    unit = per_s / 100 if name == "request_percentage" else per_s
    return Burst(unit * window.burst_s, window.burst_s, "quota.window.num", _SMALL_NUM, unit * small.burst_s)


def burst_note(name: str, per_s: float, limits: ConnectionLimits) -> str:
    """One sentence for people who set a rate; "" where no more than a second's worth passes at once."""
    if name in (CORE_RATE, CORE_RATE_OVERRIDES):
        return _whole_milliseconds_note(name, per_s, limits)
    burst = burst_of(name, per_s, limits)
    if burst.seconds <= 1:
        return ""
    unit = _UNITS.get(name, "connections")
    sentence = (
        f"after a pause {_number(burst.amount)} {unit} pass at once before {name}={_number(per_s)} holds any back"
    )
    sentence += f", as in Kafka ({burst.seconds:g} s of it)"
    if burst.small_amount >= burst.amount:
        return f"{sentence}."
    less = f"`turnstile up --set {burst.setting}={burst.small_num}`"
    return f"{sentence}; a cluster started by {less} lets {_number(burst.small_amount)} pass."


def _whole_milliseconds_note(name: str, per_s: float, limits: ConnectionLimits) -> str:
    """A note where Redpanda's whole milliseconds let another number of connections pass than the rate says; else ""."""
    passing = sustained_per_s(per_s, exact=limits.exact_core_rate)
    if round(passing) == round(per_s):
        return ""
    how = f"as in Redpanda, which counts in whole milliseconds; {EXACT}=true lets {_number(per_s)} pass"
    return f"{name}={_number(per_s)} lets {passing:,.0f} connections a second pass on each core, {how}."


def burst_notes(
    given: ConnectionLimits,
    quotas: Iterable[tuple[Entity, Mapping[str, float]]] = (),
    names: Iterable[str] | None = None,
) -> list[str]:
    """A note for each rate that is set: settings (of these `names` only, if given), then quotas; each sentence once."""
    wanted = None if names is None else set(names)
    rates = [(name, value) for name, value in given.given.items() if wanted is None or name in wanted]
    notes = [
        burst_note(name, float(value), given)
        for name, value in rates
        if _is_rate(name) and isinstance(value, int) and value < INT_MAX
    ]
    for entity, values in quotas:
        of = ", ".join(f"{kind}={'<default>' if each is None else each}" for kind, each in entity)
        for key, per_s in values.items():
            if key == CONNECTION_RATE and per_s >= INT_MAX:
                continue
            note = burst_note(key, per_s, given)
            notes.append(f"{of}: {note}" if note else "")
    return list(dict.fromkeys(filter(None, notes)))


def _is_rate(name: str) -> bool:
    if listener_of(name) is not None:
        return name.endswith(f".{RATE}")
    return name in (RATE, CORE_RATE, USER_RATE, CLUSTER_RATE)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:.3g}"
