"""A few fresh scenarios through Kafka's classes themselves, where `make oracle` has built the program once."""

import json

import oracle_kafka
import pytest
from oracle_scenarios import connection_scenario, record_scenario

from turnstile.replay.stream import replay


@pytest.mark.jars
@pytest.mark.skipif(not oracle_kafka.is_built(), reason="Kafka's jars are not here; `make oracle` fetches them")
def test_turnstile_answers_fresh_scenarios_as_kafka_does() -> None:
    scenarios = [connection_scenario(seed) for seed in range(9000, 9005)]
    scenarios += [record_scenario(seed) for seed in range(9000, 9005)]
    for lines, expected in zip(scenarios, oracle_kafka.answers(scenarios), strict=True):
        assert [json.loads(answer) for answer in replay(lines)] == expected
