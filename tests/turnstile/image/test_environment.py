"""The environment of a container as the command line of `turnstile up`: every spelling, every precedence, nothing dropped."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from turnstile.cli.config_file import ConfigFile, ConfigFileInvalid
from turnstile.cli.main import COMMANDS
from turnstile.cli.up import up
from turnstile.image.environment import Found, options_of
from turnstile.image.names import is_of_others, kafka_setting

OPTIONS = [option.lstrip("-") for each in up.params for option in each.opts]
DEFAULTS = ["--host", "0.0.0.0", "--port", "9092", "--admin-port", "9644", "--shards", "2"]


def found(*arguments: str, file: ConfigFile | None = None, **environment: str) -> Found:
    return options_of(environment, arguments, file or ConfigFile(), options=OPTIONS, commands=COMMANDS)


def settings(options: list[str]) -> list[str]:
    return [word for option, word in pairwise(options) if option == "--set"]


def listeners(options: list[str]) -> list[str]:
    return [word for option, word in pairwise(options) if option == "--listener"]


@pytest.mark.parametrize(
    ("variable", "setting"),
    [
        ("TURNSTILE_KAFKA_CONNECTIONS_MAX_PER_IP", "kafka_connections_max_per_ip"),
        ("TURNSTILE_MAX_CONNECTIONS_PER_IP", "max.connections.per.ip"),
        ("KAFKA_MAX_CONNECTIONS_PER_IP", "max.connections.per.ip"),
        ("TURNSTILE_PER_IP", "kafka_connections_max_per_ip"),
        ("TURNSTILE_SHARD_TIMEOUT_MS", "turnstile.shard.timeout.ms"),
        ("TURNSTILE_TURNSTILE_SHARD_TIMEOUT_MS", "turnstile.shard.timeout.ms"),
        ("KAFKA_LISTENER_NAME_EDGE_MAX_CONNECTIONS", "listener.name.edge.max.connections"),
        ("KAFKA_CONTROLLER_QUOTA_WINDOW_NUM", "controller.quota.window.num"),
        ("TURNSTILE_QUOTA_WINDOW_NUM", "quota.window.num"),
        ("TURNSTILE_CONNECTIONS_MAX_IDLE_MS", "connections.max.idle.ms"),
        ("TURNSTILE_TELEMETRY_MAX_BYTES", "telemetry.max.bytes"),
        ("TURNSTILE_UP_SET", None),
    ],
)
def test_a_setting_by_each_of_its_names(variable: str, setting: str | None) -> None:
    value = "5" if setting else "max.connections=5"
    assert settings(found(**{variable: value}).options) == [f"{setting or 'max.connections'}=5"]


def test_names_as_apaches_image_reads_them() -> None:
    assert kafka_setting("KAFKA_A_B__C___D") == "a.b_c-d"


def test_without_any_variable_there_is_one_listener_and_the_admin_api_stays_inside() -> None:
    plain = found()
    assert plain.options == DEFAULTS
    assert len(plain.said) == 1 and "in this container only" in plain.said[0]


def test_with_a_token_the_admin_api_listens_everywhere() -> None:
    for more in ({"TURNSTILE_ADMIN_TOKEN": "t"}, {"TURNSTILE_UP_ADMIN_TOKEN_FILE": "/run/secrets/t"}):
        assert found(**more) == Found([*DEFAULTS, "--admin-host", "0.0.0.0"])
    by_file = found(TURNSTILE_ADMIN_TOKEN_FILE="/run/secrets/t")
    assert by_file == Found([*DEFAULTS, "--admin-token-file", "/run/secrets/t", "--admin-host", "0.0.0.0"])
    assert found("--admin-token-file=/t").options == [*DEFAULTS, "--admin-host", "0.0.0.0"]
    assert found("--admin-host", "127.0.0.1", TURNSTILE_ADMIN_TOKEN="t").options == DEFAULTS


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(["--port", "0"], {}), (["--listener=A=0.0.0.0:1"], {}), ([], {"TURNSTILE_UP_LISTENER": "A=0.0.0.0:1"}),
     ([], {"TURNSTILE_UP_PORT": "1"})],
)  # fmt: skip
def test_a_listener_of_the_command_line_or_its_variable_goes_before_kafkas(
    arguments: list[str], environment: dict[str, str]
) -> None:
    assert listeners(found(*arguments, **environment, KAFKA_LISTENERS="B://:2").options) == []


def test_the_mounted_file_goes_before_the_defaults_and_after_variables() -> None:
    file = ConfigFile(
        cluster={"shards": 1, "admin_host": "127.0.0.1", "host": "10.0.0.1", "port": 1, "admin_port": 2},
        listeners=["A=0.0.0.0:1"],
    )
    assert found(file=file) == Found()
    assert listeners(found(file=file, KAFKA_LISTENERS="B://:2").options) == ["B=0.0.0.0:2"]


def test_listeners_as_kafkas_image_takes_them() -> None:
    asked = found(
        KAFKA_NODE_ID="1",
        KAFKA_PROCESS_ROLES="broker,controller",
        KAFKA_LISTENERS="INSIDE://:19092,OUTSIDE://0.0.0.0:9092,CTRL://:9093",
        KAFKA_ADVERTISED_LISTENERS="INSIDE://kafka:19092,OUTSIDE://localhost:9092",
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT,CTRL:PLAINTEXT",
        KAFKA_CONTROLLER_LISTENER_NAMES="CTRL",
        KAFKA_CONTROLLER_QUORUM_VOTERS="1@localhost:9093",
        KAFKA_INTER_BROKER_LISTENER_NAME="INSIDE",
        KAFKA_HEAP_OPTS="-Xmx1G",
        TURNSTILE_ADMIN_TOKEN="t",
    )
    assert listeners(asked.options) == ["INSIDE=0.0.0.0:19092", "OUTSIDE=0.0.0.0:9092,sasl"]
    assert settings(asked.options) == [
        "inter.broker.listener.name=INSIDE",
        "advertised.listeners=INSIDE://kafka:19092,OUTSIDE://localhost:9092",
    ]
    assert asked.said == []


def test_of_two_variables_of_one_setting_the_one_that_counts_is_said() -> None:
    twice = found(KAFKA_MAX_CONNECTIONS_PER_IP="2", TURNSTILE_MAX_CONNECTIONS_PER_IP="1")
    assert settings(twice.options)[-1] == "max.connections.per.ip=2"
    both = "KAFKA_MAX_CONNECTIONS_PER_IP and TURNSTILE_MAX_CONNECTIONS_PER_IP are both max.connections.per.ip: the first counts"
    assert both in twice.said
    short = found(TURNSTILE_KAFKA_CONNECTIONS_MAX_PER_IP="1", TURNSTILE_PER_IP="2")
    assert settings(short.options)[-1] == "kafka_connections_max_per_ip=2"
    assert short.said[0].startswith("TURNSTILE_PER_IP and TURNSTILE_KAFKA_CONNECTIONS_MAX_PER_IP are both")
    told = found(KAFKA_ADVERTISED_LISTENERS="A://a:1", TURNSTILE_ADVERTISED_LISTENERS="A://b:1")
    assert settings(told.options)[-1] == "advertised.listeners=A://a:1"
    assert any("KAFKA_ADVERTISED_LISTENERS and TURNSTILE_ADVERTISED_LISTENERS" in each for each in told.said)
    listening = found(KAFKA_LISTENERS="A://:1", TURNSTILE_UP_LISTENER="B=127.0.0.1:2")
    assert any(each.startswith("KAFKA_LISTENERS is left out") for each in listening.said)


def test_a_variable_that_compose_left_empty_is_no_value() -> None:
    left = found(TURNSTILE_KAFKA_CONNECTIONS_MAX_PER_IP="")
    assert settings(left.options) == [] and "TURNSTILE_KAFKA_CONNECTIONS_MAX_PER_IP is empty: left out" in left.said


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("KAFKA_ADVERTISED_LISTENERS", "A://0.0.0.0:1", "KAFKA_ADVERTISED_LISTENERS: address .* can't connect to"),
        ("KAFKA_ADVERTISED_LISTENERS", "localhost:1", "must be NAME://host:port"),
        ("KAFKA_LISTENERS", "9092", "listeners: '9092' is not NAME://host:port"),
        ("KAFKA_LISTENERS", "SSL://:9092", "name its certificate"),
    ],
)
def test_a_value_that_can_not_be_is_said_in_one_sentence(variable: str, value: str, why: str) -> None:
    with pytest.raises(ConfigFileInvalid, match=why):
        found(**{variable: value})


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("KAFKA_MAX_CONECTIONS", "did you mean KAFKA_MAX_CONNECTIONS?"),
        ("KAFKA_CREATE_TOPICS", "KAFKA_CREATE_TOPICS (create.topics) is not a setting: left out"),
        ("TURNSTILE_KAFKA_CONNECTION_MAX", "did you mean TURNSTILE_KAFKA_CONNECTIONS_MAX?"),
        ("TURNSTILE_UP_BROKER", "not an option of `turnstile up`: left out; did you mean TURNSTILE_UP_BROKERS?"),
        ("TURNSTILE_FOO", "TURNSTILE_FOO is not a setting: left out"),
        ("TURNSTILE_BROKERS", "TURNSTILE_BROKERS is not a setting: left out; did you mean TURNSTILE_UP_BROKERS?"),
        ("TURNSTILE_ADMIN_PORT", "left out; did you mean TURNSTILE_UP_ADMIN_PORT?"),
        ("TURNSTILE_PORT", "left out; did you mean TURNSTILE_UP_PORT?"),
        ("KAFKA_PORT", "KAFKA_PORT (port) is not a setting: left out"),
        (
            "KAFKA_ADVERTISED_HOST_NAME",
            "KAFKA_ADVERTISED_HOST_NAME (advertised.host.name) is not a setting: left out",
        ),
    ],
)
def test_a_variable_that_means_nothing_is_named(variable: str, said: str) -> None:
    asked = found(TURNSTILE_ADMIN_TOKEN="t", **{variable: "1"})
    assert len(asked.said) == 1 and said in asked.said[0]
    assert settings(asked.options) == []


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("KAFKA_SERVICE_HOST", "10.0.0.1"), ("KAFKA_PORT", "tcp://10.0.0.1:9092"), ("KAFKA_SERVICE_PORT_CLIENT", "9092"),
        ("TURNSTILE_PORT_9092_TCP_ADDR", "10.0.0.1"), ("KAFKA_EDGE_PORT_9092_TCP_PROTO", "tcp"), ("KAFKA_VERSION", "4.1"),
        ("KAFKA_LOG4J_LOGGERS", "a=INFO"), ("TURNSTILE_LOAD_SOURCES", "127.1.0.0/24"), ("HOME", "/"), ("KAFKA", "1"),
    ],
)  # fmt: skip
def test_what_other_programs_put_there_is_left_alone(variable: str, value: str) -> None:
    assert found(TURNSTILE_ADMIN_TOKEN="t", **{variable: value}).said == []


@pytest.mark.parametrize("prefix", ["KAFKA_", "TURNSTILE_"])
def test_no_setting_is_dropped_in_silence(prefix: str) -> None:
    """Each setting becomes one by its variable, or is said; `node.id` and others of that kind are no client's matter."""
    from shards.settings.config_def import BROKER

    quiet = {
        "node.id", "broker.id", "process.roles", "controller.listener.names", "log.dir", "log.dirs",
        *(name for name in BROKER if name.startswith("controller.quorum.")),
    }  # fmt: skip
    quiet |= {"advertised.listeners", "listeners", "listener.security.protocol.map"}
    for name in BROKER.keys() - quiet:
        spelled = name.replace("_", "__") if "." in name and prefix == "KAFKA_" else name
        variable = prefix + spelled.replace("-", "___").replace(".", "_").upper()
        asked = found(TURNSTILE_ADMIN_TOKEN="t", **{variable: "1"})
        became = [each.replace("_", ".") for each in settings(asked.options)]  # two have a twin in the other vocabulary
        assert became == [f"{name}=1".replace("_", ".")] or asked.said, variable


def test_a_setting_is_never_taken_for_a_service() -> None:
    from shards.settings.config_def import BROKER

    spelled = (f"KAFKA_{re.sub('[._]', '_', name).upper()}" for name in BROKER)
    assert [name for name in spelled if is_of_others(name, "1")] == []


NAMES = st.from_regex(r"\A(KAFKA|TURNSTILE)_[A-Z_]{0,12}\Z")


@given(st.dictionaries(NAMES, st.text(max_size=6), max_size=3))
def test_any_environment_is_a_command_line_or_one_sentence(environment: dict[str, str]) -> None:
    try:
        asked = found(**environment)
    except ConfigFileInvalid as fault:
        assert "\n" not in str(fault)
        return
    assert all(isinstance(word, str) for word in asked.options)


def test_the_command_takes_what_is_made() -> None:
    words = [*found(KAFKA_LISTENERS="A://:0", TURNSTILE_PER_IP="x").options, "--say-ready", "ready"]
    said = CliRunner().invoke(up, words)
    assert said.exit_code == 2 and "kafka_connections_max_per_ip cannot be 'x'" in said.output
