"""Answers about features, elections, log directories and the quorum are those of Apache Kafka 4.3, field by field."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from feature_codes import converse
from harness import running

from scripts.peers import servers

GOLDEN = Path(__file__).with_name("feature_codes.json")
"""What Kafka 4.3.1 answered."""


def test_answers_are_kafkas(tmp_path):
    if os.environ.get("CLIENTS_PEER") == "kafka":
        with servers.kafka() as server:
            said = converse(server.bootstrap, "elected")
    else:
        with running(tmp_path / "data", brokers=1, shards=2) as cluster:
            said = converse(cluster.bootstrap, "elected")
    assert said == json.loads(GOLDEN.read_text())


@pytest.mark.jars
def test_kafka_features_describes_downgrades_and_upgrades(tmp_path, jvm):
    with running(tmp_path / "data", brokers=3, shards=1) as cluster:

        def tool(*words: str, expect: int = 0) -> str:
            ran = jvm(words[0], "--bootstrap-server", cluster.bootstrap, *words[1:])
            assert ran.code == expect, ran
            return ran.out + ran.err

        def described() -> str:
            lines = tool("kafka-features", "describe").splitlines()
            return next(line for line in lines if "transaction.version" in line)

        assert "FinalizedVersionLevel: 2" in described()
        tool("kafka-features", "downgrade", "--feature", "transaction.version=1")
        assert "FinalizedVersionLevel: 1" in described()
        assert "Can't downgrade" in tool("kafka-features", "downgrade", "--feature", "kraft.version=0", expect=1)
        tool("kafka-features", "upgrade", "--feature", "transaction.version=2")
        assert "FinalizedVersionLevel: 2" in described()
        quorum = tool("kafka-metadata-quorum", "describe", "--status")
        assert "LeaderId:" in quorum and "CurrentVoters:" in quorum
