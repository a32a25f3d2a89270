"""The table of presets: its form, that every row can be emulated as it says, and what the commands make of it."""

import json
import re

import pytest
from click.testing import CliRunner

from shards.config.changes import static_settings
from turnstile.cli.main import turnstile
from turnstile.presets import presets, settings_like

ROWS = [row for rows in presets().values() for row in rows]
IN, OUT = "kafka_throughput_limit_node_in_bps", "kafka_throughput_limit_node_out_bps"
CLUSTER, RATE = "turnstile.cluster.max.connections", "turnstile.cluster.max.connection.creation.rate"
DOES = {
    CLUSTER: {"refuse", "unknown"},
    RATE: {"refuse", "unknown"},
    "kafka_connections_max": {"refuse", "unknown"},
    "kafka_connections_max_per_ip": {"refuse"},
    "max.connections": {"delay"},
    "max.connection.creation.rate": {"delay"},
    IN: {"throttle"},
    OUT: {"throttle"},
    "connections.max.idle.ms": {"close"},
    "group.min.session.timeout.ms": {"error:INVALID_SESSION_TIMEOUT"},
    "group.max.session.timeout.ms": {"error:INVALID_SESSION_TIMEOUT"},
    "message.max.bytes": {"unknown"},
    "socket.request.max.bytes": {"unknown"},
    "fetch.max.bytes": {"unknown"},
}
"""What a row that a setting emulates may say of what happens beyond it; tests/cluster/test_presets.py shows that this happens."""
UNITS = {
    CLUSTER: "connections",
    RATE: "connections/s",
    "kafka_connections_max": "connections",
    "kafka_connections_max_per_ip": "connections",
    "max.connections": "connections",
    "max.connection.creation.rate": "connections/s",
    IN: "MB/s",
    OUT: "MB/s",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.preset}-{row.limit}".replace(" ", "-"))
def test_a_row_has_the_form_of_the_table(row):
    assert re.fullmatch(r"[a-z0-9]+([-.][a-z0-9]+)*", row.preset) and row.limit and row.unit and row.source
    assert row.value == "unknown" or float(row.value) > 0
    assert row.scope in ("cluster", "broker", "ip", "connection", "topic", "partition", "request")
    assert re.fullmatch(r"refuse|close|delay|throttle|unknown|error:[A-Z_]+|sasl-error:.+", row.on_exceed)
    assert re.fullmatch(r"20\d\d-\d\d", row.read)
    assert re.fullmatch(r"(20\d\d-\d\d-\d\d)?", row.enforced_since)
    if row.is_emulated:
        assert row.on_exceed in DOES[row.setting]
        assert row.unit == UNITS.get(row.setting, "ms" if row.setting.endswith(".ms") else "bytes")
        assert (row.scope == "ip") is (row.setting == "kafka_connections_max_per_ip")
        assert row.scope == "cluster" or row.setting not in (CLUSTER, RATE)
        assert row.note or row.on_exceed != "unknown", "what happens here is said where the vendor does not say it"


@pytest.mark.parametrize("name", presets())
def test_a_preset_has_each_limit_once_and_its_settings_are_valid(name):
    rows = presets()[name]
    assert len({row.limit for row in rows}) == len(rows)
    emulated = [row.setting for row in rows if row.is_emulated]
    assert len(set(emulated)) == len(emulated)
    for brokers in (1, 3, 64):
        static_settings(tuple(settings_like(name, brokers).items()))


def test_a_clusters_limit_is_divided_over_its_brokers_unless_its_setting_is_of_the_cluster():
    assert settings_like("msk-serverless", 1) == {CLUSTER: "3000", RATE: "100", IN: "200000000", OUT: "400000000"}
    assert settings_like("msk-serverless", 3) == {CLUSTER: "3000", RATE: "100", IN: "66666666", OUT: "133333333"}
    assert settings_like("redpanda-tier-1", 3)["kafka_connections_max"] == "3000", "regulated per broker"
    assert settings_like("msk-express-m7g.large", 3) == {IN: "23400000", OUT: "58500000"}
    assert settings_like("msk-iam", 3) == {"kafka_connections_max": "3000"}


def run(*words):
    result = CliRunner().invoke(turnstile, words)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_lists_all_and_shows_one():
    assert re.search(rf"msk-serverless +4 of 14 limits: {CLUSTER}, {RATE}, {IN}, {OUT}$", run("presets"), re.MULTILINE)
    shown = run("presets", "msk-serverless", "--brokers", "3")
    assert f"{CLUSTER}=3000" in shown and "not emulated" in shown and "docs.aws.amazon.com" in shown
    told = json.loads(run("presets", "confluent-basic", "--json"))
    assert told["limits"][0]["setting"] == "max.connections" and told["limits"][0]["enforced_since"] == "2026-06-30"
    assert json.loads(run("presets", "--json"))["presets"] == list(presets())


@pytest.mark.parametrize("words", [("presets", "msk-serverles"), ("up", "--like", "msk-serverles")])
def test_a_name_that_is_none_is_refused_with_one_that_is(words):
    result = CliRunner().invoke(turnstile, words)
    assert result.exit_code == 2 and "did you mean msk-serverless" in result.output
