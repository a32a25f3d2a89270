"""`turnstile schema`: every file that its reader takes is as the schema says, and a name that it refuses is not."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from broker.admin.openapi import document
from broker.admin.redpanda import as_json
from shards.settings.config_def import BROKER, parse
from shards.settings.config_types import text_of
from shards.settings.errors import ConfigInvalid
from turnstile.cli import config_file
from turnstile.cli.file_schemas import config_schema, scenario_schema
from turnstile.cli.init import content
from turnstile.cli.schema import schema
from turnstile.cli.up import up
from turnstile.load import scenario_file
from turnstile.load.spec import SpecInvalid

ROOT = Path(__file__).parents[3]
CONFIG, SCENARIO = Draft7Validator(config_schema()), Draft7Validator(scenario_schema())
SETTINGS = {name: row for name, row in BROKER.items() if not row.told}
NUMBERS = [name for name, row in SETTINGS.items() if row.kind.json_type == "integer"]


def faults(validator: Draft7Validator, value: object) -> list[str]:
    return [f"{fault.json_path}: {fault.message}" for fault in validator.iter_errors(value)]


def blocks() -> list[tuple[str, dict[str, Any]]]:
    """The TOML blocks of the documents, by the name that each gives its file."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "modules").glob("*.md")]
    return [
        (f"{page.name}: {block.splitlines()[0]}", tomllib.loads(block))
        for page in pages
        for block in re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    ]


SCENARIOS = [
    *((path.name, tomllib.loads(path.read_text())) for path in sorted(scenario_file.SHIPPED.glob("*.toml"))),
    *((name, told) for name, told in blocks() if {"group", "traffic"} & told.keys()),
]
CONFIGS = [
    *((name, told) for name, told in blocks() if told.keys() <= set(config_file.TABLES)),
    ("turnstile init", tomllib.loads(re.sub(r"^#(?=\S)", "", content(Path("turnstile.toml")), flags=re.MULTILINE))),
]


@pytest.mark.parametrize("what", ["config", "scenario", "openapi"])
def test_the_command_prints_it(what: str) -> None:
    done = CliRunner().invoke(schema, [what])
    assert done.exit_code == 0, done.output
    made = {"config": config_schema, "scenario": scenario_schema, "openapi": document}[what]()
    assert json.loads(done.stdout) == json.loads(json.dumps(made))


@pytest.mark.parametrize(
    ("table", "name", "good", "bad"),
    [
        ("cluster", "brokers", (1, 64), (0, 65, "3")),
        ("cluster", "shards", (1, 64), (0, 65)),
        ("cluster", "port", (0, 65_535), (-1, 65_536)),
        ("cluster", "admin_port", (0, 65_535), (70_000,)),
        ("cluster", "name", ("a.b-c_1", "x" * 64), ("", "a b", "x" * 65, "ä")),
        ("topics", "orders", (1, 10_000), (0, 10_001, "6")),
        ("topics", "a/b", (), (1,)),
        ("topics", "..", (), (1,)),
        ("topics", "__consumer_offsets", (), (50,)),
        ("topics", "x" * 249, (1,), ()),
        ("topics", "x" * 250, (), (1,)),
    ],
)
def test_the_schema_and_up_agree_on_bounds(table: str, name: str, good: Any, bad: Any, tmp_path: Path) -> None:
    """`up` is asked with a setting that it refuses: it gets as far as that if all else is right."""
    for value, is_good in [*((each, True) for each in good), *((each, False) for each in bad)]:
        file = {table: {name: value}}
        assert (faults(CONFIG, file) == []) is is_good, value
        path = tmp_path / "cluster.toml"
        path.write_text(f"[{table}]\n{json.dumps(name)} = {json.dumps(value, ensure_ascii=False)}\n")
        done = CliRunner().invoke(up, ["--config", str(path), "--set", "no.such=1"])
        assert done.exit_code == 2 and ("no.such" in done.output) is is_good, (value, done.output)


def test_both_schemas_are_valid_json_schemas() -> None:
    Draft7Validator.check_schema(config_schema())
    Draft7Validator.check_schema(scenario_schema())


def test_every_toml_of_the_documents_is_one_of_the_two() -> None:
    known = {name for name, _ in (*SCENARIOS, *CONFIGS)}
    assert len(CONFIGS) >= 2 and len(SCENARIOS) > 10
    assert [name for name, told in blocks() if name not in known and told] == []


@pytest.mark.parametrize(("name", "told"), CONFIGS)
def test_each_example_of_a_config_file_is_as_the_schema_says(name: str, told: dict[str, Any]) -> None:
    assert faults(CONFIG, told) == []


