"""Turnstile answers every golden scenario as Kafka's classes did (`make oracle` made the answers)."""

import json

import oracle_golden
import pytest
from oracle_cases import CASES

from turnstile.replay.stream import replay

GOLDEN = {golden.name: golden for golden in oracle_golden.read()}


@pytest.mark.parametrize("name", GOLDEN)
def test_turnstile_answers_as_kafka_did(name: str) -> None:
    golden = GOLDEN[name]
    assert [json.loads(answer) for answer in replay(golden.lines)] == golden.answers


def test_every_case_of_kafkas_tests_is_among_them_as_it_is_written_now() -> None:
    assert {name: GOLDEN[name].lines for name in CASES} == CASES


def test_generated_scenarios_of_both_kinds_are_among_them() -> None:
    generated = [name for name in GOLDEN if name not in CASES]
    assert sum(name.startswith("connections-") for name in generated) >= 20
    assert sum(name.startswith("records-") for name in generated) >= 20
