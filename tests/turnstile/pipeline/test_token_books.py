"""Checks of tokens cut in time find what they find in one piece."""

import json
import random
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow
import pyarrow.compute
import pytest
from local_rdd import in_slices

from turnstile.pipeline.audit.grant_checks import BEYOND, beyond
from turnstile.pipeline.audit.token_books import CARRY
from turnstile.pipeline.audit.token_steps import STEPS, WHAT
from turnstile.pipeline.events import open_counts
from turnstile.pipeline.events.config_states import ConfigEvent
from turnstile.pipeline.events.timeline import Timeline


def steps(seed: int, count: int) -> list[dict[str, Any]]:
    """Moves and connections of one pool with nearly all and three quiet ones, of homes and shards that start anew."""
    chance = random.Random(seed)
    rows = []
    epochs = dict.fromkeys(range(3), 1)
    at_ns = 0
    for _ in range(count):
        at_ns += chance.choice([1, 1, 5])
        shard = chance.randrange(3)
        if chance.random() < 0.03:
            epochs[shard] += 1
        pool = chance.choice(["broker"] * 20 + ["ip:10.0.0.1", "ip:10.0.0.2"])
        same = {"broker": 0, "span": 1, "shard": shard, "is_own": shard == 0, "at_ns": at_ns, "pool": pool,
                "version": chance.choice([1, 2]), "is_carried": False}  # fmt: skip
        if chance.random() < 0.5:
            what = chance.choice(["grant"] * 4 + ["return"] * 3 + ["report", "lost"])
            sign = 1 if what in ("grant", "report") else -1
            rank = int(sign > 0) if shard == 0 else 1 if sign > 0 else 3
            tokens = 0 if what == "lost" and shard else sign * chance.randrange(1, 4)
            moved = {"rank": rank, "epoch": epochs[0], "what": WHAT[what], "tokens": tokens, "change": 0}
            rows.append({**same, **moved})
        else:
            change = chance.choice([1, 1, -1])
            rows.append({**same, "rank": 2 if change > 0 else 0, "epoch": 0, "what": 0, "tokens": 0, "change": change})
    return rows


def timeline() -> Timeline:
    caps = {"kafka_connections_max": "12", "kafka_connections_max_per_ip": "3"}
    first = {"changes": [["setting", f"/{name}", value] for name, value in caps.items()], "full": True}
    second = {"changes": [["setting", "/kafka_connections_max", "9"]]}
    acknowledged = {**second, "acknowledged": True}
    configs = [ConfigEvent(1, 0, 0, json.dumps(first)), ConfigEvent(2, 3, -1, json.dumps(second))]
    return Timeline([*configs, ConfigEvent(2, 5, -1, json.dumps(acknowledged))], {1: 0, 2: 3}, ["A"])


def found(table: pyarrow.Table) -> list[tuple[Any, ...]]:
    names = ("check", "broker", "pool", "shard", "at_ns", "open", "tokens", "allowed", "version")
    return sorted(tuple(row[name] for name in names) for row in table.to_pylist())


@pytest.mark.parametrize("seed", range(25))
def test_slices_with_what_is_carried_into_them_are_judged_as_one_piece(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_counts, "SHOWN", 10_000)
    table = pyarrow.Table.from_pylist(steps(seed, 400), STEPS)
    expected = found(beyond(timeline(), table))
    assert len(expected) > 20
    chance = random.Random(seed)
    last = max(table["at_ns"].to_pylist())
    bounds = [0, *sorted(chance.sample(range(1, last), 6)), last + 1]
    slices = [
        table.filter((pyarrow.compute.field("at_ns") >= low) & (pyarrow.compute.field("at_ns") < high))
        for low, high in pairwise(bounds)
    ]
    carried = CARRY.carried([CARRY.ends(each) for each in slices])
    pieces = [
        beyond(timeline(), pyarrow.concat_tables([before, each])) for before, each in zip(carried, slices, strict=True)
    ]
    assert found(pyarrow.concat_tables(pieces)) == expected


def summed(table: pyarrow.Table) -> dict[str, tuple[int, int]]:
    """Check -> how many, and the first of them."""
    rows = table.to_pylist()
    checks = {row["check"] for row in rows}
    mine = {check: [row for row in rows if row["check"] == check] for check in checks}
    return {each: (sum(row["count"] for row in of), min(row["at_ns"] for row in of)) for each, of in mine.items()}


@pytest.mark.parametrize("slices", [2, 7, 40])
def test_steps_in_slices_are_judged_as_one_piece(slices: int) -> None:
    table = pyarrow.Table.from_pylist(steps(99, 900), STEPS)
    bounds = sorted(random.Random(slices).sample(range(1, max(table["at_ns"].to_pylist())), slices - 1))
    rows = in_slices(table, bounds)
    cut = rows.by_in_time(("broker", "pool"), partial(beyond, timeline()), BEYOND, CARRY).table()
    assert summed(cut) == summed(beyond(timeline(), table))
