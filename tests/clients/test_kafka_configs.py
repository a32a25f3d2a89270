"""kafka-configs from the real jars: broker settings, live, and every command of KIP-612's Tools section."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.jars

BROKER = ("--entity-type", "brokers", "--entity-name", "0")
ALL_BROKERS = ("--entity-type", "brokers", "--entity-default")


@pytest.fixture(autouse=True)
def nothing_stays_set(tool):
    """Takes back what a test has set, so that it limits no other test."""
    yield
    for entity in (BROKER, ALL_BROKERS):
        described = tool("kafka-configs", "--describe", *entity).splitlines()
        for name in [line.partition("=")[0].strip() for line in described if "max.connections" in line]:
            tool("kafka-configs", "--alter", *entity, "--delete-config", name)


def test_a_setting_of_one_broker(tool):
    said = tool("kafka-configs", "--alter", *BROKER, "--add-config", "max.connections.per.ip=500,max.connections=5000")
    assert "Completed updating config for broker 0." in said
    described = tool("kafka-configs", "--describe", *BROKER)
    assert (
        "max.connections.per.ip=500 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:max.connections.per.ip=500"
        in described
    )
    assert "max.connections=5000" in described
    tool("kafka-configs", "--alter", *BROKER, "--delete-config", "max.connections")
    described = tool("kafka-configs", "--describe", *BROKER)
    assert "max.connections=" not in described
    assert "max.connections.per.ip=500" in described


def test_the_default_of_all_brokers_and_what_one_broker_makes_of_it(tool):
    said = tool("kafka-configs", "--alter", *ALL_BROKERS, "--add-config", "max.connections.per.ip=700")
    assert "Completed updating default config for brokers in the cluster." in said
    assert "max.connections.per.ip=700" in tool("kafka-configs", "--describe", *ALL_BROKERS)
    inherited = _line(tool("kafka-configs", "--describe", "--all", *BROKER), "max.connections.per.ip")
    assert "=700 " in inherited and "DYNAMIC_DEFAULT_BROKER_CONFIG:max.connections.per.ip=700" in inherited
    tool("kafka-configs", "--alter", *BROKER, "--add-config", "max.connections.per.ip=300")
    own = _line(tool("kafka-configs", "--describe", "--all", *BROKER), "max.connections.per.ip")
    assert "=300 " in own
    assert (
        own.index("DYNAMIC_BROKER_CONFIG:") < own.index("DYNAMIC_DEFAULT_BROKER_CONFIG:") < own.index("DEFAULT_CONFIG:")
    )


def test_describe_all_shows_what_nobody_has_set(tool):
    described = tool("kafka-configs", "--describe", "--all", *BROKER)
    line = _line(described, "max.connections.per.ip")
    assert "=2147483647 sensitive=false synonyms={DEFAULT_CONFIG:max.connections.per.ip=2147483647}" in line


def test_overrides_are_a_list_in_brackets(tool):
    tool(
        "kafka-configs",
        "--alter",
        *BROKER,
        "--add-config",
        "max.connections.per.ip.overrides=[127.8.0.1:5,127.8.0.2:7]",
    )
    assert "max.connections.per.ip.overrides=127.8.0.1:5,127.8.0.2:7" in tool("kafka-configs", "--describe", *BROKER)


@pytest.mark.parametrize("wrong", ["max.connections.per.ip=many", "max.connections.per.ip=-1"])
def test_a_bad_value_is_refused_and_nothing_changes(tool, wrong):
    said = tool("kafka-configs", "--alter", *BROKER, "--add-config", wrong, expect=1)
    assert "InvalidConfigurationException" in said or "InvalidRequestException" in said
    assert "max.connections.per.ip=" not in tool("kafka-configs", "--describe", *BROKER)


RATE = "connection_creation_rate"
TOOLS_SECTION = [
    (("--entity-type", "ips", "--entity-name", "93.184.216.34"), "ip '93.184.216.34'"),
    (("--ip", "93.184.216.35"), "ip '93.184.216.35'"),
    (("--entity-type", "ips", "--entity-default"), "the default ip"),
    (("--ip-defaults",), "the default ip"),
]


@pytest.mark.parametrize(("entity", "named"), TOOLS_SECTION, ids=["ips-name", "ip", "ips-default", "ip-defaults"])
def test_a_creation_rate_of_an_ip_is_set_described_and_deleted(tool, entity, named):
    said = tool("kafka-configs", "--alter", "--add-config", f"{RATE}=100", *entity)
    assert "Completed updating" in said
    assert f"Quota configs for {named} are {RATE}=100.0" in tool("kafka-configs", "--describe", *entity)
    assert f"Quota configs for {named} are {RATE}=100.0" in tool("kafka-configs", "--describe", "--entity-type", "ips")
    tool("kafka-configs", "--alter", "--delete-config", RATE, *entity)
    assert RATE not in tool("kafka-configs", "--describe", *entity)


def test_describing_ips_when_nothing_is_set(tool):
    assert tool("kafka-configs", "--describe", "--entity-type", "ips") == ""
    assert RATE not in tool("kafka-configs", "--describe", "--ip", "93.184.216.36")


@pytest.mark.parametrize(
    ("entity", "config", "says"),
    [
        (("--ip", "93.184.216.34"), "producer_byte_rate=100", "producer_byte_rate"),
        (("--ip", "93.184.216.34"), f"{RATE}=-5", RATE),
        (("--ip", "not an address"), f"{RATE}=5", "not an address"),
    ],
    ids=["a quota of users", "a negative rate", "no address"],
)
def test_what_is_no_quota_of_an_ip_is_refused(tool, entity, config, says):
    assert says in tool("kafka-configs", "--alter", "--add-config", config, *entity, expect=1)
    assert tool("kafka-configs", "--describe", "--entity-type", "ips") == ""


def _line(described, name):
    (line,) = [line for line in described.splitlines() if line.strip().startswith(f"{name}=")]
    return line
