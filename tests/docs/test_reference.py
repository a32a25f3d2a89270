"""The pages of reference that are made from the code have all that the code has."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
import pytest
from pages import ROOT

from broker.admin.openapi import document
from broker.journal.schema import REASONS
from shards.limits.quota_entities import CLIENT_KEYS, IP_KEYS
from shards.settings.config_def import BROKER, TOPIC
from shards.settings.config_key import ConfigKey
from shards.settings.limiting_settings import LIMITING
from shards.settings.resource_settings import GROUP
from turnstile.cli.main import COMMANDS, turnstile

sys.path.insert(0, str(ROOT))

from scripts.docs.admin_api_page import admin_api_page, kind_of, title_of
from scripts.docs.commands_page import OF_A_CLUSTER, commands_page  # importable only from here on
from scripts.docs.limits_page import limits_page
from scripts.docs.markdown import plain, slug
from scripts.docs.settings_page import default_of, range_of, settings_page, targets, unit_of

SETTINGS, LIMITS, COMMAND_LINE = settings_page({}), limits_page(), commands_page()
ROWS = [*BROKER.values(), *TOPIC.values(), *GROUP.values()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_setting_is_there_with_what_it_takes_and_what_holds_without_it(row: ConfigKey) -> None:
    entry = SETTINGS.partition(f"\n### {row.name}\n")[2].partition("\n##")[0]
    if row.told or not row.emulated:
        assert f"| `{row.name}` |" in SETTINGS
    else:
        assert plain(row.doc)[:20] in entry
        assert f"{range_of(row)} · default {default_of(row)} · {'live' if row.dynamic else 'at the start'}" in entry


def test_what_a_setting_takes_in_words() -> None:
    assert range_of(BROKER["kafka_connections_max"]) == "whole number from 0 (unsigned 32 bit)"
    assert range_of(BROKER["log.retention.ms"]) == "whole number from 1 (64 bit), or -1, milliseconds"
    assert range_of(TOPIC["min.cleanable.dirty.ratio"]) == "number from 0 to 1"
    assert range_of(TOPIC["cleanup.policy"]) == "list of `compact`, `delete`"
    assert default_of(BROKER["connections.max.idle.ms"]) == "`600000` (10 min)"
    assert default_of(BROKER["max.connections"]) == "`2147483647` (no limit)"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_number_whose_name_says_its_unit_has_it(row: ConfigKey) -> None:
    ends = {"ms": "milliseconds", "bytes": "bytes", "seconds": "seconds", "minutes": "minutes", "hours": "hours"}
    last = row.name.replace("_", ".").rpartition(".")[2]
    assert unit_of(row.name) == ends.get(last, unit_of(row.name))


def test_a_setting_names_the_pages_that_say_more() -> None:
    assert "More: [Storage](../storage.md).\n" in settings_page(
        {"storage_min_free_bytes": ["[Storage](../storage.md)"]}
    )


def test_every_limit_quota_and_reason_is_there() -> None:
    named = [row.name for row in LIMITING if not row.name.startswith("turnstile.")]
    assert [name for name in (*named, *IP_KEYS, *CLIENT_KEYS, *REASONS) if f"`{name}`" not in LIMITS] == []
    assert {f"settings.md{targets()[name]}" in LIMITS for name in named} == {True}


def commands(group: click.Group, above: click.Context) -> Iterator[click.Context]:
    """Every command below a group that is shown."""
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        assert command is not None
        if not command.hidden:
            context = click.Context(command, info_name=name, parent=above)
            yield context
            if isinstance(command, click.Group):
                yield from commands(command, context)


ALL = list(commands(turnstile, click.Context(turnstile, info_name="turnstile")))


def test_there_are_commands_with_subcommands() -> None:
    assert len(ALL) > len(COMMANDS) > 10


@pytest.mark.parametrize("context", ALL, ids=lambda context: context.command_path)
def test_every_command_is_there_with_its_options_and_their_variables(context: click.Context) -> None:
    entry = COMMAND_LINE.partition(f"# {context.command_path}\n")[2].partition("\n##")[0]
    assert f"```text\n{context.command_path} " in entry
    for option in context.command.params:
        if isinstance(option, click.Option) and not option.hidden and option.name not in OF_A_CLUSTER:
            assert f"| `{option.opts[0]}" in entry and f"`{option.envvar}` |" in entry
    assert "\b" not in entry


DOCUMENT = document()
ADMIN_API = admin_api_page(DOCUMENT)
CALLS = [(path, method) for path, item in DOCUMENT["paths"].items() for method in item]


@pytest.mark.parametrize(("path", "method"), CALLS)
def test_every_call_is_there_with_what_it_takes_and_answers(path: str, method: str) -> None:
    title, operation = title_of(path, method), DOCUMENT["paths"][path][method]
    entry = ADMIN_API.partition(f"\n### {title}\n")[2].partition("\n##")[0]
    assert plain(operation["summary"]) in entry
    assert f"[`{title}`](#{slug(title)})" in ADMIN_API
    for parameter in operation.get("parameters", ()):
        assert f"| `{parameter['name']}` | {parameter['in']} |" in entry
    assert ("Body: " in entry) == ("requestBody" in operation)
    assert "Answers: 200, " in entry


def test_every_object_of_the_admin_api_is_there() -> None:
    assert [name for name in DOCUMENT["components"]["schemas"] if f"\n### {name}\n" not in ADMIN_API] == []


def test_a_schema_in_words() -> None:
    assert kind_of({"type": "array", "items": {"$ref": "#/components/schemas/Pool"}}) == "list of [Pool](#pool)"
    assert kind_of({"type": ["integer", "null"]}) == "integer or null"
    either = {"anyOf": [{"type": "string"}, {"enum": ["a", "b"]}]}
    assert kind_of({"type": "object", "additionalProperties": either}) == "map of name to (text or `a`, `b`)"
    assert kind_of({"type": "boolean", "default": False}) == "boolean, `false` by default"
