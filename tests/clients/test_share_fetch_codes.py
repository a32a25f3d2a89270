"""Answers to right and wrong requests of ShareFetch and ShareAcknowledge are those of Apache Kafka 4.2, field by field."""

from __future__ import annotations

import json
import os
from pathlib import Path

from harness import running
from share_fetch_codes import converse

from scripts.peers import servers

GOLDEN = Path(__file__).with_name("share_fetch_codes.json")
"""What Kafka 4.2.0 answered. 4.1 also counts a delivery back that the end of a session has released."""


def test_answers_are_kafkas(tmp_path, topic):
    if os.environ.get("CLIENTS_PEER") == "kafka":
        with servers.kafka(version="4.2.0") as server:
            said = converse(server.bootstrap, topic)
    else:
        with running(tmp_path / "data", brokers=1, shards=2) as cluster:
            said = converse(cluster.bootstrap, topic)
    said = json.loads(json.dumps(said).replace(topic, "TOPIC"))
    if record := os.environ.get("CLIENTS_RECORD"):
        Path(record).write_text("[\n" + ",\n".join(json.dumps(each) for each in said) + "\n]\n")
    assert said == json.loads(GOLDEN.read_text())
