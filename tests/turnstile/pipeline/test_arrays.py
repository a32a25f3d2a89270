"""What checks ask of sorted groups of rows, beside plain loops; and moves read in one go, beside one by one."""

import json
import random

import numpy
import pyarrow
import pytest

from turnstile.pipeline.audit import moves
from turnstile.pipeline.events import arrays


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_counted_as_by_a_plain_loop(seed: int) -> None:
    chance = random.Random(seed)
    rows = sorted((chance.randrange(4), chance.randrange(50)) for _ in range(chance.randrange(40)))
    group, at = (numpy.array([row[index] for row in rows], dtype="i8") for index in (0, 1))
    values = numpy.array([chance.randrange(-3, 9) for _ in rows], dtype="i8")
    is_it = numpy.array([chance.random() < 0.4 for _ in rows], dtype=bool)
    starts = arrays.begins(group)
    sums, last, near = (
        arrays.running(values, starts), arrays.latest(is_it, starts), arrays.in_span(group, at, 5, 3, is_it)
    )  # fmt: skip
    for place, (number, instant) in enumerate(rows):
        mine = [index for index in range(len(rows)) if rows[index][0] == number]
        upto = [index for index in mine if index <= place]
        assert sums[place] == sum(values[index] for index in upto)
        assert last[place] == max((index for index in upto if is_it[index]), default=-1)
        assert near[place] == sum(bool(is_it[index]) and -5 <= rows[index][1] - instant <= 3 for index in mine)


def test_the_first_of_each_key_in_order_of_time() -> None:
    key, at_ns = numpy.array([1, 0, 1, 1, 0]), numpy.array([5, 1, 3, 4, 2])
    places, counts = arrays.first_of_each(numpy.arange(5), key, at_ns, 2)
    assert places.tolist() == [1, 4, 2, 3]
    assert counts.tolist() == [2, 0, 3, 0]


def test_moves_are_read_alike_in_one_go_and_one_by_one() -> None:
    details = [
        ("grant", {"pool": "ip:10.0.0.1", "to": 1, "tokens": 2}),
        ("grant", {"pool": "broker", "to": 1, "tokens": 2, "reported": True}),
        ("reclaim", {"pool": "broker", "from": 0, "tokens": 3, "unasked": True}),
        ("grant", {"pool": "rate:ip:10.0.0.1", "to": 0, "tokens": 1, "at_ms": 7, "violated": True}),
        ("grant", {"pool": "rate:listener:A", "to": 0, "tokens": -1, "at_ms": 7, "charged": False}),
        ("reclaim", {"pool": "rate:ip:10.0.0.1", "from": 0, "tokens": 1, "at_ms": 7}),
        ("grant", {"pool": "broker", "to": 1}),
    ]
    events = [
        {
            "broker": 0,
            "shard": 0,
            "epoch": 1,
            "seq": seq,
            "mono_ns": seq,
            "version": 1,
            "kind": kind,
            "detail": json.dumps(told),
        }
        for seq, (kind, told) in enumerate(details)
    ]
    table = pyarrow.Table.from_pylist(events)
    at_once = moves.parse(table).to_pylist()
    one_by_one = moves.parse(pyarrow.Table.from_pylist([*events, {**events[0], "detail": "{", "seq": 99}])).to_pylist()
    assert [row["what"] for row in at_once] == ["grant", "report", "return", "rate", "rate", "rate", "bad"]
    assert [row["what"] for row in one_by_one] == [*(row["what"] for row in at_once), "bad"]
    read = ("broker", "shard", "epoch", "seq", "at_ns", "what", "pool", "peer", "tokens", "is_violated", "is_charged")
    for left, right in zip(at_once[:-1], one_by_one, strict=False):
        assert {name: left[name] for name in read} == {name: right[name] for name in read}


def test_what_a_dead_shard_had_is_a_row_for_each_pool() -> None:
    told = {"from": 1, "tokens": 3, "lost": {"broker": 2, "ip:10.0.0.1": 1}}
    event = {
        "broker": 0,
        "shard": 0,
        "epoch": 1,
        "seq": 0,
        "mono_ns": 0,
        "version": 1,
        "kind": "reclaim",
        "detail": json.dumps(told),
    }
    rows = moves.parse(pyarrow.Table.from_pylist([event])).to_pylist()
    assert [(row["what"], row["pool"], row["peer"], row["tokens"]) for row in rows] == [
        ("lost", "broker", 1, -2), ("lost", "ip:10.0.0.1", 1, -1)
    ]  # fmt: skip