@pytest.mark.parametrize(("name", "told"), SCENARIOS)
def test_each_example_of_a_scenario_is_as_the_schema_says(name: str, told: dict[str, Any]) -> None:
    assert faults(SCENARIO, told) == []


def test_every_setting_is_there_under_its_name_and_its_parts() -> None:
    for name, row in SETTINGS.items():
        value = as_json(row, row.default)
        if value is None:
            value = "10.0.0.1:5" if name.endswith("overrides") else "1"
        quoted = tomllib.loads(f'"{name}" = {json.dumps(value)}')
        unquoted = tomllib.loads(f"{name} = {json.dumps(value)}")
        for limits in (quoted, unquoted):
            assert faults(CONFIG, {"limits": limits}) == [], limits
        assert config_schema()["definitions"][name]["description"] if row.documentation else True


def test_a_listeners_own_settings_are_there() -> None:
    for line in (
        '"listener.name.external.max.connections" = 8',
        "listener.name.external.max.connections = 8",
        "listener.name.external.max.connection.creation.rate = 8",
    ):
        assert faults(CONFIG, {"limits": tomllib.loads(line)}) == [], line
    for line in (
        '"listener.name.external.max.conections" = 8',
        "listener.name.external.max.conections = 8",
        "listener.names.external.max.connections = 8",
        '"listener.name.external.num.partitions" = 8',
    ):
        assert faults(CONFIG, {"limits": tomllib.loads(line)}), line


def test_a_cap_can_be_observed_in_the_same_spellings() -> None:
    for line in (
        "max.connections.per.ip = 8",
        '"max.connections.per.ip" = 8',
        "kafka_connections_max = 8",
        "listener.name.external.max.connections = 8",
    ):
        assert faults(CONFIG, {"observe": tomllib.loads(line)}) == [], line


@given(st.sampled_from(NUMBERS), st.integers(-3, 2**31) | st.integers(-(2**63), 2**63))
def test_a_number_is_as_the_schema_says_where_the_setting_takes_it(name: str, number: int) -> None:
    try:
        parse(BROKER[name], name, text_of(number))
    except ConfigInvalid:
        assert faults(CONFIG, {"limits": {name: number}})
    else:
        assert faults(CONFIG, {"limits": {name: number}}) == []


@pytest.mark.parametrize(
    "told",
    [
        {"limit": {}},
        {"cluster": {"broker": 3}},
        {"cluster": {"brokers": "3"}},
        {"topics": {"orders": "6"}},
        {"limits": {"kafka_conections_max": 5}},
        {"limits": {"max": {"conections": 5}}},
        {"limits": {"broker.id": 5}},
        {"observe": {"num.partitions": 5}},
        {"quota": [{"user": "alice", "producer_byterate": 5}]},
        {"quota": [{"user": "alice"}]},
        {"quota": [{"producer_byte_rate": 5}]},
        {"quota": {"user": "alice", "producer_byte_rate": 5}},
        {"quota": [{"user": "alice", "producer_byte_rate": 0}]},
        {"quota": [{"user": "alice", "producer_byte_rate": 1.5}]},
        {"quota": [{"user": "alice", "connection_creation_rate": 5}]},
        {"quota": [{"ip": "10.0.0.1", "producer_byte_rate": 5}]},
        {"quota": [{"ip": "10.0.0.1", "user": "alice", "connection_creation_rate": 5}]},
    ],
)
def test_what_is_misspelt_in_a_config_file_is_found(told: dict[str, Any]) -> None:
    assert faults(CONFIG, told)


@pytest.mark.parametrize(("name", "told"), SCENARIOS[:3])
def test_a_misspelt_key_of_a_scenario_is_found_by_both(name: str, told: dict[str, Any]) -> None:
    places = [(), *((key, n) for key in ("group", "traffic") for n in range(len(told.get(key, []))))]
    for place in places:
        changed = copy.deepcopy(told)
        table = changed[place[0]][place[1]] if place else changed
        table["misspelt"] = 1
        assert faults(SCENARIO, changed)
        with pytest.raises(SpecInvalid, match="no key 'misspelt'"):
            scenario_file.build(changed, name)


@pytest.mark.parametrize(
    "told",
    [
        {"seconds": 1},
        {"group": [{"clients": 1.5}]},
        {"group": [{"hold_s": "ever"}]},
        {"group": [{"reconnect": 1}]},
        {"group": [{}], "probe": "other"},
        {"traffic": [{"producers": 1}]},
    ],
)
def test_a_scenario_that_is_refused_is_refused_by_both(told: dict[str, Any]) -> None:
    assert faults(SCENARIO, told)
    with pytest.raises(SpecInvalid):
        scenario_file.build(told, "x")
