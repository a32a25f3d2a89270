"""Answers to right and wrong requests about transactions are those of Apache Kafka 4.3, field by field."""

from __future__ import annotations

import json
import os
from pathlib import Path

from harness import running
from transaction_codes import converse

from scripts.peers import servers

GOLDEN = Path(__file__).with_name("transaction_codes.json")
"""What Kafka 4.3.1 answered."""
INTERVAL = "transaction.abort.timed.out.transaction.cleanup.interval.ms"


def test_answers_are_kafkas(tmp_path, topic):
    if os.environ.get("CLIENTS_PEER") == "kafka":
        with servers.kafka({INTERVAL: "100"}) as server:
            said = converse(server.bootstrap, topic)
    else:
        with running(tmp_path / "data", "--set", f"{INTERVAL}=100", brokers=1, shards=2) as cluster:
            said = converse(cluster.bootstrap, topic)
    assert said == json.loads(GOLDEN.read_text())
