"""JSON Schemas of the files that people write: `turnstile up --config` and load scenarios. Made from what reads them: the table
of settings, the options of `turnstile up`, the dataclasses of a scenario.

accepted_files_validate  What the reader of a file accepts, its schema accepts, and it refuses a name that the reader refuses.

Draft 7, which editors' TOML extensions read. TOML reads an unquoted `max.connections = 5` as a table of a table, so a setting
has two places: under its whole name, and in a table for each part of it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from itertools import pairwise
from typing import Any, TypeAlias

import click

from broker.process.cluster_names import NAME
from shards.config.internal_topics import INTERNAL_TOPICS
from shards.limits.observed_limits import OBSERVABLE
from shards.limits.quota_entities import CLIENT_KEYS, IP_KEYS, LARGEST
from shards.settings.config_def import BROKER, LISTENER_PREFIX
from shards.settings.config_key import ConfigKey
from turnstile.cli.config_file import BY_NAME, CLUSTER
from turnstile.entities import ENTITY_TYPES
from turnstile.load.scenario_file import NOT_KEYS, TABLES
from turnstile.load.spec import CHOICES, LoadScenario

Schema: TypeAlias = dict[str, Any]
_DEFINED = "#/definitions/"
_DRAFT = "http://json-schema.org/draft-07/schema#"
_TYPES = {int: "integer", str: "string"}
_ABOUT = {
    "cluster": "Options of `turnstile up`.",
    "listeners": "By name, as `--listener` takes them: host:port, and options such as sasl.",
    "topics": "Partitions by topic.",
    "users": "Passwords by user, for listeners that ask for SASL.",
}


def config_schema() -> Schema:
    """The schema of a TOML file for `turnstile up --config`."""
    from turnstile.cli.up import up
    from turnstile.cli.up_params import MOST_PARTITIONS, TOPIC_NAME

    options = {option.name: option for option in up.params if isinstance(option, click.Option)}
    cluster = {name: _of_option(options[name], kind) for name, kind in CLUSTER.items()}
    by_name = {
        table: {"type": "object", "description": _ABOUT[table], "additionalProperties": {"type": _TYPES[kind]}}
        for table, kind in BY_NAME.items()
    }
    by_name["topics"] |= {
        "additionalProperties": {"type": "integer", "minimum": 1, "maximum": MOST_PARTITIONS},
        "propertyNames": {"pattern": f"^{TOPIC_NAME.pattern}$", "not": {"enum": [".", "..", *INTERNAL_TOPICS]}},
    }
    tables = {
        "cluster": _closed(cluster, description=_ABOUT["cluster"]),
        **by_name,
        **_limit_tables(),
        "observe": _observed(),
    }
    return {"$schema": _DRAFT, "title": "turnstile up --config", **_closed(tables), "definitions": _definitions()}


def scenario_schema() -> Schema:
    """The schema of a scenario file for `turnstile load --scenario`."""
    own = _of_dataclass(LoadScenario, without=[field for _, field in TABLES.values()], optional=("name",))
    lists = {key: {"type": "array", "items": _of_dataclass(kind)} for key, (kind, _) in TABLES.items()}
    own["properties"] |= {**lists, **_limit_tables()}
    needs = {"anyOf": [{"required": [key]} for key in TABLES]}
    return {"$schema": _DRAFT, "title": "turnstile load --scenario", **own, **needs, "definitions": _definitions()}


def _of_option(option: click.Option, kind: type) -> Schema:
    bounds: Schema = {}
    if isinstance(option.type, click.Choice):
        bounds = {"enum": list(option.type.choices)}
    elif isinstance(option.type, click.IntRange):
        ends = {"minimum": option.type.min, "maximum": option.type.max}
        bounds = {end: value for end, value in ends.items() if value is not None}
    elif option.name == "name":
        bounds = {"pattern": f"^{NAME}$"}
    return {"type": _TYPES[kind], "description": option.help or "", **bounds}


def _closed(properties: Mapping[str, Schema], **more: Any) -> Schema:
    return {"type": "object", **more, "properties": dict(properties), "additionalProperties": False}


# ---- [limits] and [[quota]]


def _limit_tables() -> dict[str, Schema]:
    return {"limits": _defined("limits"), "quota": {"type": "array", "items": _quota()}}


def _definitions() -> dict[str, Schema]:
    """The settings by their names, and the table of them."""
    settings = {name: row for name, row in BROKER.items() if not row.told}
    return {"limits": _limits(settings, "Settings by name."), **{name: _value(row) for name, row in settings.items()}}


def _observed() -> Schema:
    return _limits(
        {name: BROKER[name] for name in OBSERVABLE},
        "Limits of connections that are rehearsed: counted by, never enforced.",
    )


def _limits(settings: Mapping[str, ConfigKey], description: str) -> Schema:
    of_listeners = [name for name, row in settings.items() if row.per_listener]
    prefix = LISTENER_PREFIX.replace(".", "[.]")
    patterns = {f"^{prefix}[^.]+[.]{name.replace('.', '[.]')}$": _defined(name) for name in of_listeners}
    own = {"type": "object", "description": "Settings of one listener, by its name."}
    nested = _nested(settings)
    nested["listener"] = _closed({"name": {**own, "additionalProperties": _closed(_nested(of_listeners))}})
    whole = {name: _defined(name) for name in settings if name not in nested}
    return {**_closed({**whole, **nested}, description=description), "patternProperties": patterns}


def _nested(names: Iterable[str], before: str = "") -> dict[str, Schema]:
    """Settings by the first parts of their names, and below each the table of the next parts."""
    parts: dict[str, list[str]] = {}
    for name in names:
        first, _, rest = name.partition(".")
        parts.setdefault(first, []).append(rest)
    found = {}
    for first, rests in parts.items():
        longer = [rest for rest in rests if rest]
        schemas = [_defined(f"{before}{first}")] if "" in rests else []
        schemas += [_closed(_nested(longer, f"{before}{first}."))] if longer else []
        found[first] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return found


def _defined(name: str) -> Schema:
    return {"$ref": f"{_DEFINED}{name}"}


def _value(row: ConfigKey) -> Schema:
    """The schema of a setting: a value of its type, or the text of one; a list also as several texts, overrides as a table."""
    kind = row.kind
    schemas: list[Schema] = []
    if kind.json_type in ("integer", "number"):
        schemas.append({"type": kind.json_type, **_range(row)})
        schemas += [{"enum": list(kind.also)}] if kind.also else []
    elif kind.json_type == "boolean":
        schemas.append({"type": "boolean"})
    elif kind.json_type == "array":
        items = {"type": kind.items or "string", **({"enum": list(kind.choices)} if kind.choices else {})}
        schemas.append({"type": "array", "items": items})
        schemas += (
            [{"type": "object", "additionalProperties": {"type": "integer"}}] if row.name.endswith("overrides") else []
        )
    if kind.json_type == "string" and kind.choices:
        schemas.append({"type": "string", "enum": list(kind.choices)})
    else:
        schemas.append({"type": "string"})
    about: Schema = {"description": row.documentation} if row.documentation else {}
    if isinstance(row.default, bool | int | float | str):
        about["default"] = row.default
    return {**about, **(schemas[0] if len(schemas) == 1 else {"anyOf": schemas})}


def _range(row: ConfigKey) -> Schema:
    bounds = {"minimum": row.kind.low, "maximum": row.kind.high}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _quota() -> Schema:
    names = {
        kind: {"type": "string", "description": "`<default>`: those without a quota of their own."}
        for kind in ENTITY_TYPES
    }
    rates = {key: _rate(LARGEST[key]) for key in (*CLIENT_KEYS, *IP_KEYS)}
    clients = [kind for kind in ENTITY_TYPES if kind != "ip"]
    either = [_needs(("ip",), IP_KEYS, (*clients, *CLIENT_KEYS)), _needs(clients, CLIENT_KEYS, ("ip", *IP_KEYS))]
    return {**_closed({**names, **rates}, description="Quotas of an entity."), "anyOf": either}


def _rate(largest: int | None) -> Schema:
    bounds: Schema = {"type": "number"} if largest is None else {"type": "integer", "maximum": largest}
    return {**bounds, "exclusiveMinimum": 0}


def _needs(one_of: Iterable[str], and_one_of: Iterable[str], without: Iterable[str]) -> Schema:
    entity, rates, others = (
        {"anyOf": [{"required": [name]} for name in each]} for each in (one_of, and_one_of, without)
    )
    return {"allOf": [entity, rates], "not": others}


# ---- the dataclasses of a scenario


def _of_dataclass(kind: type, without: Iterable[str] = (), optional: Iterable[str] = ()) -> Schema:
    docs = _attribute_docs(kind)
    properties: dict[str, Schema] = {}
    required = []
    for field in fields(kind):
        if field.name in (*NOT_KEYS, *without):
            continue
        about: Schema = {"description": docs[field.name]} if field.name in docs else {}
        if isinstance(field.default, bool | int | float | str):
            about["default"] = field.default
        if field.default is MISSING and field.name not in optional:
            required.append(field.name)
        properties[field.name] = {**_of_field(field.name, str(field.type)), **about}
    description = " ".join((kind.__doc__ or "").split())
    return {**_closed(properties, description=description), **({"required": required} if required else {})}


def _of_field(name: str, declared: str) -> Schema:
    """The schema of a key of this name and type, as scenario_file reads it."""
    if name == "hold_s":
        return {"anyOf": [{"type": "number"}, {"const": "end"}]}
    if name == "sources":
        return {"type": "string"}
    if name in CHOICES:
        return {"type": "string", "enum": list(CHOICES[name])}
    for word, json_type in (("bool", "boolean"), ("float", "number"), ("int", "integer")):
        if word in declared:
            return {"type": json_type}
    return {"type": "string"}


def _attribute_docs(kind: type) -> dict[str, str]:
    """The docstrings of a class's attributes."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for pair in pairwise(body.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found
