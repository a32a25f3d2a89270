"""A short run of exactly_once.py; the long one is a command, at the top of that file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from exactly_once import run
from harness import running


@pytest.mark.skipif(bool(os.environ.get("CLIENTS_PEER")), reason="it kills processes of Turnstile")
@pytest.mark.parametrize(
    ("brokers", "client"), [(1, "librdkafka"), (2, "librdkafka"), pytest.param(1, "java", marks=pytest.mark.jars)]
)
def test_each_effect_is_there_once_though_shards_are_killed(
    tmp_path: Path, request: pytest.FixtureRequest, brokers: int, client: str
) -> None:
    if client == "java":
        request.getfixturevalue("jvm")  # skips where Kafka's jars can't be had
    with running(tmp_path / "data", brokers=brokers, shards=3 - brokers) as cluster:
        outcome = run(cluster, 1200, client=client, kill_every_s=1, kills=3, within_s=120)
    assert outcome.wrong == {}
    assert outcome.transactions >= 6
