"""The configuration at each version: records by kind and key, put together from the journal's config events.

`State`: (kind, key) -> value, as records of the configuration have them. Kinds are STATIC (the command line), SETTING, QUOTA,
OBSERVED and OBSERVED_QUOTA (a setting, a quota that is observed instead of enforced), and HOST (the addresses of a host name in
overrides).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shards.limits.connection_limits import READ
from shards.limits.quota_entities import entity_of_key
from turnstile.entities import DEFAULT

STATIC, SETTING, QUOTA, OBSERVED, OBSERVED_QUOTA = "static", "setting", "quota", "observed", "observed_quota"
HOST = "host"
Place = tuple[str, str]
RecordValue = Any
"""A setting's text, or a quota's values by kind, as the JSON of an event has them."""
ConfigRecord = tuple[str, str, RecordValue]
"""Kind, key and value."""
State = Mapping[Place, RecordValue]


class ConfigEvent(NamedTuple):
    """One `config` event of the journal. `at_ns` is mono_ns; broker -1 is the coordinator."""

    version: int
    at_ns: int
    broker: int
    detail: str

    @property
    def is_acknowledged(self) -> bool:
        """True if it says that every shard has acknowledged the version."""
        return bool(json.loads(self.detail).get("acknowledged"))

    @property
    def is_full(self) -> bool:
        """True if it says everything, not only what changed."""
        return bool(json.loads(self.detail).get("full"))


def states_of(ordered: Sequence[ConfigEvent], unknown: list[str]) -> dict[int, dict[Place, RecordValue]]:
    """Version -> every limit record at it, from whole states and deltas."""
    whole: dict[int, dict[Place, RecordValue]] = {}
    deltas: dict[int, list[ConfigRecord]] = {}
    for event in ordered:
        detail = json.loads(event.detail or "{}")
        if "changes" not in detail:
            continue
        if detail.get("full"):
            whole[event.version] = {(kind, key): value for kind, key, value in detail["changes"]}
        else:
            deltas.setdefault(event.version, detail["changes"])
    states: dict[int, dict[Place, RecordValue]] = {}
    before: dict[Place, RecordValue] = {}
    for version in sorted({*whole, *deltas}):
        if version in whole:
            before = whole[version]
        elif version - 1 not in states:
            unknown.append(f"what was set before version {version} is not in the journal")
            continue  # such a version may allow anything: timeline.py
        else:
            before = dict(before)
            for kind, key, value in deltas[version]:
                if value is None:
                    before.pop((kind, key), None)
                else:
                    before[kind, key] = value
        states[version] = before
    return states


def in_force(state: State, place: Place) -> RecordValue:
    """A value of a state, or what the command line says where nothing was set."""
    kind, key = place
    return state.get(place, state.get((STATIC, key)) if kind == SETTING else None)


def brokers_with_settings(states: Mapping[int, State]) -> set[int]:
    """Brokers with settings of their own."""
    prefixes = {
        key.partition("/")[0] for state in states.values() for kind, key in state if kind in (STATIC, SETTING, OBSERVED)
    }
    return {int(prefix) for prefix in prefixes if prefix.isdigit()}


def is_limit(kind: str, key: str) -> bool:
    """True if a record is a limit of connections, of all brokers, of one, or of a listener (`listener.name.x.max.connections`)."""
    if kind in (QUOTA, OBSERVED_QUOTA):
        return entity_of_key(key)[0][0] == "ip"
    name = key.partition("/")[2]
    return name in READ or (name.startswith("listener.name.") and any(name.endswith(f".{each}") for each in READ))


def limit_place(place: Place) -> Place:
    """A setting's place stands for the command line's, too (`in_force`)."""
    kind, key = place
    return (SETTING if kind == STATIC else kind, key)


def named_place(kind: str, key: str) -> str:
    """A setting's name, or a quota's entity as `turnstile quota` takes it: `ip=<default>`."""
    if kind not in (QUOTA, OBSERVED_QUOTA):
        return f"{'observed ' * (kind == OBSERVED)}{key.removeprefix('/')}"
    return "observed " * (kind == OBSERVED_QUOTA) + ", ".join(
        f"{type_}={DEFAULT if name is None else name}" for type_, name in entity_of_key(key)
    )


def shown_value(value: RecordValue) -> str:
    """A setting's text, or a quota's numbers; `none` where nothing is set."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={number:g}" for name, number in sorted(value.items()))
    return "none" if value is None else str(value)
