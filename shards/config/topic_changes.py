"""Topics to create, extend or delete, one by one: the outcome of each, with Kafka 4.1's error names and messages. Pure.

Unlike settings, a batch of topics is not all or nothing: Kafka answers topic by topic, and so does this. A topic's
leaders are spread round-robin over the brokers, going on where the last topic left off.
Sources: ReplicationControlManager and Topic of Kafka 4.1.
"""

import re
import uuid
from collections.abc import Sequence
from typing import Any

from shards.config import internal_topics
from shards.config.changes import Change, ConfigState, bounded, storable
from shards.limits.broker_config import given
from shards.limits.config_def import parse, topic_setting
from shards.limits.errors import ConfigInvalid

Result = list[str]  # [error name or "", message]
MAX_PARTITIONS_PER_REQUEST = 10_000
MAX_NAME = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_OK: Result = ["", ""]
_FIXED: Result = [
    "INVALID_PARTITIONS",
    f"An internal topic has {internal_topics.PARTITIONS} partitions here, and coordinators as leaders.",
]
_UNKNOWN: Result = ["UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition."]


def create_topics(state: ConfigState, wanted: Sequence[Sequence[Any]]) -> tuple[list[Change], list[Result]]:
    """`wanted`: [name, partitions or -1, configs] and maybe a leader per partition. One result each, in order."""
    bounded(wanted)
    delta: list[Change] = []
    results: list[Result] = []
    collisions = {name.replace(".", "_"): name for name in state.topics}
    before = placed = _placed(state)
    for name, partitions, configs, *more in wanted:
        leaders = more[0] if more and more[0] else None
        if name in internal_topics.CONFIGS:
            if leaders or partitions not in (-1, internal_topics.PARTITIONS):
                results.append(_FIXED)
                continue
            leaders = internal_topics.leaders(state.brokers)
            configs = {**internal_topics.CONFIGS[name], **configs}
        count = len(leaders) if leaders else int(_default_partitions(state) if partitions == -1 else partitions)
        canonical, problem = _problem(collisions, name, count, placed - before + count, configs)
        if problem:
            results.append(problem)
            continue
        leaders = leaders or [(placed + n) % state.brokers for n in range(count)]
        placed += 0 if name in internal_topics.CONFIGS else count
        collisions[name.replace(".", "_")] = name
        delta.append(("topic", name, {"id": uuid.uuid4().hex, "leaders": leaders, "configs": canonical}))
        results.append(_OK)
    return storable(delta), results


def _problem(
    collisions: dict[str, str], name: str, count: int, asked: int, configs: dict[str, str | None]
) -> tuple[dict[str, str], Result | None]:
    """The topic's configs spelled canonically, and why it can't be created, if so."""
    illegal = illegal_name(name)
    if illegal:
        return {}, ["INVALID_TOPIC_EXCEPTION", illegal]
    other = collisions.get(name.replace(".", "_"))
    if other == name:
        return {}, ["TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists."]
    if other is not None:
        return {}, ["INVALID_TOPIC_EXCEPTION", f"Topic '{name}' collides with existing topic: {other}"]
    if count <= 0:
        return {}, ["INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value."]
    if asked > MAX_PARTITIONS_PER_REQUEST:
        return {}, ["POLICY_VIOLATION", "Excessively large number of partitions per request."]
    try:
        return canonical_configs(configs), None
    except ConfigInvalid as error:
        return {}, ["INVALID_CONFIG", str(error)]


def canonical_configs(configs: dict[str, str | None]) -> dict[str, str]:
    """Topic configs in their one spelling. Raises ConfigInvalid."""
    found: dict[str, str] = {}
    for name, text in configs.items():
        if text is None:
            raise ConfigInvalid(name, None, "must have a value")
        setting = topic_setting(name)
        found[name] = setting.kind.spell(parse(setting, name, text))
    return found


def illegal_name(name: str) -> str:
    """Why this is no name for a topic, "" when it is one. Source: org.apache.kafka.common.internals.Topic."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_NAME:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_NAME}"
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return ""


def create_partitions(state: ConfigState, wanted: Sequence[Sequence[Any]]) -> tuple[list[Change], list[Result]]:
    """`wanted`: [name, total partitions] and maybe a leader per added partition."""
    bounded(wanted)
    delta: list[Change] = []
    results: list[Result] = []
    placed = _placed(state)
    for name, total, *more in wanted:
        topic = state.topics.get(name)
        now = len(topic["leaders"]) if topic else 0
        if topic is None:
            results.append(_UNKNOWN)
        elif name in internal_topics.CONFIGS:
            results.append(_FIXED)
        elif total == now:
            results.append(["INVALID_PARTITIONS", f"Topic already has {now} partition(s)."])
        elif total < now:
            results.append(["INVALID_PARTITIONS", f"The topic {name} currently has {now} partition(s); "
                            f"{total} would not be an increase."])  # fmt: skip
        elif total - now > MAX_PARTITIONS_PER_REQUEST:
            results.append(["POLICY_VIOLATION", "Excessively large number of partitions per request."])
        else:
            added = more[0] if more and more[0] else [(placed + n) % state.brokers for n in range(total - now)]
            placed += len(added)
            delta.append(("topic", name, {**topic, "leaders": [*topic["leaders"], *added]}))
            results.append(_OK)
    return storable(delta), results


def delete_topics(state: ConfigState, names: Sequence[str]) -> tuple[list[Change], list[Result]]:
    """One result for each name."""
    bounded(names)
    if not given(0, state.static, state.settings).get("delete.topic.enable", True):
        return [], [["TOPIC_DELETION_DISABLED", "Topic deletion is disabled."] for _ in names]
    found = [name for name in dict.fromkeys(names) if name in state.topics]
    return [("topic", name, None) for name in found], [_OK if name in state.topics else _UNKNOWN for name in names]


def topic_configs_delta(state: ConfigState, changes: Sequence[Sequence[Any]]) -> list[Change]:
    """`changes`: [topic, config name, value or None]; all or nothing. Raises ConfigInvalid."""
    bounded(changes)
    wanted: dict[str, dict[str, str]] = {}
    for topic, name, text in changes:
        if topic not in state.topics:
            raise ConfigInvalid("topic", topic, "there is no such topic", error="UNKNOWN_TOPIC_OR_PARTITION")
        configs = wanted.setdefault(topic, dict(state.topics[topic]["configs"]))
        topic_setting(name)
        if text is None:
            configs.pop(name, None)
        else:
            configs.update(canonical_configs({name: text}))
    return storable([
        ("topic", topic, {**state.topics[topic], "configs": configs})
        for topic, configs in wanted.items()
        if configs != state.topics[topic]["configs"]
    ])  # fmt: skip


def _placed(state: ConfigState) -> int:
    """Partitions that were spread over the brokers; those of internal topics have leaders of their own."""
    topics = state.topics.items()
    return sum(len(topic["leaders"]) for name, topic in topics if name not in internal_topics.CONFIGS)


def _default_partitions(state: ConfigState) -> Any:
    return given(0, state.static, state.settings).get("num.partitions", 1)
