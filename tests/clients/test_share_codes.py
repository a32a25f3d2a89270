"""Answers to right and wrong requests about share groups and their records are those of Apache Kafka 4.3, field by field."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import share_fetch_codes
import share_group_codes
from group_dialogue import AT_ONCE, as_options
from harness import running

from scripts.peers import servers

HERE = Path(__file__).parent
"""Beside each conversation is what Kafka 4.3.1 answered."""


@pytest.mark.parametrize("conversation", [share_group_codes, share_fetch_codes], ids=lambda each: each.__name__)
def test_answers_are_kafkas(tmp_path, topic, conversation):
    if os.environ.get("CLIENTS_PEER") == "kafka":
        with servers.kafka(AT_ONCE) as server:
            said = conversation.converse(server.bootstrap, topic)
    else:
        with running(tmp_path / "data", *as_options(AT_ONCE), brokers=1, shards=2) as cluster:
            said = conversation.converse(cluster.bootstrap, topic)
    said = json.loads(json.dumps(said).replace(topic, "TOPIC"))
    if record := os.environ.get("CLIENTS_RECORD"):
        Path(record).write_text("[\n" + ",\n".join(json.dumps(each) for each in said) + "\n]\n")
    assert said == json.loads((HERE / f"{conversation.__name__}.json").read_text())
