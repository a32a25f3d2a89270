"""Answers to right and wrong requests about groups of the consumer protocol are those of Apache Kafka 4.3, field by field."""

from __future__ import annotations

import json
import os
from pathlib import Path

from consumer_group_codes import converse
from group_dialogue import AT_ONCE, as_options
from harness import running

from scripts.peers import servers

GOLDEN = Path(__file__).with_name("consumer_group_codes.json")
"""What Kafka 4.3.1 answered."""


def test_answers_are_kafkas(tmp_path, topic):
    if os.environ.get("CLIENTS_PEER") == "kafka":
        with servers.kafka({"group.consumer.migration.policy": "disabled", **AT_ONCE}) as server:
            said = converse(server.bootstrap, topic)
    else:
        with running(tmp_path / "data", *as_options(AT_ONCE), brokers=1, shards=2) as cluster:
            said = converse(cluster.bootstrap, topic)
    if record := os.environ.get("CLIENTS_RECORD"):
        Path(record).write_text(
            "[\n" + ",\n".join(json.dumps([a.replace(topic, "TOPIC"), b]) for a, b in said) + "\n]\n"
        )
    assert [[a.replace(topic, "TOPIC"), b] for a, b in said] == json.loads(GOLDEN.read_text())
