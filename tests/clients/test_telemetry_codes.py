"""Answers about client telemetry, client metrics resources and configs of groups are those of Apache Kafka 4.3, field by field."""

from __future__ import annotations

import json
import os
from pathlib import Path

from harness import running
from telemetry_codes import KAFKA, SETTINGS, converse

from scripts.peers import servers

GOLDEN = Path(__file__).with_name("telemetry_codes.json")
"""What Kafka 4.3.1 answered."""


def test_answers_are_kafkas(tmp_path):
    if os.environ.get("CLIENTS_PEER") == "kafka":
        with servers.kafka(KAFKA) as server:
            said = converse(server.bootstrap)
    else:
        options = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
        with running(tmp_path / "data", *options, brokers=1, shards=2) as cluster:
            said = converse(cluster.bootstrap)
    assert said == json.loads(GOLDEN.read_text())
