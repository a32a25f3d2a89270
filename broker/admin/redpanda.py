"""The bodies of Redpanda's admin API for settings, as rpk reads and writes them. Pure: state in, JSON-able values out.

`cluster_config` holds one value per setting, typed as JSON has it; a list setting is a list of strings. Kafka's settings
are among them, so one endpoint serves rpk, the CLI and the live page. Checked against rpk's cluster config commands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from broker.admin.answers import BrokerConfigStatus, SettingProperty, SettingsSchema
from shards.config.config_state import ConfigState
from shards.config.messages import SettingChange
from shards.settings.broker_config import EVERY_BROKER, given
from shards.settings.config_def import BROKER, broker_setting, canonical_name
from shards.settings.config_key import ConfigKey
from shards.settings.config_types import COST, THROUGHPUT_GROUPS, Value, text_of
from shards.settings.errors import ConfigInvalid
from shards.settings.override_entries import OverrideEntries


def cluster_config(state: ConfigState, *, broker: int = EVERY_BROKER, include_defaults: bool = True) -> dict[str, Any]:
    """Every setting and its value, or only those that are set."""
    found = given(broker, state.static, state.settings)
    names = {**BROKER, **found} if include_defaults else found
    return {name: as_json(broker_setting(name), found.get(name, broker_setting(name).default)) for name in names}


def as_json(setting: ConfigKey, value: Value) -> Any:
    """One value as JSON has it."""
    if setting.kind is COST:
        return setting.kind.spell(value)
    if setting.kind is THROUGHPUT_GROUPS:
        return json.loads(setting.kind.spell(value))
    if isinstance(value, OverrideEntries):
        return value.listed()
    return list(value) if isinstance(value, tuple) else value


def schema() -> SettingsSchema:
    """Each setting as Redpanda's `/v1/cluster_config/schema` describes it."""
    return {"properties": {name: _property(setting) for name, setting in BROKER.items()}}


def _property(setting: ConfigKey) -> SettingProperty:
    found: SettingProperty = {
        "type": setting.kind.json_type,
        "description": setting.documentation,
        "emulated": setting.emulated,
        "nullable": setting.nullable,
        "needs_restart": not setting.dynamic,
        "visibility": "user" if setting.dynamic else "tunable",
        "is_secret": setting.is_password,
        "vocabulary": setting.vocabulary,
        "default": as_json(setting, setting.default),
    }
    if setting.kind.items:
        found["items"] = {"type": setting.kind.items}
    if setting.kind.json_type == "array" and not setting.kind.items:
        found["items"] = {"type": "string"}
    if setting.kind.choices and setting.kind.json_type == "string":
        found["enum_values"] = list(setting.kind.choices)
    if setting.kind.low is not None:
        found["minimum"] = setting.kind.low
    if setting.kind.high is not None:
        found["maximum"] = setting.kind.high
    return found


def changes_of(body: Any, broker: str) -> list[SettingChange]:
    """`{"upsert": {name: value}, "remove": [name]}` as changes for the coordinator. Raises ConfigInvalid."""
    shaped = isinstance(body, Mapping) and not set(body) - {"upsert", "remove"}
    upsert, remove = (body.get("upsert", {}), body.get("remove", [])) if shaped else (None, None)
    if not isinstance(upsert, Mapping) or not isinstance(remove, list):
        raise ConfigInvalid("the body", None, 'must be {"upsert": {name: value}, "remove": [name]}')
    names = [str(name) for name in remove]
    for name in names:
        broker_setting(canonical_name(name))
    return [
        *((broker, name, None) for name in names),
        *((broker, str(name), as_text(name, value)) for name, value in upsert.items()),
    ]


def as_text(name: str, value: object) -> str | None:
    """A JSON value as the text a setting is given in. None: the setting is unset, by null, or by the text "null" where the setting
    may be null."""
    if value is None or (value == "null" and broker_setting(canonical_name(name)).nullable):
        return None
    return text_of(value)


def status(state: ConfigState, versions: Mapping[int, int]) -> list[BrokerConfigStatus]:
    """`/v1/cluster_config/status`: the version that every shard of a broker acknowledged."""
    return [
        {
            "node_id": broker,
            "restart": False,
            "config_version": versions.get(broker, 0),
            "invalid": [],
            "unknown": [],
        }
        for broker in range(state.brokers)
    ]
