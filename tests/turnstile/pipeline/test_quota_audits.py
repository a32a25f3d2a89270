"""Audits of client quotas: journals of the meters that run, with homes that stop, die and change, are found to have held."""

import json
from typing import Any

import metered
import pyarrow
import pytest

from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.audit.audit_result import HELD, AuditResult
from turnstile.pipeline.events.journal import EVENTS, Journal
from turnstile.pipeline.events.rows import RowsHere

QUOTAS = ("quota_charges", "quota_in_force", "quota_one_meter", "quota_carried_on", "quota_throttles")


def judged(events: list[dict[str, Any]]) -> AuditResult:
    return audit(Journal(RowsHere(pyarrow.Table.from_pylist(events, EVENTS)), [], is_live=False))


@pytest.mark.parametrize("seed", range(10))
def test_whatever_happens_to_homes_every_charge_is_found_right(seed: int) -> None:
    events = metered.run(seed)
    assert events is not None
    result = judged(events)
    assert {check.name: check.verdict for check in result.checks if check.verdict != HELD} == {}
    assert {check.name for check in result.checks} >= set(QUOTAS)
    charges = sum(event["kind"] == "charge" for event in events)
    assert f"{charges:,} charges" in next(check.detail for check in result.checks if check.name == "quota_charges")


def test_each_meter_that_lost_its_home_is_counted() -> None:
    """In this one a home was stopped, and its stand-ins went on from what it had told."""
    events = metered.run(234)
    assert events is not None
    details = {check.name: check.detail for check in judged(events).checks}
    stand_ins = sum(event["kind"] == "charge" and event["reason"] == "stand_in" for event in events)
    assert stand_ins and f"{stand_ins:,} charges by stand-ins" in details["quota_one_meter"]


def test_a_journal_without_quotas_has_no_such_check() -> None:
    config = {"changes": [["setting", "/max.connections", "9"]], "full": True, "acknowledged": False}
    row = {"kind": "config", "broker": -1, "shard": -1, "epoch": 0, "seq": 0, "mono_ns": 1, "ts_us": 1, "version": 1}
    result = judged([{**row, "detail": json.dumps(config)}])
    assert not set(QUOTAS) & {check.name for check in result.checks}
