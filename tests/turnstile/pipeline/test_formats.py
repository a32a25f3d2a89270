"""A hundred generated logs of each format, planned as an independent replay of what was written into them says; five hundred
with TURNSTILE_ALL_SEEDS=1 (`make seeds`).

Every log has networks of its own (its addresses are moved by its number), so that one plan is the plan of all of them: an
address's limits are judged by its own connections alone.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from logs import FORMATS, START, random_log
from plain import Row, replay

from turnstile.pipeline.inputs.addresses import name, parse
from turnstile.pipeline.inputs.connection_logs import load
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.log_sums import LogSums
from turnstile.pipeline.plan.outcomes import outcomes
from turnstile.pipeline.plan.plan import plan

LOGS, FILES = 500 if "TURNSTILE_ALL_SEEDS" in os.environ else 100, 5
CAPS = (1, 2, 3)


def moved(row: Row, number: int) -> Row:
    """The row, moved to an address of log `number` alone and to a minute of its own."""
    address = parse(row[0])
    assert address is not None
    high, low = address
    high += number << 8 if high else 0
    shift = number * 60_000_000
    return (name(high, low + (number << 10 if not high else 0)), row[1] + shift, row[2] + shift, row[3])


@pytest.mark.parametrize("kind", FORMATS)
def test_logs_of_many_seeds_are_planned_as_replayed(spark: Any, tmp_path: Path, kind: str) -> None:
    format, write = FORMATS[kind]
    every: list[Row] = []
    candidates = [Candidate(cap=cap) for cap in CAPS]
    minutes: list[dict[int, int]] = [{} for _ in CAPS]
    for number in range(LOGS):
        log = [moved(row, number) for row in random_log(number, step_us=1_000_000 if kind == "vpcflow" else 1000)]
        every += log
        for place, candidate in enumerate(candidates):
            for index in replay(log, candidate):
                at = log[index][1] // 60_000_000
                minutes[place][at] = minutes[place].get(at, 0) + 1
    size = len(every) // FILES
    for file in range(FILES):
        write(tmp_path / f"{file}", every[file * size : (file + 1) * size])
    source = load(spark, [str(tmp_path)], format)
    found = plan(source, candidates)
    assert found.connections == len(every) == LOGS * 25
    assert found.entities == len({row[0] for row in every}) and not found.bad_rows
    assert [one["refused"] for one in found.candidates] == [sum(each.values()) for each in minutes]
    thorough = source.again() if kind == "zeek" and source.again else source
    sums = LogSums(outcomes(thorough.arrived, candidates, 2).toArrow())
    assert [sums.minutes[place] for place in range(len(CAPS))] == minutes
    assert min(sums.by_number["first"]) >= START
