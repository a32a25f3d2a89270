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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from shards.config.internal_topics import INTERNAL_TOPICS
from shards.settings.config_types import HIDDEN
from turnstile.entities import entity_names
from turnstile.settings import Quota, as_quota, as_settings

if TYPE_CHECKING:
    from broker.admin.answers import EntityQuotas, Settings
    from broker.admin.cluster_answers import ClusterAnswer

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

T = TypeVar("T")


class ConfigFileInvalid(Exception):
    """The fault of the file: one sentence that names it."""


@dataclass
class ConfigFile:
    """The content of a file. `cluster`: options of `turnstile up` by their names. `ignored`: rows that mean nothing here."""

    cluster: dict[str, object] = field(default_factory=dict)
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
        if path.suffix == ".properties":
            return of_properties(_rows(text))
        import tomllib  # for such a file alone: it would take a hundredth of the start

        return _toml(tomllib.loads(text))
    except OSError as fault:
        raise ConfigFileInvalid(f"{path}: {fault.strerror}") from None
    except (ValueError, ConfigFileInvalid) as fault:
        raise ConfigFileInvalid(f"{path}: {fault}") from None


# ---- TOML


def _toml(document: Mapping[str, object]) -> ConfigFile:
    unknown = sorted(document.keys() - set(TABLES))
    if unknown:
        raise ConfigFileInvalid(f"[{unknown[0]}] is not a table of this file: {', '.join(TABLES)}")
    tables = {name: _table(document, name) for name in TABLES if name != "quota"}
    for name, value in tables["cluster"].items():
        if name not in CLUSTER:
            raise ConfigFileInvalid(f"[cluster] has no {name!r}: {', '.join(CLUSTER)}")
        _checked("cluster", name, value, CLUSTER[name])
    listeners = _all_checked("listeners", tables["listeners"], str)
    topics = _all_checked("topics", tables["topics"], int)
    users = _all_checked("users", tables["users"], str)
    quotas = document.get("quota", [])
    if not isinstance(quotas, list):
        raise ConfigFileInvalid("[quota] must be [[quota]]: there can be several")
    return ConfigFile(
        cluster=dict(tables["cluster"]),
        listeners=[f"{name}={where}" for name, where in listeners.items()],
        settings=list(as_settings(tables["limits"]).items()),
        observed=list(as_settings(tables["observe"]).items()),
        topics=[f"{name}:{count}" for name, count in topics.items()],
        users=users,
        quotas=[as_quota(entry) for entry in quotas],
    )


def _checked(table: str, name: str, value: object, kind: type[T]) -> T:
    if isinstance(value, kind) and not isinstance(value, bool):
        return value
    raise ConfigFileInvalid(f"[{table}] {name} must be {'a number' if kind is int else 'a text'}")


def _all_checked(table: str, rows: Mapping[str, object], kind: type[T]) -> dict[str, T]:
    return {name: _checked(table, name, value, kind) for name, value in rows.items()}


def _table(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    table = document.get(name, {})
    if not isinstance(table, Mapping):
        raise ConfigFileInvalid(f"{name} must be a table: [{name}]")
    return table


def write(
    about: ClusterAnswer,
    settings: Settings,
    quotas: Sequence[EntityQuotas],
    users: Sequence[str],
    overrides: Mapping[str, Settings],
    observed: Settings | None = None,
) -> str:
    """The TOML of a running cluster: what /v1/cluster, /v1/cluster_config, /v1/quotas and /v1/users tell of it.

    What the file has no place for is in comments: users, whose passwords are not known, settings that are passwords, and
    `overrides`, the settings that single brokers have of their own, by broker.
    """
    hidden = [name for name, value in settings.items() if value == HIDDEN]
    tables: dict[str, Mapping[str, object]] = {
        "cluster": {"brokers": about["brokers"], "shards": about["shards"]},
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
        pairs = {**entity_names(row["entity"]), **row["values"]}.items()
        lines += ["[[quota]]", *(f"{_toml_text(name)} = {_toml_text(value)}" for name, value in pairs), ""]
    return "\n".join(lines)


def _toml_text(value: object) -> str:
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
