"""A short run of exactly_once.py; the long one is a command, at the top of that file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from exactly_once import run
from harness import running


@pytest.mark.skipif(bool(os.environ.get("CLIENTS_PEER")), reason="it kills processes of Turnstile")
@pytest.mark.parametrize("brokers", [1, 2])
def test_each_effect_is_there_once_though_shards_are_killed(tmp_path: Path, brokers: int) -> None:
    with running(tmp_path / "data", brokers=brokers, shards=3 - brokers) as cluster:
        outcome = run(cluster, 1200, kill_every_s=1, kills=3, within_s=120)
    assert outcome.wrong == {}
    assert outcome.transactions >= 6
