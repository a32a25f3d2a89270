"""The table of presets: its form, that every row can be emulated as it says, and what the commands make of it."""

import json
import re

import pytest
from click.testing import CliRunner

from shards.config.setting_changes import static_settings
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


@pytest.mark.parametrize("row", [row for row in ROWS if row.is_emulated], ids=lambda row: f"{row.preset}-{row.setting}")
def test_a_row_says_whether_its_value_is_divided_and_by_which_rule(row):
    """By what settings_like sets: the whole of it for one broker, an even share, rounded down, for each of several."""
    one, many = (int(settings_like(row.preset, brokers)[row.setting]) for brokers in (1, 7))
    assert many == (max(one // 7, 1) if row.is_divided else one)
    assert ("divided evenly over 7 brokers, rounded down" in row.sentence(7)) is row.is_divided is (many != one)
    assert ("divided evenly where there are more brokers" in row.sentence(1)) is row.is_divided
    if row.on_exceed == "delay":
        assert re.search(
            "may delay new connections, throttle clients, or both; here (a connection|accepting) ", row.sentence(1)
        )


def test_a_row_says_the_size_of_the_cluster_that_its_value_is_of():
    said = {(row.preset, row.limit): row.sentence(1) for row in ROWS if row.per_unit}
    assert said["confluent-basic", "client connections"].startswith(
        "of the largest cluster, 20 per eCKU; enforced since 2026-06"
    )
    assert said["confluent-basic", "ingress"].startswith("of one eCKU; divided")
    assert said["confluent-dedicated", "client connections"].startswith(
        "of one CKU; 2,736,000 of the largest cluster; may"
    )


def run(*words):
    result = CliRunner().invoke(turnstile, words)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_lists_all_and_shows_one():
    assert re.search(rf"msk-serverless +4 of 14 limits: {CLUSTER}, {RATE}, {IN}, {OUT}$", run("presets"), re.MULTILINE)
    shown = run("presets", "msk-serverless", "--brokers", "3")
    assert f"{CLUSTER}=3000" in shown and "not emulated" in shown and "docs.aws.amazon.com" in shown
    shown = " ".join(run("presets", "confluent-basic", "--brokers", "3").split())
    assert "max.connections=333" in shown and "max.connection.creation.rate=26" in shown and "over 3 brokers" in shown
    told = json.loads(run("presets", "confluent-basic", "--json"))
    assert [row["divided"] for row in told["limits"]][:3] == [True, True, False]
    assert told["limits"][0]["setting"] == "max.connections" and told["limits"][0]["enforced_since"] == "2026-06-30"
    assert json.loads(run("presets", "--json"))["presets"] == list(presets())


@pytest.mark.parametrize("words", [("presets", "msk-serverles"), ("up", "--like", "msk-serverles")])
def test_a_name_that_is_none_is_refused_with_one_that_is(words):
    result = CliRunner().invoke(turnstile, words)
    assert result.exit_code == 2 and "did you mean msk-serverless" in result.output
