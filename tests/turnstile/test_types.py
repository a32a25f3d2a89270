"""A project of another's that imports `turnstile` from this environment, as mypy sees it: also from an editable install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = """
from turnstile import AsyncCluster, Cluster, KafkaContainer

def fine(cluster: Cluster) -> str:
    for fault in cluster.faults():
        print(fault["name"], fault["fired"] + 1)
    return cluster.fault("error", api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)

def wrong(cluster: Cluster, other: AsyncCluster) -> None:
    cluster.fault("eror")
    cluster.fault("delay", delayms=5)
    other.fault("delay", delay_ms="5")
    KafkaContainer(shard=2)
    AsyncCluster(brokers="3")
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("project")
    (folder / "suite.py").write_text(PROJECT)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    command = [sys.executable, "-m", "mypy", "--strict", "--no-color-output", "suite.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    return done.stdout + done.stderr


def test_the_package_is_found_and_typed(said: str) -> None:
    assert "import-not-found" not in said and "import-untyped" not in said
    lines = {int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line}
    assert lines == {10, 11, 12, 13, 14}, said


def test_a_mistyped_option_is_named(said: str) -> None:
    assert 'Unexpected keyword argument "delayms"' in said
    assert "Literal['eror']" in said
