"""Kafka's own catalogue of configs: every one is known, as Kafka has it but for what is named here."""

import pytest

from shards.config.setting_changes import static_settings
from shards.settings import kafka_configs
from shards.settings.config_def import BROKER, TOPIC, broker_setting, parse
from shards.settings.config_key import NOT_EMULATED, ConfigKey
from shards.settings.config_types import HIDDEN, SECRET, ConfigType
from shards.settings.errors import ConfigInvalid

KAFKA = {(scope, row.name): row for scope in ("broker", "topic") for row in kafka_configs.rows(scope)}
OTHER_DEFAULTS = {
    "group.consumer.migration.policy", "group.coordinator.rebalance.protocols", "group.initial.rebalance.delay.ms",
    "group.min.session.timeout.ms", "group.streams.initial.rebalance.delay.ms",
    "listener.security.protocol.map", "listeners", "log.segment.bytes", "max.connections.per.ip.overrides",
    "metric.reporters", "node.id", "offsets.topic.replication.factor", "process.roles", "queued.max.request.bytes",
    "sasl.enabled.mechanisms", "socket.listen.backlog.size", "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
}  # fmt: skip
NOT_LIVE = {
    "listeners",
    "listener.security.protocol.map",
    "sasl.enabled.mechanisms",
    "sasl.mechanism.inter.broker.protocol",
}


def own(scope: str, name: str) -> ConfigKey:
    return (BROKER if scope == "broker" else TOPIC)[name]


def test_the_catalogue_is_whole():
    assert sum(scope == "broker" for scope, _ in KAFKA) > 300
    assert sum(scope == "topic" for scope, _ in KAFKA) > 30


@pytest.mark.parametrize(("scope", "name"), KAFKA)
def test_a_config_is_as_kafka_has_it(scope, name):
    row, kafkas = own(scope, name), KAFKA[scope, name]
    if name not in OTHER_DEFAULTS:
        assert row.default == kafkas.default
    if name not in NOT_LIVE:
        assert row.dynamic == kafkas.dynamic
    if name != "process.roles":
        assert row.kind.kafka == kafkas.kind.kafka
    if row.default is not None:
        assert row.kind.parse(row.kind.spell(row.default)) == row.default


def test_what_nothing_obeys_says_so():
    row = broker_setting("sasl.kerberos.min.time.before.relogin")
    assert (row.default, row.kind.kafka, row.dynamic, row.emulated) == (60_000, ConfigType.LONG, True, False)
    assert row.documentation == f"Login thread sleep time between refresh attempts. {NOT_EMULATED}"


def test_a_password_is_described_and_cannot_be_set():
    row = broker_setting("ssl.keystore.password")
    assert row.kind is SECRET and row.default is None and not row.dynamic
    with pytest.raises(ConfigInvalid, match="password"):
        parse(row, row.name, "secret")


def test_of_a_password_that_is_set_only_that_is_known():
    row = broker_setting("delegation.token.secret.key")
    assert row.kind.kafka is ConfigType.PASSWORD and row.default is None and not row.dynamic
    assert [parse(row, row.name, text) for text in ("secret", " ", HIDDEN)] == [HIDDEN, "", HIDDEN]
    assert "secret" not in static_settings([(row.name, "secret")]).values()


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [("log.cleaner.io.buffer.load.factor", "0.5", "x"), ("ssl.client.auth", "required", "maybe"),
     ("group.share.max.size", "50", "0"), ("controller.quorum.voters", "1@h:1", None),
     ("remote.log.storage.system.enable", "true", "yes")],
)  # fmt: skip
def test_values_are_checked_as_kafka_does(name, good, bad):
    row = broker_setting(name)
    parse(row, name, good)
    if bad is not None:
        with pytest.raises(ConfigInvalid):
            parse(row, name, bad)
