"""Audits of client quotas: journals of the product's own meters, whose homes stop, die and change, have the verdict `held`."""

import json
from pathlib import Path
from typing import Any

import metered
import pyarrow
import pytest
import storms
import tampered_quotas

from shards.limits.node_throughput import NODE_IN, NODE_OUT
from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.audit.audit_result import EXCEEDED, HELD, NOT_JUSTIFIED, AuditResult
from turnstile.pipeline.events.journal import EVENTS, Journal, here
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


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [(NODE_IN, HELD), (NODE_OUT, HELD), ("redpanda:producer_byte_rate", HELD), ("producer_byte_rate", NOT_JUSTIFIED)],
)
def test_delays_by_redpandas_limits_are_not_judged(limit: str, verdict: str) -> None:
    """No meter decided these delays. Under the name of a client quota the same delay is `not justified`."""
    events = [dict(event) for event in tampered_quotas.journal()]
    told = next(event for event in events if event["kind"] == "throttled")
    events.append({**told, "limit": limit, "limit_value": 1000.0, "throttle_ms": 77})
    checks = {check.name: check.verdict for check in judged(tampered_quotas.renumbered(events)).checks}
    assert checks.pop("quota_throttles") == verdict
    assert set(checks.values()) == {HELD}


@pytest.mark.parametrize(("closed_ms", "verdict"), [(-200, HELD), (200, HELD), (-2_100, EXCEEDED), (2_100, EXCEEDED)])
def test_a_client_that_left_may_not_have_been_told_its_throttle(closed_ms: int, verdict: str, tmp_path: Path) -> None:
    """A home may record a charge after the client of it has left. The close is in another part of the journal."""
    events = [dict(event) for event in tampered_quotas.journal()]
    untold = tampered_quotas.throttle(events)
    untold["kind"] = "closed"
    untold["mono_ns"] += closed_ms * tampered_quotas.MS
    untold["reason"], untold["throttle_ms"] = "client", None
    for number, event in enumerate(tampered_quotas.renumbered(events)):
        event.update(ts=event["mono_ns"] // 1000, conn_id=number if event is untold else None)
    storms.write(tmp_path / "close", [untold])
    (tmp_path / "close" / "0.parquet").rename(tmp_path / "1.parquet")
    storms.write(tmp_path, [event for event in events if event is not untold])
    journal = here([tmp_path])
    assert journal is not None
    assert {check.name: check.verdict for check in audit(journal).checks}["quota_throttles"] == verdict


def test_a_journal_without_quotas_has_no_such_check() -> None:
    config = {"changes": [["setting", "/max.connections", "9"]], "full": True, "acknowledged": False}
    row = {"kind": "config", "broker": -1, "shard": -1, "epoch": 0, "seq": 0, "mono_ns": 1, "ts_us": 1, "version": 1}
    result = judged([{**row, "detail": json.dumps(config)}])
    assert not set(QUOTAS) & {check.name for check in result.checks}
