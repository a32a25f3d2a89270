"""Requested configs of client metrics resources and of groups -> the delta to store. Pure.

A resource exists while it has a config. A record is its configs, in canonical spelling: {config name: text}.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shards.config.config_state import Change, ConfigState, bounded, storable
from shards.config.messages import ResourceConfigChange
from shards.settings.broker_config import EVERY_BROKER, given
from shards.settings.config_def import BROKER, parse
from shards.settings.errors import ConfigInvalid
from shards.settings.resource_settings import CLIENT_METRICS, GROUP, check_client_metrics, check_group

CLIENT_METRICS_KIND, GROUP_KIND = "client_metrics", "group_config"
ROWS = {CLIENT_METRICS_KIND: CLIENT_METRICS, GROUP_KIND: GROUP}
MOST = {CLIENT_METRICS_KIND: "turnstile.client.metrics.subscriptions.max", GROUP_KIND: "turnstile.group.configs.max"}


def check_resource(kind: str, name: str, configs: Mapping[str, str], broker: Callable[[str], object]) -> None:
    """Raises ConfigInvalid when the resource can't have exactly these configs. `broker(setting)`: its value in force."""
    if kind == GROUP_KIND:
        check_group(name, configs, broker)
    else:
        check_client_metrics(name, configs)


def check_resource_record(kind: str, name: str, configs: Any) -> None:
    """Raises ConfigInvalid, ValueError or the like for a record that can't be read. The broker's bounds, which may have changed
    since, are not checked."""
    if not name or not configs:
        raise ValueError("it has no name, or no configs")
    if kind == CLIENT_METRICS_KIND:
        check_client_metrics(name, configs)
    for key, text in configs.items():
        parse(ROWS[kind][key], key, text)


def resource_configs_delta(state: ConfigState, kind: str, changes: Sequence[ResourceConfigChange]) -> list[Change]:
    """`changes`: [resource, config name, value or None]; all or nothing. Raises ConfigInvalid."""
    bounded(changes)
    values: dict[str, Any] = given(EVERY_BROKER, state.static, state.settings)
    before = state.resources(kind)
    wanted: dict[str, dict[str, str]] = {}
    for resource, name, text in changes:
        configs = wanted.setdefault(resource, dict(before.get(resource, {})))
        if text is None:
            configs.pop(name, None)
        else:
            configs[name] = text
    for resource, configs in wanted.items():
        check_resource(kind, resource, configs, lambda name: values.get(name, BROKER[name].default))
        wanted[resource] = {name: _canonical(kind, name, text) for name, text in configs.items()}
    there = sum(map(bool, {**before, **wanted}.values()))
    most: Any = values.get(MOST[kind], BROKER[MOST[kind]].default)
    if there > max(most, len(before)):
        raise ConfigInvalid("resources", there, f"there may be at most {most} ({MOST[kind]})", error="POLICY_VIOLATION")
    return storable(
        [
            (kind, resource, configs or None)
            for resource, configs in wanted.items()
            if configs != before.get(resource, {})
        ]
    )


def _canonical(kind: str, name: str, text: str) -> str:
    row = ROWS[kind][name]
    return row.kind.spell(parse(row, name, text))
