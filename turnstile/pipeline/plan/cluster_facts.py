"""The facts that a log tells of a whole cluster: the rate that its arrivals need, how many of them rates with room above it would
refuse, and of how many brokers they are.

judged_by_mono_ns  Arrivals of a journal are in order of mono_ns, as limits are: a wall clock that is set changes nothing. Only
    where the machine was started again, and mono_ns with it, they are in order of the wall clock.
"""

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy
import pyarrow

from shards.limits.connection_limits import ConnectionLimits
from shards.limits.rate import DEFAULT_WINDOW, Window
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.config_states import SETTING, in_force
from turnstile.pipeline.events.set_clock import SET_NS
from turnstile.pipeline.events.survey import parsed_detail
from turnstile.pipeline.inputs.arrivals_at_cluster import ARRIVED, KINDS
from turnstile.pipeline.plan.one_window import OneWindow
from turnstile.pipeline.plan.variants import raised

_WINDOW = ("quota.window.num", "quota.window.size.seconds")


class RateFacts(NamedTuple):
    """A rate that the log alone asks for, the same with headroom, and how many arrivals that refuses."""

    without_headroom: int
    rate: int
    refused: int


class Asked(NamedTuple):
    """The question: `at_most`, the share of arrivals that `few_out` may refuse; room above it; and rates to try."""

    at_most: float
    headroom: Fraction
    rates: tuple[int, ...] = ()


class ClusterFacts(NamedTuple):
    """`refused_then`: of the arrivals, by whatever limit. `all_in`: the rate that refuses none of them; `few_out`: one that refuses
    at most the share that it may; `tried`: each rate that was asked about, and how many it refuses. `brokers`: those of which
    there are events; `size`: how many there were, 0 of a log that does not say it. `is_by_wall`: as judged_by_mono_ns; `set_ns`: by
    how much the wall clock was set meanwhile."""

    arrivals: int
    refused_then: int
    window: Window
    all_in: RateFacts
    few_out: RateFacts
    tried: list[tuple[int, int]]
    brokers: list[int]
    size: int
    is_by_wall: bool
    set_ns: int


DDL = "facts string"
_FACTS = pyarrow.schema([("facts", pyarrow.string())])


def facts_of(arrived: pyarrow.Table, asked: Asked) -> ClusterFacts:
    """The facts of ARRIVED."""
    is_arrival = arrays.is_one_of(arrived, "kind", KINDS)
    is_by_wall = arrived["at_ns"].null_count > 0 or _was_started_again(arrived)
    arrivals = arrived.filter(pyarrow.array(is_arrival))
    wall_us = arrays.numbers(arrivals, "wall_us")
    at_ms = numpy.sort(wall_us // 1000 if is_by_wall else arrays.numbers(arrivals, "at_ns") // 1_000_000)
    set_up = _ClusterSetUp.of(arrived.filter(pyarrow.array(~is_arrival)))
    window = OneWindow(at_ms, set_up.window)
    allowed = int(Fraction(repr(asked.at_most)) * len(at_ms))
    return ClusterFacts(
        arrivals=len(at_ms),
        refused_then=int(arrays.is_one_of(arrivals, "kind", ("refused",)).sum()),
        window=set_up.window,
        all_in=_rate_facts(window, 0, asked.headroom),
        few_out=_rate_facts(window, allowed, asked.headroom),
        tried=[(rate, len(window.refused(rate))) for rate in dict.fromkeys(asked.rates)],
        brokers=sorted({*numpy.unique(arrays.numbers(arrived, "broker")).tolist()} - {-1}),
        size=set_up.brokers,
        is_by_wall=is_by_wall,
        set_ns=0 if is_by_wall else _set_ns(wall_us * 1000 - arrays.numbers(arrivals, "at_ns")),
    )


def facts_in_task(asked: Asked, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """The facts as one row of text, made in a task of Spark that has all of ARRIVED."""
    table = pyarrow.Table.from_batches([batch.cast(ARRIVED) for batch in batches], ARRIVED)
    yield pyarrow.RecordBatch.from_pylist([{"facts": json.dumps(facts_of(table, asked))}], _FACTS)


def of_text(text: str) -> ClusterFacts:
    """The facts that a task told."""
    values = ClusterFacts(*json.loads(text))
    return values._replace(
        window=Window(*values.window),
        all_in=RateFacts(*values.all_in),
        few_out=RateFacts(*values.few_out),
        tried=[(rate, refused) for rate, refused in values.tried],
    )


def _rate_facts(window: OneWindow, allowed: int, headroom: Fraction) -> RateFacts:
    observed = window.smallest(allowed)
    rate = raised(observed, headroom)
    return RateFacts(observed, rate, len(window.refused(rate)))


def _was_started_again(arrived: pyarrow.Table) -> bool:
    """True if a process has instants before those of the one that it followed, so that mono_ns began anew."""
    broker, shard, epoch, at_ns = (arrays.numbers(arrived, name) for name in ("broker", "shard", "epoch", "at_ns"))
    order, starts = arrays.grouped(broker, shard, epoch)
    if not len(starts):
        return False
    low, high = (of.reduceat(at_ns[order], starts) for of in (numpy.minimum, numpy.maximum))
    first = order[starts]
    follows = (broker[first][1:] == broker[first][:-1]) & (shard[first][1:] == shard[first][:-1])
    return bool((follows & (low[1:] < high[:-1] - SET_NS)).any())


def _set_ns(ahead_ns: arrays.Array) -> int:
    return int(ahead_ns.max() - ahead_ns.min()) if len(ahead_ns) else 0


class _ClusterSetUp(NamedTuple):
    """The number of brokers that processes say there are, 0 if none does, and the windows of their rates: where a cluster was
    started again with others, those of its last start."""

    brokers: int
    window: Window

    @classmethod
    def of(cls, events: pyarrow.Table) -> "_ClusterSetUp":
        """`events`: of TOLD, as ARRIVED has them."""
        brokers, window = 0, DEFAULT_WINDOW
        rows = sorted(events.to_pylist(), key=lambda row: (row["epoch"], row["broker"], row["shard"]))
        for row in rows:
            detail = parsed_detail(row["detail"])
            if not isinstance(detail, dict):
                continue
            if row["kind"] == "shard_up":
                said = detail.get("brokers")
                brokers = max(brokers, said if isinstance(said, int) else 0)
            elif detail.get("full") and row["broker"] >= 0:
                window = _window(detail["changes"])
        return cls(brokers, window)


def _window(changes: list[tuple[str, str, object]]) -> Window:
    state = {(kind, key): value for kind, key, value in changes}
    limits = ConnectionLimits()
    for name in _WINDOW:
        value = in_force(state, (SETTING, f"/{name}"))
        limits = limits if value is None else limits.with_change(name, str(value))
    return limits.window
