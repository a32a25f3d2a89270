"""The sweep cut in pieces counts as in one, with addresses that are cut in time and such that are not."""

import json
import random
from functools import partial
from typing import Any

import pyarrow
import pytest

from turnstile.pipeline.events import spark_sweep, sweep
from turnstile.pipeline.events.timeline import ConfigEvent, Timeline


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


@pytest.mark.parametrize("kinds", [("ip",), ("broker",), sweep.KINDS])
def test_pieces_count_as_the_whole(spark: Any, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...]) -> None:
    rows = steps(3, 400)
    monkeypatch.setattr(spark_sweep, "SLICE_ROWS", 90)
    whole = pyarrow.Table.from_pylist(rows, sweep.STEPS)
    carry = pyarrow.table({})
    frame = spark.createDataFrame(whole.to_pylist(), sweep.ddl(sweep.STEPS))
    cut, slices = spark_sweep.sliced(frame, rows=len(rows))
    assert slices > 4
    assert [row["ip"] for row in cut.where("is_hot").select("ip").distinct().collect()] == ["10.0.0.1"]
    judge = partial(sweep.beyond, timeline())
    found = spark_sweep.judged(cut, slices, kinds, judge, sweep.EXCESS, closes_first=True).collect()
    for kind in kinds:
        mine = [row for row in found if row["kind"] == kind]
        expected = sweep.beyond(timeline(), sweep.counts(whole, carry, kind))
        assert sum(row["excess"] for row in mine) == expected["excess"][0].as_py() > 10
        assert min(row["at_ns"] for row in mine) == expected["at_ns"][0].as_py()


def test_a_place_is_how_many_bounds_are_at_or_before_it(spark: Any) -> None:
    chance = random.Random(1)
    far = 10**17  # three years: more than a double can tell apart
    bounds = sorted({*(chance.randrange(far) for _ in range(50)), *range(far // 3, far // 3 + 200, 2)})
    near = [bound + step for bound in bounds for step in (-1, 1)]
    instants = [-1, 0, 2 * far, *near, *(chance.randrange(-far, 2 * far) for _ in range(300))]
    frame = spark.createDataFrame([(instant,) for instant in [*instants, *bounds]], "at_ns long")
    for row in frame.select("at_ns", spark_sweep._place(frame["at_ns"], bounds).alias("place")).collect():
        assert row["place"] == sum(bound <= row["at_ns"] for bound in bounds)
