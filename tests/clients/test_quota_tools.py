"""Every kafka-configs command of seeds 001 (KIP-124), 003 (KIP-599) and 004, run by the real tool.

The seeds' --zookeeper is --bootstrap-server today, and KIP-599's controller_mutations_rate is controller_mutation_rate.
"""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.jars

BYTES = "producer_byte_rate=1024,consumer_byte_rate=2048"
TOLD = ("producer_byte_rate=1024.0", "consumer_byte_rate=2048.0")
USER1, ANY_USER = ("--entity-type", "users", "--entity-name", "user1"), ("--entity-type", "users", "--entity-default")
CLIENT1 = ("--entity-type", "clients", "--entity-name", "client1")
ANY_CLIENT = ("--entity-type", "clients", "--entity-default")
CLIENT_A = ("--entity-type", "clients", "--entity-name", "clientA")

GROUPINGS = {
    "clients, default": (ANY_CLIENT, "the default client-id"),
    "clients, override": (CLIENT1, "client-id 'client1'"),
    "users, default": (ANY_USER, "the default user-principal"),
    "users, override": (USER1, "user-principal 'user1'"),
    "user and client, default": (USER1 + ANY_CLIENT, "user-principal 'user1', the default client-id"),
    "user and client, override": (USER1 + CLIENT1, "user-principal 'user1', client-id 'client1'"),
    "default user, one client": (ANY_USER + CLIENT1, "the default user-principal, client-id 'client1'"),
    "default user, default client": (ANY_USER + ANY_CLIENT, "the default user-principal, the default client-id"),
}


def configs(tool, *args: str, expect: int = 0) -> str:
    """kafka-configs without its blank lines."""
    return tool("kafka-configs", *args, expect=expect)


@pytest.mark.parametrize(("entity", "named"), GROUPINGS.values(), ids=GROUPINGS)
def test_byte_rates_of_a_grouping_are_set_described_and_deleted(tool, entity, named):
    said = configs(tool, "--alter", "--add-config", BYTES, *entity)
    assert "Completed updating" in said
    described = configs(tool, "--describe", *entity)
    assert f"Quota configs for {named} are " in described
    assert all(each in described for each in TOLD)
    configs(tool, "--alter", "--delete-config", "producer_byte_rate,consumer_byte_rate", *entity)
    assert "byte_rate" not in configs(tool, "--describe", *entity)


def test_describe_without_a_name_lists_the_overrides_and_the_default(tool):
    both = ("--alter", "--add-config", BYTES)
    configs(tool, *both, *CLIENT1)
    configs(tool, *both, *ANY_CLIENT)
    configs(tool, *both, *USER1, *CLIENT1)
    clients = configs(tool, "--describe", "--entity-type", "clients")
    assert "Quota configs for client-id 'client1' are " in clients
    assert "Quota configs for the default client-id are " in clients
    assert "user-principal" not in clients
    of_user = configs(tool, "--describe", *USER1, "--entity-type", "clients")
    assert "Quota configs for user-principal 'user1', client-id 'client1' are " in of_user
    for entity in (CLIENT1, ANY_CLIENT, USER1 + CLIENT1):
        configs(tool, "--alter", "--delete-config", "producer_byte_rate,consumer_byte_rate", *entity)
    assert "byte_rate" not in configs(tool, "--describe", "--entity-type", "clients")


@pytest.mark.parametrize(("entity", "percent"), [(USER1, "50"), (ANY_USER, "200")], ids=["user1", "default user"])
def test_request_percentage_is_set_described_and_deleted(tool, entity, percent):
    configs(tool, "--alter", "--add-config", f"request_percentage={percent}", *entity)
    assert f"request_percentage={percent}.0" in configs(tool, "--describe", *entity)
    configs(tool, "--alter", "--delete-config", "request_percentage", *entity)
    assert "request_percentage" not in configs(tool, "--describe", *entity)


def test_controller_mutation_rate_is_set_described_and_deleted(tool):
    entity = USER1 + CLIENT_A
    configs(tool, "--alter", "--add-config", "controller_mutation_rate=10", *entity)
    described = configs(tool, "--describe", *entity)
    assert (
        "Quota configs for user-principal 'user1', client-id 'clientA' are controller_mutation_rate=10.0" in described
    )
    configs(tool, "--alter", "--delete-config", "controller_mutation_rate", *entity)
    assert "controller_mutation_rate" not in configs(tool, "--describe", *entity)


@pytest.mark.parametrize(
    ("entity", "config"),
    [
        (USER1, "controller_mutations_rate=10"),
        (USER1, "producer_byte_rate=-1"),
        (CLIENT1, "producer_byte_rate=10.5"),
        (CLIENT1, "connection_creation_rate=5"),
    ],
    ids=["a name of the KIP only", "negative", "a fraction of a byte", "a quota of addresses"],
)
def test_what_is_no_quota_is_refused_and_nothing_changes(tool, entity, config):
    configs(tool, "--alter", "--add-config", config, *entity, expect=1)
    assert config.partition("=")[0] not in configs(tool, "--describe", *entity)
