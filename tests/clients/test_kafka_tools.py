"""Kafka's own command line tools, from the real jars: topics, console, groups, performance."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.jars


def test_topics_are_created_described_grown_listed_and_deleted(tool, topic):
    assert f"Created topic {topic}." in tool("kafka-topics", "--create", "--topic", topic, "--partitions", "3")
    described = tool("kafka-topics", "--describe", "--topic", topic)
    assert re.search(r"PartitionCount: 3\s+ReplicationFactor: 1", described)
    assert len(re.findall(r"Leader: 0", described)) == 3
    tool("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in tool("kafka-topics", "--describe", "--topic", topic)
    assert topic in tool("kafka-topics", "--list").splitlines()
    tool("kafka-topics", "--delete", "--topic", topic)
    assert topic not in tool("kafka-topics", "--list").splitlines()


def test_what_is_wrong_with_a_topic_is_said(tool, topic):
    tool("kafka-topics", "--create", "--topic", topic)
    assert "already exists" in tool("kafka-topics", "--create", "--topic", topic, expect=1)
    assert "replication factor" in tool(
        "kafka-topics", "--create", "--topic", f"{topic}-2", "--replication-factor", "3", expect=1
    )
    assert "Unknown topic config name: no.such.key" in tool(
        "kafka-topics", "--create", "--topic", f"{topic}-3", "--config", "no.such.key=1", expect=1
    )
    assert "does not exist" in tool("kafka-topics", "--describe", "--topic", f"{topic}-4", expect=1)


def test_a_topic_keeps_the_configuration_it_was_given(tool, topic):
    tool("kafka-topics", "--create", "--topic", topic, "--config", "retention.ms=60000")
    assert "retention.ms=60000" in tool("kafka-topics", "--describe", "--topic", topic)
    alter = ("kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", topic)
    tool(*alter, "--add-config", "retention.bytes=1000000")
    described = tool("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", topic)
    assert "retention.bytes=1000000" in described
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=60000" in described
    tool(*alter, "--delete-config", "retention.ms")
    assert "retention.ms=" not in tool("kafka-topics", "--describe", "--topic", topic)


def test_console_producer_and_consumer(tool, topic):
    tool("kafka-topics", "--create", "--topic", topic, "--partitions", "2")
    lines = "".join(f"k{n}:line {n}\n" for n in range(200))
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    tool("kafka-console-producer", "--topic", topic, *keyed, stdin=lines)
    read = tool(
        "kafka-console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "200",
        "--property", "print.key=true", "--property", "key.separator=:",
    )  # fmt: skip
    assert "Processed a total of 200 messages" in read
    assert sorted(line for line in read.splitlines() if line.startswith("k")) == sorted(lines.splitlines())


def test_consumer_groups_are_listed_described_reset_and_deleted(tool, topic):
    group = f"{topic}-group"
    tool("kafka-topics", "--create", "--topic", topic)
    tool("kafka-console-producer", "--topic", topic, stdin="a\nb\nc\nd\n")
    tool("kafka-console-consumer", "--topic", topic, "--group", group, "--from-beginning", "--max-messages", "4")
    assert group in tool("kafka-consumer-groups", "--list").splitlines()
    assert _offsets(tool, group) == [(topic, "0", "4", "4", "0")]
    assert re.search(
        rf"{group}\s+.*Empty\s+0", tool("kafka-consumer-groups", "--describe", "--group", group, "--state")
    )
    reset = ("kafka-consumer-groups", "--group", group, "--topic", topic, "--reset-offsets", "--execute")
    tool(*reset, "--to-offset", "1")
    assert _offsets(tool, group) == [(topic, "0", "1", "4", "3")]
    again = tool("kafka-console-consumer", "--topic", topic, "--group", group, "--max-messages", "3")
    assert again.splitlines()[:3] == ["b", "c", "d"]
    tool("kafka-consumer-groups", "--delete", "--group", group)
    assert group not in tool("kafka-consumer-groups", "--list").splitlines()
    assert f"Group {group} not found" in tool("kafka-consumer-groups", "--describe", "--group", group)


def _offsets(tool, group):
    """(topic, partition, committed, end, lag) per row of kafka-consumer-groups --describe."""
    rows = [line.split() for line in tool("kafka-consumer-groups", "--describe", "--group", group).splitlines()]
    return [tuple(row[1:6]) for row in rows if row and row[0] == group]


def test_performance_tools_send_and_read_all_records(tool, topic):
    tool("kafka-topics", "--create", "--topic", topic, "--partitions", "4")
    produced = tool(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", "50000", "--record-size", "100",
        "--throughput", "-1", "--producer-props", f"bootstrap.servers={tool.bootstrap}",
    )  # fmt: skip
    assert "50000 records sent" in produced
    consumed = tool("kafka-consumer-perf-test", "--topic", topic, "--messages", "50000", "--timeout", "20000")
    header, row = [line.split(", ") for line in consumed.splitlines() if ", " in line][:2]
    assert int(dict(zip(header, row, strict=True))["data.consumed.in.nMsg"]) >= 50000


def test_offsets_and_deleted_records(tool, topic, tmp_path):
    tool("kafka-topics", "--create", "--topic", topic)
    tool("kafka-console-producer", "--topic", topic, stdin="a\nb\nc\n")
    assert f"{topic}:0:3" in tool("kafka-get-offsets", "--topic", topic)
    asked = tmp_path / "delete.json"
    asked.write_text(f'{{"partitions": [{{"topic": "{topic}", "partition": 0, "offset": 2}}], "version": 1}}')
    assert "low_watermark: 2" in tool("kafka-delete-records", "--offset-json-file", str(asked))
    assert f"{topic}:0:2" in tool("kafka-get-offsets", "--topic", topic, "--time", "earliest")


def test_api_versions_and_log_directories(tool, topic):
    tool("kafka-topics", "--create", "--topic", topic)
    assert re.search(r"\(id: 0 .*Produce\(0\)", tool("kafka-broker-api-versions"), re.DOTALL)
    assert f'"partition":"{topic}-0"' in tool("kafka-log-dirs", "--describe", "--topic-list", topic)
