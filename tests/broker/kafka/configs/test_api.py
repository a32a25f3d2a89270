"""Configs of brokers and topics over the wire: what is shown, where it comes from, what may be changed, in one version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from desk import Desk

from broker.wire import codes
from shards.mesh.mesh import COORDINATOR

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)


async def describe(
    desk: Desk,
    kind: int,
    name: str,
    *keys: str,
    version: int = 4,
    at: tuple[int, int] = (0, 0),
    documented: bool = False,
) -> Any:
    """{config name: what is told of it}, or the (code, message) of the refusal."""
    resource = desk.types("describe_configs", version).DescribeConfigsResource
    asked = (resource(resource_type=kind, resource_name=name, configuration_keys=keys or None),)
    found = (await desk.ask(
        "describe_configs", version, at=at, resources=asked, include_synonyms=True, include_documentation=documented
    )).results[0]  # fmt: skip
    return (found.error_code, found.error_message) if found.error_code else {c.name: c for c in found.configs}


async def alter(
    desk: Desk, *resources: tuple[int, str, list[tuple[str, int, str | None]]], validate_only: bool = False
) -> list[tuple[int, Any]]:
    types = desk.types("incremental_alter_configs", 1)
    asked = tuple(
        types.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=tuple(
                types.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in edits
            ),
        )
        for kind, name, edits in resources
    )
    found = await desk.ask("incremental_alter_configs", 1, resources=asked, validate_only=validate_only)
    assert [(r.resource_type, r.resource_name) for r in found.responses] == [(k, n) for k, n, _ in resources]
    return [(r.error_code, r.error_message) for r in found.responses]


async def replace(desk: Desk, kind: int, name: str, configs: dict[str, str | None]) -> tuple[int, Any]:
    types = desk.types("alter_configs", 2)
    edits = tuple(types.AlterableConfig(name=key, value=value) for key, value in configs.items())
    asked = (types.AlterConfigsResource(resource_type=kind, resource_name=name, configs=edits),)
    (found,) = (await desk.ask("alter_configs", 2, resources=asked)).responses
    return found.error_code, found.error_message


def told(config: Any) -> tuple[str | None, int, list[tuple[str, str, int]]]:
    return config.value, config.config_source, [(s.name, s.value, s.source) for s in config.synonyms]


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path, brokers=2, kafka_connections_max_per_ip="40")
    await desk.start()
    await desk.make_topic("t")
    desk.asked.clear()
    return desk


# --- describe --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 5))
async def test_a_broker_tells_all_its_settings(desk: Desk, version: int) -> None:
    found = await describe(desk, BROKER, "0", version=version)
    assert len(found) > 100
    assert told(found["advertised.listeners"])[:2] == ("PLAINTEXT://127.0.0.1:9092,INSIDE://127.0.0.1:9192", 4)
    assert found["advertised.listeners"].read_only
    assert not found["max.connections"].read_only
    assert found["log.retention.ms"].value is None


async def test_configs_have_types_and_documentation_when_asked(desk: Desk) -> None:
    found = await describe(desk, BROKER, "0", "max.connections", "log.cleanup.policy", documented=True)
    assert [(c.config_type, bool(c.documentation)) for c in found.values()] == [(3, True), (7, True)]
    assert (await describe(desk, BROKER, "0", "max.connections"))["max.connections"].documentation is None


async def test_a_change_shows_at_once_with_its_source(desk: Desk) -> None:
    static, default = ("max.connections", "2147483647", 5), ("max.connections", "200", 3)
    assert await alter(desk, (BROKER, "", [("max.connections", SET, "200")])) == [(0, None)]
    assert told((await describe(desk, BROKER, "0", "max.connections"))["max.connections"]) == (
        "200",
        3,
        [default, static],
    )
    await alter(desk, (BROKER, "0", [("max.connections", SET, "100")]))
    own = ("max.connections", "100", 2)
    assert told((await describe(desk, BROKER, "0", "max.connections"))["max.connections"]) == (
        "100", 2, [own, default, static],
    )  # fmt: skip
    assert told((await describe(desk, BROKER, "", "max.connections"))["max.connections"]) == ("200", 3, [default])
    other = await describe(desk, BROKER, "1", "max.connections", at=(1, 0))
    assert told(other["max.connections"])[:2] == ("200", 3)
    await alter(
        desk, (BROKER, "0", [("max.connections", DELETE, None)]), (BROKER, "", [("max.connections", DELETE, "")])
    )
    assert told((await describe(desk, BROKER, "0", "max.connections"))["max.connections"]) == (
        "2147483647",
        5,
        [static],
    )
    assert await describe(desk, BROKER, "") == {}


async def test_what_the_cluster_was_started_with_is_static(desk: Desk) -> None:
    found = await describe(desk, BROKER, "0", "kafka_connections_max_per_ip")
    assert told(found["kafka_connections_max_per_ip"])[:2] == ("40", 4)


async def test_a_listeners_own_limit_is_shown(desk: Desk) -> None:
    name = "listener.name.inside.max.connections"
    assert name not in await describe(desk, BROKER, "0")
    await alter(desk, (BROKER, "0", [("listener.name.INSIDE.max.connections", SET, "55")]))
    assert told((await describe(desk, BROKER, "0", name))[name]) == (
        "55", 2, [(name, "55", 2), ("max.connections", "2147483647", 5)],
    )  # fmt: skip


async def test_a_topics_configs_fall_back_to_the_brokers(desk: Desk) -> None:
    found = await describe(desk, TOPIC, "t")
    assert len(found) == 33
    assert told(found["cleanup.policy"]) == ("delete", 5, [("log.cleanup.policy", "delete", 5)])
    assert told(found["retention.ms"])[:2] == ("604800000", 5)
    await alter(desk, (BROKER, "", [("log.retention.ms", SET, "5000")]), (TOPIC, "t", [("flush.ms", SET, "7")]))
    found = await describe(desk, TOPIC, "t", "retention.ms", "flush.ms")
    assert told(found["retention.ms"]) == ("5000", 3, [("log.retention.ms", "5000", 3)])
    assert told(found["flush.ms"])[:2] == ("7", 1)


async def test_resources_that_do_not_exist(desk: Desk) -> None:
    assert await describe(desk, BROKER, "1") == (
        codes.INVALID_REQUEST, "Unexpected broker id, expected 0 or empty string, but received 1",
    )  # fmt: skip
    assert (await describe(desk, BROKER, "x"))[1] == "Broker id must be an integer, but it is: x"
    assert (await describe(desk, TOPIC, "nope"))[0] == codes.UNKNOWN_TOPIC_OR_PARTITION
    assert (await describe(desk, TOPIC, "a/b"))[0] == codes.INVALID_TOPIC_EXCEPTION
    assert (await describe(desk, 9, "x"))[0] == codes.INVALID_REQUEST
    assert (await describe(desk, 32, ""))[0] == (await describe(desk, 16, ""))[0] == codes.INVALID_REQUEST


# --- alter -----------------------------------------------------------------------------------------------------

REFUSED = [
    (BROKER, "0", [("max.connections", SET, "abc")], "INVALID_REQUEST", "max.connections cannot be 'abc': it must be"),
    (BROKER, "", [("max.connections", SET, "0")], "INVALID_REQUEST", "it must be at least 1 while the cluster runs"),
    (BROKER, "0", [("broker.id", SET, "5")], "INVALID_REQUEST", "broker.id describes how the cluster was started"),
    (BROKER, "0", [("no.such", SET, "5")], "INVALID_CONFIG", "no.such is not a setting"),
    (BROKER, "0", [("max.conections", SET, "5")], "INVALID_CONFIG", "did you mean max.connections?"),
    (
        BROKER,
        "0",
        [("max.connections", SET, None)],
        "INVALID_REQUEST",
        "Null value not supported for : max.connections",
    ),
    (BROKER, "0", [("max.connections", APPEND, "3")], "INVALID_CONFIG", "Config value append is not allowed"),
    (BROKER, "0", [("max.connections", 9, "3")], "INVALID_REQUEST", "Unknown operations type 9"),
    (
        BROKER,
        "0",
        [("max.connections", SET, "3"), ("max.connections", SET, "4")],
        "INVALID_REQUEST",
        "duplicate config",
    ),
    (BROKER, "7", [("max.connections", SET, "3")], "INVALID_REQUEST", "Unexpected broker id, expected 0 to 1"),
    (BROKER, "x", [("max.connections", SET, "3")], "INVALID_REQUEST", "must be an integer, but it is: x"),
    (BROKER, "0", [("max.connections.per.ip", SET, "0")], "INVALID_REQUEST", "max.connections.per.ip.overrides is set"),
    (TOPIC, "t", [("no.such", SET, "1")], "INVALID_CONFIG", "no.such is not a setting"),
    (TOPIC, "t", [("retention.ms", SET, "-7")], "INVALID_CONFIG", "retention.ms cannot be '-7'"),
    (
        TOPIC,
        "t",
        [("retention.ms", APPEND, "7")],
        "INVALID_CONFIG",
        "Can't APPEND to key retention.ms because its type",
    ),
    (TOPIC, "nope", [("retention.ms", SET, "1")], "UNKNOWN_TOPIC_OR_PARTITION", "The topic 'nope' does not exist."),
    (TOPIC, "", [("retention.ms", SET, "1")], "INVALID_REQUEST", "Default topic resources are not allowed."),
    (77, "x", [], "INVALID_REQUEST", "Unknown resource type 77"),
    (LOGGER, "1", [("root", SET, "INFO")], "INVALID_REQUEST", "Unexpected node id. Expected 0, but received 1"),
    (LOGGER, "", [("root", SET, "INFO")], "INVALID_REQUEST", "Node id must be an integer, but it is: "),
    (LOGGER, "0", [("kafka", SET, "INFO")], "INVALID_CONFIG", "Logger kafka does not exist!"),
    (LOGGER, "0", [("root", SET, "loud")], "INVALID_CONFIG", "levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"),
    (LOGGER, "0", [("root", DELETE, None)], "INVALID_REQUEST", "Removing the log level of the root logger is not"),
    (LOGGER, "0", [("root", APPEND, "INFO")], "INVALID_REQUEST", "APPEND operation is not allowed for the BROKER_LOG"),
]


@pytest.mark.parametrize(("kind", "name", "edits", "error", "message"), REFUSED)
async def test_what_is_wrong_is_refused_and_the_rest_is_done(
    desk: Desk, kind: int, name: str, edits: list[Any], error: str, message: str
) -> None:
    version = desk.images[0, 0].version
    results = await alter(desk, (kind, name, edits), (TOPIC, "t", [("flush.ms", SET, "9")])) if name != "t" else (
        await alter(desk, (kind, name, edits))
    )  # fmt: skip
    assert results[0][0] == getattr(codes, error)
    assert message in results[0][1]
    assert results[1:] == ([] if name == "t" else [(0, None)])
    assert desk.images[0, 0].version == version + len(results) - 1


async def test_a_request_is_one_version_for_all_brokers_in_it(desk: Desk) -> None:
    version = desk.images[0, 0].version
    edits = [("max.connections", SET, "10"), ("max.connections.per.ip", SET, "5")]
    assert await alter(desk, (BROKER, "0", edits), (BROKER, "1", edits), (BROKER, "", edits)) == [(0, None)] * 3
    assert desk.images[0, 0].version == version + 1
    assert desk.images[1, 0].get("max.connections") == 10


async def test_the_same_resource_twice_is_refused(desk: Desk) -> None:
    edit = [("max.connections", SET, "3")]
    results = await alter(desk, (BROKER, "0", edit), (BROKER, "0", edit))
    assert results == [(codes.INVALID_REQUEST, "Each resource must appear at most once.")] * 2


async def test_validating_changes_nothing(desk: Desk) -> None:
    version = desk.images[0, 0].version
    good, bad = [("max.connections", SET, "3")], [("max.connections", SET, "x")]
    assert [code for code, _ in await alter(desk, (BROKER, "0", good), (BROKER, "1", bad), validate_only=True)] == [
        0, codes.INVALID_REQUEST,
    ]  # fmt: skip
    assert desk.images[0, 0].version == version


async def test_letting_go_of_what_is_not_set_or_never_was_changes_nothing(desk: Desk) -> None:
    version = desk.images[0, 0].version
    for kind, name in ((BROKER, "0"), (TOPIC, "t")):
        key = "max.connections" if kind == BROKER else "flush.ms"
        assert await alter(desk, (kind, name, [("no.such", DELETE, None), (key, DELETE, None)])) == [(0, None)]
    assert desk.images[0, 0].version == version


async def test_lists_grow_and_shrink(desk: Desk) -> None:
    async def policy() -> str:
        return str((await describe(desk, TOPIC, "t", "cleanup.policy"))["cleanup.policy"].value)

    assert await alter(desk, (TOPIC, "t", [("cleanup.policy", APPEND, "compact")])) == [(0, None)]
    assert await policy() == "delete,compact"
    await alter(desk, (TOPIC, "t", [("cleanup.policy", SUBTRACT, "delete")]))
    assert await policy() == "compact"
    name = "kafka_connections_max_overrides"
    await alter(desk, (BROKER, "", [(name, SET, "10.0.0.1:5")]))
    await alter(desk, (BROKER, "", [(name, APPEND, "10.0.0.2:6,10.0.0.1:5")]))
    assert (await describe(desk, BROKER, "", name))[name].value == "10.0.0.1:5,10.0.0.2:6"
    await alter(desk, (BROKER, "", [(name, SUBTRACT, "10.0.0.1:5")]))
    assert desk.images[1, 0].rule_of("ip:10.0.0.2").cap == 6
    assert desk.images[1, 0].rule_of("ip:10.0.0.1").cap == 40


async def test_the_old_alter_replaces_everything(desk: Desk) -> None:
    await alter(desk, (TOPIC, "t", [("retention.ms", SET, "5"), ("flush.ms", SET, "6")]))
    assert await replace(desk, TOPIC, "t", {"flush.ms": "7"}) == (0, None)
    assert desk.images[0, 0].topics.get("t").configs == {"flush.ms": "7"}
    await alter(desk, (BROKER, "0", [("max.connections", SET, "5")]), (BROKER, "", [("max.connections", SET, "6")]))
    assert await replace(desk, BROKER, "0", {"max.connections.per.ip": "9"}) == (0, None)
    assert desk.images[0, 0].dynamic == {"/max.connections": "6", "0/max.connections.per.ip": "9"}
    assert (await replace(desk, BROKER, "0", {"max.connections": None}))[0] == codes.INVALID_REQUEST


async def test_the_level_of_a_brokers_logger_is_a_setting_of_the_broker(desk: Desk) -> None:
    assert told((await describe(desk, LOGGER, "0"))["root"]) == ("INFO", 6, [])
    assert await alter(desk, (LOGGER, "0", [("root", SET, "WARN")])) == [(0, None)]
    assert (await describe(desk, LOGGER, "0"))["root"].value == "WARN"
    assert (await describe(desk, LOGGER, "1", at=(1, 0)))["root"].value == "INFO"
    assert told((await describe(desk, BROKER, "0"))["turnstile.log.level"])[:2] == ("WARN", 2)
    assert await describe(desk, LOGGER, "1") == (
        codes.INVALID_REQUEST,
        "Unexpected broker id, expected 0 but received 1",
    )
    assert await describe(desk, LOGGER, "") == (codes.INVALID_REQUEST, "Broker id must not be empty")
    assert await replace(desk, LOGGER, "0", {"root": "INFO"}) == (codes.INVALID_REQUEST, "Unknown resource type 8")


async def test_without_the_coordinator_clients_try_again(desk: Desk) -> None:
    desk.down.add(COORDINATOR)
    ((code, _),) = await alter(desk, (BROKER, "0", [("max.connections", SET, "5")]))
    assert code == codes.NOT_CONTROLLER


async def test_a_resource_that_is_named_a_thousand_times_is_described_once(desk: Desk) -> None:
    types = desk.types("describe_configs", 4)
    one = types.DescribeConfigsResource(resource_type=BROKER, resource_name="0", configuration_keys=None)
    found = await desk.ask("describe_configs", 4, resources=(one,) * 1000, include_synonyms=True)
    assert [(each.resource_type, each.resource_name) for each in found.results] == [(BROKER, "0")]


async def test_a_config_of_kafkas_that_nothing_obeys_is_described_and_taken(desk: Desk) -> None:
    name = "sasl.kerberos.min.time.before.relogin"
    assert told((await describe(desk, BROKER, "0", name))[name])[:2] == ("60000", 5)
    await alter(desk, (BROKER, "0", [(name, SET, "70000")]))
    assert told((await describe(desk, BROKER, "0", name))[name])[:2] == ("70000", 2)
    secret = (await describe(desk, BROKER, "0", "ssl.keystore.password"))["ssl.keystore.password"]
    assert (secret.value, secret.is_sensitive, secret.read_only, secret.config_type) == (None, True, True, 9)


async def test_a_password_is_not_shown(tmp_path: Path) -> None:
    desk = Desk(tmp_path, delegation_token_secret_key="of-all-brokers")
    await desk.start()
    name = "delegation.token.secret.key"
    found = (await describe(desk, BROKER, "0", name))[name]
    assert (found.value, found.is_sensitive, found.read_only, found.config_source) == (None, True, True, 4)
    assert [(each.value, each.source) for each in found.synonyms] == [(None, 4)]


async def test_a_group_has_configs_of_its_own(desk: Desk) -> None:
    interval, group = "consumer.heartbeat.interval.ms", desk.group_at(0, 0)

    async def told() -> int:
        answer = await desk.ask(
            "consumer_group_heartbeat", 1, group_id=group, member_id="m", member_epoch=0, rack_id=None, rebalance_timeout=9000,
            instance_id=None, subscribed_topic_names=("t",), subscribed_topic_regex=None, server_assignor=None, topic_partitions=(),
        )  # fmt: skip
        assert answer.error_code == codes.NONE
        return int(answer.heartbeat_interval.total_seconds() * 1000)

    at_first = await told()
    assert await alter(desk, (32, group, [(interval, SET, "7000")])) == [(codes.NONE, None)]
    assert (at_first, await told()) == (5000, 7000)
    assert (await describe(desk, 32, group, interval))[interval].config_source == 8
    assert await alter(desk, (32, group, [(interval, DELETE, None)])) == [(codes.NONE, None)]
    assert await told() == 5000
