"""Every row of the definitions is obeyed by something, or says that it is not."""

import ast
from functools import cache
from pathlib import Path

import pytest

import shards
from shards.settings.broker_settings import COORDINATING, METERING, SERVING
from shards.settings.config_def import BROKER, TOPIC, broker_setting
from shards.settings.config_key import NOT_EMULATED
from shards.settings.errors import ConfigInvalid
from shards.settings.limiting_settings import LIMITING, THROUGHPUT
from shards.settings.resource_settings import GROUP

DEFINITIONS = {"broker_settings.py", "topic_settings.py", "internal_topics.py"}


@cache
def words_of_the_code() -> set[str]:
    """Every string that a module of shards or broker names as a whole, but the definitions themselves."""
    root = Path(shards.__file__).parent.parent
    found: set[str] = set()
    for path in [*root.glob("shards/**/*.py"), *root.glob("broker/**/*.py")]:
        if path.name not in DEFINITIONS:
            nodes = ast.walk(ast.parse(path.read_text()))
            found |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return found


STANDS_IN_FOR = {name for row in (*TOPIC.values(), *GROUP.values()) if row.emulated for name, _ in row.broker_names}


OWN = [
    row.name for row in (*LIMITING, *THROUGHPUT, *METERING, *SERVING, *COORDINATING)
]  # others are Kafka's catalogue, and say so


@pytest.mark.parametrize("name", OWN)
def test_a_broker_setting_is_read_somewhere_or_says_that_it_is_not_emulated(name: str) -> None:
    read = name in words_of_the_code() or name in STANDS_IN_FOR
    assert BROKER[name].emulated == (read or BROKER[name].told)


@pytest.mark.parametrize("name", TOPIC)
def test_a_topic_config_is_read_somewhere_or_says_that_it_is_not_emulated(name: str) -> None:
    assert TOPIC[name].emulated == (name in words_of_the_code())


def test_what_is_not_emulated_is_said_in_its_documentation() -> None:
    rows = [*BROKER.values(), *TOPIC.values()]
    assert all((NOT_EMULATED in row.documentation) != row.emulated for row in rows)
    assert {row.name for row in rows if not row.emulated} >= {
        "producer.id.expiration.ms",
        "share.coordinator.append.linger.ms",
    }  # fmt: skip


def test_a_name_that_is_nearly_one_is_pointed_out() -> None:
    with pytest.raises(ConfigInvalid, match=r"did you mean max\.connections\.per\.ip\?"):
        broker_setting("max_connections_per_ip")
