"""`turnstile up --config FILE`: a TOML file, or as much of a Kafka server.properties as this broker has.

    [cluster]                                 # name, brokers, shards, port, host, admin_port, admin_host, data_dir, journal
    shards = 2
    [listeners]                               # as `--listener` takes them
    EXTERNAL = "127.0.0.1:9092"
    SASL = "127.0.0.1:9093,sasl"
    [limits]                                  # settings by name
    kafka_connections_max_per_ip = 50
    "max.connections" = 1000
    [observe]                                 # limits of connections, observed instead of enforced
    kafka_connections_max_per_ip = 20
    [topics]
    orders = 6
    [users]
    alice = "her password"
    [[quota]]
    user = "alice"
    client-id = "<default>"
    producer_byte_rate = 1048576

What the command line says goes before what the file says. `turnstile config export` writes such a file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shards.config.internal_topics import INTERNAL_TOPICS
from shards.settings.config_types import HIDDEN
from turnstile.settings import DEFAULT, Quota, as_quota, as_settings

CLUSTER: Mapping[str, type] = {
    "brokers": int,
    "shards": int,
    "port": int,
    "host": str,
    "admin_port": int,
    "admin_host": str,
    "data_dir": str,
    "journal": str,
    "name": str,
}
"""Options of `turnstile up` that [cluster] has, and their types."""
BY_NAME: Mapping[str, type] = {"listeners": str, "topics": int, "users": str}
"""Tables whose keys are anybody's names, and the type of their values."""
TABLES = ("cluster", "listeners", "limits", "observe", "topics", "users", "quota")
ANY_HOST = "*"
"""The host of a listener that a server.properties gives none: that of `--host`."""
_QUIET = {
    "broker.id", "node.id", "process.roles", "controller.listener.names", "advertised.listeners", "log.dir", "log.dirs",
}  # fmt: skip
_QUIET_PREFIXES = ("controller.quorum.", "zookeeper.")
"""Rows of nearly every server.properties that say nothing of clients: left out without a word."""


class ConfigFileInvalid(Exception):
    """What is wrong with the file: one sentence that names it."""


@dataclass
class ConfigFile:
    """What a file asks for. `cluster`: options of `turnstile up` by their names. `ignored`: rows that mean nothing here."""

    cluster: dict[str, Any] = field(default_factory=dict)
    listeners: list[str] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)
    observed: list[tuple[str, str]] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    users: dict[str, str] = field(default_factory=dict)
    quotas: list[Quota] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def read(path: Path) -> ConfigFile:
    """A .properties file as Kafka's, any other as TOML. Raises ConfigFileInvalid."""
    try:
        text = path.read_text("utf-8")
        return of_properties(_rows(text)) if path.suffix == ".properties" else _toml(tomllib.loads(text))
    except OSError as fault:
        raise ConfigFileInvalid(f"{path}: {fault.strerror}") from None
    except (ValueError, ConfigFileInvalid) as fault:
        raise ConfigFileInvalid(f"{path}: {fault}") from None


# ---- TOML


def _toml(document: Mapping[str, Any]) -> ConfigFile:
    unknown = sorted(document.keys() - set(TABLES))
    if unknown:
        raise ConfigFileInvalid(f"[{unknown[0]}] is no table of this file: {', '.join(TABLES)}")
    tables = {name: _table(document, name) for name in TABLES if name != "quota"}
    for name, value in tables["cluster"].items():
        if name not in CLUSTER:
            raise ConfigFileInvalid(f"[cluster] has no {name!r}: {', '.join(CLUSTER)}")
        _check_kind("cluster", name, value, CLUSTER[name])
    for table, kind in BY_NAME.items():
        for name, value in tables[table].items():
            _check_kind(table, name, value, kind)
    quotas = document.get("quota", [])
    if not isinstance(quotas, list):
        raise ConfigFileInvalid("[quota] must be [[quota]]: there can be several")
    return ConfigFile(
        cluster=dict(tables["cluster"]),
        listeners=[f"{name}={where}" for name, where in tables["listeners"].items()],
        settings=list(as_settings(tables["limits"]).items()),
        observed=list(as_settings(tables["observe"]).items()),
        topics=[f"{name}:{count}" for name, count in tables["topics"].items()],
        users=dict(tables["users"]),
        quotas=[as_quota(entry) for entry in quotas],
    )


def _check_kind(table: str, name: str, value: object, kind: type) -> None:
    if type(value) is not kind:
        raise ConfigFileInvalid(f"[{table}] {name} must be {'a number' if kind is int else 'a text'}")


