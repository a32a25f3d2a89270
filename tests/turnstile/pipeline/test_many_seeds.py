"""Every kind of violation at random places of many seeds, and honest brokers beside them: one audit for all of a sort.

25 seeds of each kind, and with TURNSTILE_ALL_SEEDS=1 (`make seeds`) a hundred.
"""

import os
import random
from pathlib import Path
from typing import Any

import moves
import pytest
import rated
from crowd import MISSING, PLANTS, Broker, coordinator, versions, write_unreadable
from storms import write

from turnstile.pipeline.audit import rate_unit_checks
from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.audit.audit_result import AuditResult
from turnstile.pipeline.events import spark_journal, spark_rows
from turnstile.pipeline.events.journal import here
from turnstile.pipeline.events.spark_events import read

SEEDS = 100 if "TURNSTILE_ALL_SEEDS" in os.environ else 25
FINDINGS = ("exceeded", "not justified")


def found(result: AuditResult, check: str) -> set[int]:
    """The brokers that a check says something about."""
    [mine] = [each for each in result.checks if each.name == check]
    return set(mine.brokers)


def test_every_cap_and_token_at_many_seeds(tmp_path: Path) -> None:
    plan = versions(1)
    kinds = [None, *PLANTS]
    brokers = [
        Broker(number, number, plan).run(None if kind is None else PLANTS[kind][0])
        for number, kind in enumerate(kind for kind in kinds for _ in range(SEEDS))
    ]
    events = [event for broker in brokers for event in broker.numbered()]
    events += coordinator(plan, (event for broker in brokers for event in broker.lost), events)
    write(tmp_path, events, parts=4)
    result = audit(here([tmp_path]))
    assert result.verdict == "exceeded"
    planted: dict[str, set[int]] = {}
    for place, kind in enumerate(PLANTS, start=1):
        of_kind = range(place * SEEDS, (place + 1) * SEEDS)
        planted.setdefault(PLANTS[kind][1], set()).update(of_kind)
    for check, expected in planted.items():
        assert found(result, check) == expected, check
    for check in result.checks:
        assert (check.verdict in FINDINGS) == (check.name in planted), check
        assert check.name not in planted or len(check.evidence) == 10
        assert {each["broker"] for each in check.evidence} <= planted.get(check.name, set())


def test_spark_finds_the_same_in_many_pieces(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = versions(3)
    kinds = ("address", "external", "broker", "slots")
    brokers = [
        Broker(number, number, plan).run(PLANTS[kinds[number // 2]][0] if number < 8 else None) for number in range(10)
    ]
    events = [event for broker in brokers for event in broker.numbered()]
    write(tmp_path, events + coordinator(plan, (event for broker in brokers for event in broker.lost), events))
    whole = audit(here([tmp_path]))
    monkeypatch.setattr(spark_journal, "SLICE_ROWS", 100)
    monkeypatch.setattr(spark_rows, "TASK_ROWS", 500)
    cut = audit(read(spark, [str(tmp_path)]).journal())
    assert cut.as_json() == whole.as_json()
    assert found(cut, "ip_cap") == {0, 1} and found(cut, "listener_cap") == {2, 3}
    assert found(cut, "broker_cap") == {4, 5, 6, 7}


def test_missing_events_at_many_seeds(tmp_path: Path) -> None:
    plan = versions(2)
    source = random.Random(2)
    number, events, whole, lost, unreadable = 0, [], [], [], []
    for kind in (None, *MISSING, "unreadable"):
        for _ in range(SEEDS):
            broker = Broker(number, number, plan).run()
            mine = broker.numbered()
            whole += mine
            if kind == "unreadable":
                mine = write_unreadable(tmp_path, mine, source)
                unreadable.append(number)
            elif kind is not None:
                mine = MISSING[kind](mine, source)
            events += mine
            lost += broker.lost
            number += 1
    write(tmp_path, events + coordinator(plan, lost, whole), parts=4)
    result = audit(here([tmp_path]))
    assert result.verdict == "unknown", [check for check in result.checks if check.verdict == "exceeded"]
    assert found(result, "sequence") == set(range(SEEDS, number))


def test_every_rate_at_many_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_unit_checks, "SLICE", 9)
    events, planted = [], {}
    for place, kind in enumerate([None, *rated.PLANTS]):
        of_kind = range(place * SEEDS, (place + 1) * SEEDS)
        plant, phase, check = (None, 1, "") if kind is None else rated.PLANTS[kind]
        planted.setdefault(check, set()).update(of_kind)
        for number in of_kind:
            events += rated.RatedBroker(number, number).run(plant, phase).numbered()
    events += rated.coordinator(events)
    write(tmp_path, events, parts=4)
    result = audit(here([tmp_path]))
    for check in result.checks:
        assert found(result, check.name) == planted.get(check.name, set()), check
        assert (check.verdict in FINDINGS) == (check.name in planted), check
    assert {check.name for check in result.checks} > planted.keys() - {""}


def test_every_book_of_a_home_at_many_seeds(tmp_path: Path) -> None:
    """Honest journals of the real token protocol hold, and what is planted in them is found."""
    rules = moves.plan(4)
    events, planted, numbers = [], {}, {None: [], **{kind: [] for kind in moves.PLANTS}}
    seed = number = 0
    while any(len(done) < SEEDS for done in numbers.values()):
        run = moves.Planned(seed, rules)
        run.run()
        seed += 1
        for kind, done in numbers.items():
            broker = moves.Simulated(number, run)
            if len(done) < SEEDS and (kind is None or broker.plant(moves.PLANTS[kind][0])):
                events += broker.rows()
                done.append(number)
                planted.setdefault("" if kind is None else moves.PLANTS[kind][1], set()).add(number)
                number += 1
    write(tmp_path, events + moves.coordinator(rules, events), parts=4)
    result = audit(here([tmp_path]))
    for check in ("granted_within_cap", "used_within_grants"):
        assert found(result, check) == planted[check], check
    for check in result.checks:
        assert not planted[""] & found(result, check.name), check
