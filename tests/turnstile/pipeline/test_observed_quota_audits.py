"""Audits of observed client quotas: judged as enforced ones are, of meters whose events have kinds of their own."""

from __future__ import annotations

import json
from typing import Any

import metered
import pytest
import tampered_quotas
from test_quota_audits import QUOTAS, judged

from turnstile.pipeline.audit.audit_result import EXCEEDED, HELD, NOT_JUSTIFIED, UNKNOWN

Event = dict[str, Any]
KINDS = {"charge": "observed_charge", "meter": "observed_meter"}
OBSERVED = {f"observed_{name}" for name in QUOTAS if name != "quota_throttles"}


def observed(events: list[Event]) -> list[Event]:
    """The same journal, of quotas that were observed: no client was told of a throttle."""
    found = []
    for event in events:
        if event["kind"] == "throttled":
            continue
        row = {**event, "kind": KINDS.get(event["kind"], event["kind"])}
        if event["kind"] == "config":
            detail = json.loads(event["detail"])
            changes = [
                ["observed_quota" if kind == "quota" else kind, key, value] for kind, key, value in detail["changes"]
            ]
            row["detail"] = json.dumps({**detail, "changes": changes})
        found.append(row)
    return tampered_quotas.renumbered(found)


@pytest.mark.parametrize("seed", [3, tampered_quotas.SEED])
def test_every_observed_charge_is_found_right(seed: int) -> None:
    events = metered.run(seed)
    assert events is not None
    result = judged(observed(events))
    assert {check.name: check.verdict for check in result.checks if check.verdict != HELD} == {}
    names = {check.name for check in result.checks}
    assert names >= OBSERVED and not names & set(QUOTAS)
    charges = sum(event["kind"] == "charge" for event in events)
    details = {check.name: check.detail for check in result.checks}
    assert f"{charges:,} charges" in details["observed_quota_charges"]


def test_enforced_and_observed_quotas_are_judged_apart() -> None:
    """A quota in force and another one, observed, of the same clients: each charge by the tables of its own world."""
    events = [dict(event) for event in tampered_quotas.journal()]
    both = []
    for event in events:
        both.append(event)
        if event["kind"] in KINDS:
            both.append({**event, "kind": KINDS[event["kind"]]})
        elif event["kind"] == "config":
            detail = json.loads(event["detail"])
            more = [["observed_quota", key, value] for kind, key, value in detail["changes"] if kind == "quota"]
            both[-1] = {**event, "detail": json.dumps({**detail, "changes": [*detail["changes"], *more]})}
    result = judged(tampered_quotas.renumbered(both))
    assert {check.name: check.verdict for check in result.checks if check.verdict != HELD} == {}
    assert {check.name for check in result.checks} >= OBSERVED | set(QUOTAS)


@pytest.mark.parametrize(
    ("edit", "check", "verdict"),
    [
        ({"throttle_ms": -1}, "observed_quota_charges", EXCEEDED),
        ({"throttle_ms": 1}, "observed_quota_charges", NOT_JUSTIFIED),
        ({"limit_value": 1}, "observed_quota_in_force", EXCEEDED),
        ({"detail": "{"}, "observed_quota_charges", UNKNOWN),
    ],
)
def test_a_tampered_charge_is_found(edit: dict[str, Any], check: str, verdict: str) -> None:
    events = [dict(event) for event in tampered_quotas.journal()]
    charge = tampered_quotas.throttling(events)
    for name, value in edit.items():
        charge[name] = value if isinstance(value, str) else charge[name] + value
    verdicts = {each.name: each.verdict for each in judged(observed(events)).checks}
    assert verdicts[check] == verdict