def _table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, Mapping):
        raise ConfigFileInvalid(f"{name} must be a table: [{name}]")
    return table


def write(
    about: Mapping[str, Any],
    settings: Mapping[str, Any],
    quotas: Sequence[Mapping[str, Any]],
    users: Sequence[str],
    overrides: Mapping[str, Mapping[str, Any]],
    observed: Mapping[str, Any] | None = None,
) -> str:
    """The TOML of a running cluster: what /v1/cluster, /v1/cluster_config, /v1/quotas and /v1/users tell of it.

    What the file has no place for is in comments: users, whose passwords are not known, settings that are passwords, and
    `overrides`, the settings that single brokers have of their own, by broker.
    """
    hidden = [name for name, value in settings.items() if value == HIDDEN]
    tables = {
        "cluster": {name: about[name] for name in ("brokers", "shards")},
        "listeners": {
            each["name"]: ",".join([each["address"], *each["options"]])
            for each in about["listeners"]
            if not each["broker"]
        },
        "limits": {name: value for name, value in settings.items() if value is not None and name not in hidden},
        **({"observe": observed} if observed else {}),
        "topics": {name: count for name, count in about["topics"].items() if name not in INTERNAL_TOPICS},
    }
    lines = []
    for table, rows in tables.items():
        lines += [f"[{table}]", *(f"{_toml_text(name)} = {_toml_text(value)}" for name, value in rows.items()), ""]
    for broker, own in overrides.items():
        lines += [
            f"# broker {broker} has {_toml_text(name)} = {_toml_text(value)} of its own" for name, value in own.items()
        ]
        lines += [""]
    if hidden:
        lines += [f"# [limits] has no password to write: {', '.join(map(_toml_text, hidden))}", ""]
    if users:
        lines += [f"# [users] has no password to write: {', '.join(map(_toml_text, users))}", ""]
    for row in quotas:
        names = {kind: DEFAULT if name is None else name for kind, name in row["entity"].items()}
        rows = {**names, **row["values"]}
        lines += ["[[quota]]", *(f"{_toml_text(name)} = {_toml_text(value)}" for name, value in rows.items()), ""]
    return "\n".join(lines)


def _toml_text(value: Any) -> str:
    """A value, which TOML writes as JSON does, but for tables and the escapes of what is not ASCII."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_toml_text(name)} = {_toml_text(each)}' for name, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_text, value))}]"
    text = json.dumps(value, ensure_ascii=False)
    return "".join(each if " " <= each <= "~" else f"\\U{ord(each):08x}" for each in text)


# ---- server.properties


def of_properties(rows: dict[str, str]) -> ConfigFile:
    """Rows of a server.properties. Raises ConfigFileInvalid."""
    from shards.settings.config_def import broker_setting, canonical_name
    from shards.settings.errors import ConfigInvalid

    found = ConfigFile()
    rows = dict(rows)
    words = rows.pop("listener.security.protocol.map", "").split(",")
    protocols = {name.strip(): protocol.strip() for name, _, protocol in (word.partition(":") for word in words)}
    for name, value in rows.items():
        if name == "listeners":
            found.listeners = [each for each in (_listener(word, protocols) for word in value.split(",")) if each]
        elif name in _QUIET or name.startswith(_QUIET_PREFIXES):
            continue
        else:
            try:
                broker_setting(canonical_name(name))
            except ConfigInvalid:
                found.ignored.append(name)
            else:
                found.settings.append((name, value))
    return found


def _rows(text: str) -> dict[str, str]:
    """Java's properties, without its escapes of characters."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = (line.strip() for line in joined.splitlines())
    rows = (re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
    return {row[0]: row[1] if len(row) > 1 else "" for row in rows}


def _listener(word: str, protocols: Mapping[str, str]) -> str:
    """`SASL_PLAINTEXT://host:9093` as --listener has it; "" for the controller's."""
    match = re.fullmatch(r"\s*([A-Za-z0-9_-]+)://(.*):(\d+)\s*", word)
    if match is None:
        raise ConfigFileInvalid(f"listeners: {word.strip()!r} is not NAME://host:port")
    name, host, port = match.groups()
    if name == "CONTROLLER":
        return ""
    protocol = protocols.get(name, name)
    if "SSL" in protocol.split("_"):
        raise ConfigFileInvalid(
            f"listeners: {name} is {protocol}; name its certificate: --listener NAME=..,tls,cert=..,key=.."
        )
    return f"{name}={host or ANY_HOST}:{port}{',sasl' if protocol.startswith('SASL') else ''}"
