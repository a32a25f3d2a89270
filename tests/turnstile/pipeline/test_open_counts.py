"""Open connections are counted in slices of time as in one, closes and opens of one instant on either side of a cut included."""

import json
import random
from functools import partial
from typing import Any

import pyarrow
import pytest
from local_rdd import in_slices

from turnstile.pipeline.events import open_counts
from turnstile.pipeline.events.config_states import ConfigEvent
from turnstile.pipeline.events.rows import RowsHere
from turnstile.pipeline.events.timeline import Timeline


def steps(seed: int, connections: int) -> list[dict[str, Any]]:
    """Opens and closes of one busy address and many quiet ones; some never close."""
    chance = random.Random(seed)
    rows = []
    for conn in range(connections):
        ip = chance.choice(["10.0.0.1", f"10.0.1.{chance.randrange(40)}"])
        same = {"broker": 0, "listener": chance.choice(["A", "B"]), "ip": ip, "version": 1, "conn": conn}
        start_ns = chance.randrange(1000)
        rows.append({**same, "at_ns": start_ns, "change": 1})
        if chance.random() < 0.9:
            rows.append({**same, "at_ns": start_ns + chance.randrange(1, 200), "change": -1})
    return rows


def timeline() -> Timeline:
    caps = {"kafka_connections_max_per_ip": "4", "kafka_connections_max": "40", "listener.name.a.max.connections": "20"}
    detail = {"changes": [["setting", f"/{name}", value] for name, value in caps.items()], "full": True}
    return Timeline([ConfigEvent(1, 0, 0, json.dumps(detail))], {1: 0}, ["A", "B"])


@pytest.mark.parametrize("kinds", [("ip",), ("broker",), open_counts.KINDS])
@pytest.mark.parametrize("slices", [1, 2, 7, 40])
def test_slices_count_as_the_whole(slices: int, kinds: tuple[str, ...]) -> None:
    whole = pyarrow.Table.from_pylist(steps(3, 400), open_counts.STEPS)
    bounds = sorted(random.Random(slices).sample(range(1, 1200), slices - 1))
    judge = partial(open_counts.over_the_cap, timeline())
    found, expected = (
        rows.swept(kinds, judge, open_counts.EXCESS, closes_first=True).to_pylist()
        for rows in (in_slices(whole, bounds), RowsHere(whole))
    )
    for kind in kinds:
        mine, all_of_them = ([row for row in rows if row["kind"] == kind] for rows in (found, expected))
        assert sum(row["excess"] for row in mine) == all_of_them[0]["excess"] > 10
        assert min(row["at_ns"] for row in mine) == all_of_them[0]["at_ns"]
