"""Audits and plans of client quotas beside Kafka's own classes, on generated logs: no difference."""

import json
import sys
from pathlib import Path
from typing import Any

import oracle_kafka
import pyarrow
import pytest
from oracle_scenarios import record_scenario
from quota_journal import MeteredShard

from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.audit.audit_result import HELD
from turnstile.pipeline.events.journal import EVENTS, Journal
from turnstile.pipeline.events.rows import RowsHere
from turnstile.pipeline.quota_plan.what_if import decisions, scenario
from turnstile.replay.stream import replay

sys.path.insert(0, str(Path(__file__).parents[1] / "turnstile" / "pipeline"))

from quota_logs import quotas, usage

needs_kafka = pytest.mark.skipif(
    not oracle_kafka.is_built(), reason="Kafka's jars are not here; `make oracle` fetches them"
)
LOGS = 300


def not_held(rows: list[dict[str, Any]]) -> list[Any]:
    result = audit(Journal(RowsHere(pyarrow.Table.from_pylist(rows, EVENTS)), [], is_live=False))
    return [check for check in result.checks if check.verdict != HELD]


def metered(seed: int) -> tuple[list[str], MeteredShard]:
    """A scenario whose windows are set before the first charge, and a shard that ran it."""
    lines = record_scenario(seed, 60)
    shard = MeteredShard()
    shard.run(lines)
    return lines, shard


def test_audits_find_what_meters_journal_right_and_these_answer_as_replay() -> None:
    for seed in range(40):
        lines, shard = metered(seed)
        assert shard.answers == [json.loads(answer) for answer in replay(lines)], seed
        assert not_held(shard.rows) == [], seed


def test_one_millisecond_is_seen() -> None:
    seen = 0
    for seed in range(10):
        _, shard = metered(seed)
        for row in shard.rows:
            if row["kind"] == "charge" and row["throttle_ms"]:
                row["throttle_ms"] += 1
                assert not_held(shard.rows), seed
                seen += 1
                break
    assert seen > 3


@pytest.mark.jars
@needs_kafka
def test_audits_of_300_logs_beside_kafkas_classes() -> None:
    """What Kafka's classes answer is what the meters journaled, and that is what the audit's arithmetic gives."""
    runs = [metered(seed) for seed in range(LOGS)]
    for number, ((_, shard), expected) in enumerate(
        zip(runs, oracle_kafka.answers([lines for lines, _ in runs]), strict=True)
    ):
        assert shard.answers == expected, number
        assert not_held(shard.rows) == [], number


@pytest.mark.jars
@needs_kafka
def test_plans_of_300_logs_beside_kafkas_classes() -> None:
    logs = [(usage(seed), quotas(seed)) for seed in range(LOGS)]
    scenarios = [[json.dumps(event) for event in scenario(log, candidate)] for log, candidate in logs]
    for number, ((log, candidate), expected) in enumerate(zip(logs, oracle_kafka.answers(scenarios), strict=True)):
        told = [
            {"outcome": "accepted" if charged.accepted else "refused", "throttle_ms": charged.throttle_ms}
            for _, charged in decisions(log, candidate)
        ]
        assert told == expected, number
