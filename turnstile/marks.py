"""The marks of the pytest plugin, checked without a cluster: a wrong name or value is one sentence, and no traceback."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from shards.config.config_state import ConfigState
from shards.config.quota_changes import quotas_delta
from shards.limits.quota_entities import CLIENT_KEYS, IP_KEYS, PREFIX, REDPANDAS, SEMANTICS
from shards.settings.config_def import BROKER, broker_setting, canonical_name, parse
from shards.settings.errors import ConfigInvalid
from shards.settings.near_misses import near_misses
from turnstile.settings import SHORT, as_entity, as_setting, as_text


def wrong(mark: pytest.Mark) -> str | None:
    """The reason why no cluster can take this mark; None: some can."""
    try:
        (_check_limits if mark.name == "limits" else _check_quota)(*mark.args, **mark.kwargs)
    except (ConfigInvalid, ValueError) as fault:
        return str(fault)
    except TypeError:
        takes = "settings by name" if mark.name == "limits" else "an entity such as user=alice, and rates by name"
        return f"it takes {takes}."
    return None


def spelled(mark: pytest.Mark) -> str:
    """`@pytest.mark.limits(per_ip=5)`."""
    given = [*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())]
    return f"@pytest.mark.{mark.name}({', '.join(given)})"


def _check_limits(settings: Mapping[str, object] | None = None, /, **named: object) -> None:
    for given, value in {**(settings or {}), **named}.items():
        name = canonical_name(as_setting(given))
        try:
            setting = broker_setting(name)
        except ConfigInvalid as fault:
            near = near_misses(given, [*SHORT, *BROKER, *(row.replace(".", "_") for row in BROKER)])
            raise ConfigInvalid(given, None, f"is not a setting; did you mean {near[0]}?") from None if near else fault
        if not setting.dynamic:
            rule = (
                "can't change while the cluster runs; give it to the cluster: limits in the fixture turnstile_options"
            )
            raise ConfigInvalid(given, None, rule)
        if value is not None:
            parse(setting, given, as_text(value))


def _check_quota(entity: str | Mapping[str, str | None], /, **rates: float | None) -> None:
    names = as_entity(entity)
    keys = IP_KEYS if "ip" in names else CLIENT_KEYS
    for name in rates:
        if name not in keys:
            near = near_misses(name, keys)
            rule = (
                f"did you mean {near[0]}?"
                if near
                else f"{'an ip has' if 'ip' in names else 'there are'} {', '.join(keys)}."
            )
            raise ConfigInvalid(name, None, f"is not a quota of {' and '.join(names)}; {rule}")
    semantics = {f"/{SEMANTICS}": REDPANDAS} if PREFIX in names else {}
    quotas_delta(ConfigState(1, semantics), [(names, dict(rates))])
