"""quixstreams, a stream processor in Python, exactly once: throttled, capped, a shard and an instance killed; counts stay exact."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from harness import Cluster, running
from programs import Desk, Program, capped, connections, last_count, throttled

from scripts.peers import environments, fetching

pytestmark = pytest.mark.long

CONNECTIONS = 6
"""The most that an instance has to its only broker: 5 as a rule, and one that another is about to replace."""
PROGRAM = Path(__file__).parent / "count_words_quix.py"


@pytest.fixture(scope="module")
def python() -> str:
    """Of the environment of quixstreams; skips where it can't be had."""
    try:
        return environments.python("quixstreams")
    except fetching.Missing as missing:
        pytest.skip(str(missing))


def instance(python: str, cluster: Cluster, folder: Path) -> Program:
    return Program([python, str(PROGRAM), cluster.bootstrap, "count-words", str(folder)], folder.with_suffix(".log"))


def say(desk: Desk, count: int) -> None:
    """The key is the word: state is kept by key, so each word stays on its partition."""
    for number in range(count):
        word = f"seventh-{number % 7}"
        desk.said[word] += 1
        desk.produce("lines", word, key=word)


def test_counts_are_exact_after_limits_and_kills(python: str, tmp_path: Path) -> None:
    with (
        running(tmp_path / "data", "--set", "group.initial.rebalance.delay.ms=0", shards=2) as cluster,
        Desk(cluster.bootstrap, {"lines": 4, "counts": 4}) as desk,
    ):
        first, second = (instance(python, cluster, tmp_path / name) for name in ("first", "second"))
        try:
            say(desk, 140)
            desk.until_exact("counts", last_count)
            assert connections(cluster)[0] <= 2 * CONNECTIONS
            with throttled(cluster, 300):
                say(desk, 280)
            desk.until_exact("counts", last_count)
            with capped(cluster, 2):
                for shard in (0, 1):
                    os.kill(cluster.shard_pid(shard), signal.SIGKILL)
                say(desk, 140)
            first.kill()
            say(desk, 140)
            desk.until_exact("counts", last_count, within_s=90)
        finally:
            second.end(by_signal=True)
            first.kill()
        desk.until_exact("counts", last_count)
