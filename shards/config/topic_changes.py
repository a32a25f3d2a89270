"""Topics to create, extend or delete, one by one: the outcome of each, with Kafka 4.1's error names and messages. Pure.

Unlike settings, a batch of topics is not all or nothing: Kafka answers topic by topic, and so does this. A topic's
leaders are spread round-robin over the brokers, going on where the last topic left off. Replicas: replicas.py.
Sources: ReplicationControlManager and Topic of Kafka 4.1.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shards import ownership
from shards.config import internal_topics
from shards.config.config_state import Change, ConfigState, RequestedChanges, bounded, storable
from shards.config.messages import ResourceConfigChange, TopicToCreate, TopicToExtend
from shards.config.replicas import (
    Result,
    assignments_problem,
    factor_problem,
    number_problem,
    replaced,
    replicas_of,
    spread,
    topic_record,
)
from shards.config.topic_room import TopicRoom
from shards.settings.broker_config import given
from shards.settings.config_def import parse, topic_setting
from shards.settings.errors import ConfigInvalid
from shards.uuids import random_uuid

MAX_PARTITIONS_PER_REQUEST = 10_000
MAX_NAME = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_OK: Result = ["", ""]
_FIXED: Result = [
    "INVALID_PARTITIONS",
    f"An internal topic has {ownership.PARTITIONS} partitions here, and coordinators as leaders.",
]
_UNKNOWN: Result = ["UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition."]


class MissedTopic(NamedTuple):
    """A topic that the cluster was to be started with, and that is missing or has another number of partitions."""

    name: str
    asked: int
    why: str


def missed_topics(
    state: ConfigState, wanted: Sequence[TopicToCreate], results: Sequence[Sequence[str]]
) -> list[MissedTopic]:
    """The topics that are not there as `wanted`. `results`: the answers of create_topics to these."""
    missed: list[MissedTopic] = []
    for (name, asked, *_), (error, message) in zip(wanted, results, strict=True):
        topic = state.topics.get(name)
        if topic is None:
            missed.append(MissedTopic(name, asked, message))
        elif error and len(topic["leaders"]) != asked:
            missed.append(MissedTopic(name, asked, f"it exists, with {len(topic['leaders'])} partitions"))
    return missed


def create_topics(state: ConfigState, wanted: Sequence[TopicToCreate], shards: int = 1) -> RequestedChanges:
    """The records that create `wanted`, and one result for each, in order. `shards`: how many each broker has."""
    bounded(wanted)
    delta: list[Change] = []
    results: list[Result] = []
    collisions = {name.replace(".", "_"): name for name in state.topics}
    before = spread_so_far = _spread(state)
    room = TopicRoom(state, shards)
    for name, partitions, configs, replicas, factor in (TopicToCreate(*row) for row in wanted):
        if name in internal_topics.CONFIGS:
            if replicas or partitions not in (-1, ownership.PARTITIONS):
                results.append(_FIXED)
                continue
            replicas = [[leader] for leader in ownership.bucket_leaders(state.brokers)]
            configs = {**internal_topics.CONFIGS[name], **configs}
        count = len(replicas) if replicas else _default(state, "num.partitions", partitions)
        canonical, problem = _problem(collisions, name, count, spread_so_far - before + count, configs)
        factor = _default(state, "default.replication.factor", factor)
        problem = problem or _replicas_problem(state, replicas, factor)
        replica_count = sum(map(len, replicas)) if replicas else count * factor
        problem = problem or room.problem(name, 1, replica_count)
        if problem:
            results.append(problem)
            continue
        leaders = [each[0] for each in replicas] if replicas else _next(state, spread_so_far, count)
        replicas = replicas or spread(leaders, factor, state.brokers)
        spread_so_far += 0 if name in internal_topics.CONFIGS else count
        room.take(name, 1, replica_count)
        collisions[name.replace(".", "_")] = name
        delta.append(("topic", name, topic_record(random_uuid().hex, leaders, replicas, canonical)))
        results.append(_OK)
    return RequestedChanges(storable(delta), results)


class _CheckedTopic(NamedTuple):
    """A topic's configs spelled canonically, and why it can't be created, if so."""

    configs: dict[str, str]
    problem: Result | None


def _problem(
    collisions: dict[str, str], name: str, count: int, asked: int, configs: Mapping[str, str | None]
) -> _CheckedTopic:
    """The topic's configs spelled canonically, and why it can't be created, if so."""
    illegal = illegal_name(name)
    if illegal:
        return _CheckedTopic({}, ["INVALID_TOPIC_EXCEPTION", illegal])
    other = collisions.get(name.replace(".", "_"))
    if other == name:
        return _CheckedTopic({}, ["TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists."])
    if other is not None:
        return _CheckedTopic({}, ["INVALID_TOPIC_EXCEPTION", f"Topic '{name}' collides with existing topic: {other}"])
    if count <= 0:
        return _CheckedTopic(
            {}, ["INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value."]
        )
    if asked > MAX_PARTITIONS_PER_REQUEST:
        return _CheckedTopic({}, ["POLICY_VIOLATION", "Excessively large number of partitions per request."])
    try:
        canonical = canonical_configs(configs)
        _check_lags(canonical)
        return _CheckedTopic(canonical, None)
    except ConfigInvalid as error:
        return _CheckedTopic({}, ["INVALID_CONFIG", str(error)])


def _replicas_problem(state: ConfigState, replicas: Sequence[Sequence[int]] | None, factor: int) -> Result | None:
    if not replicas:
        return factor_problem(factor, state.brokers)
    return assignments_problem(replicas, state.brokers, len(replicas[0]))


def canonical_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Topic configs in their one spelling. Raises ConfigInvalid."""
    found: dict[str, str] = {}
    for name, text in configs.items():
        if text is None:
            raise ConfigInvalid(name, None, "must have a value")
        setting = topic_setting(name)
        found[name] = setting.kind.spell(parse(setting, name, text))
    return found


def _check_lags(configs: dict[str, str]) -> None:
    """Checks all configs that a topic has, canonical, as LogConfig.validateValues does. Raises ConfigInvalid."""
    least, most = configs.get("min.compaction.lag.ms"), configs.get("max.compaction.lag.ms")
    if least is not None and most is not None and int(least) > int(most):
        raise ConfigInvalid.saying(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )


def illegal_name(name: str) -> str:
    """The reason why no topic can have this name; "" if one can. Source: org.apache.kafka.common.internals.Topic."""
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


def create_partitions(state: ConfigState, wanted: Sequence[TopicToExtend], shards: int = 1) -> RequestedChanges:
    """The records that extend `wanted`, and one result for each. An added partition has as many replicas as partition 0. `shards`:
    how many each broker has."""
    bounded(wanted)
    delta: list[Change] = []
    results: list[Result] = []
    spread_so_far = _spread(state)
    room = TopicRoom(state, shards)
    for name, total, assigned in (TopicToExtend(*row) for row in wanted):
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
        elif problem := (
            _assigned_problem(state, (old := replicas_of(topic))[0], total - now, assigned)
            or room.problem(name, 0, (total - now) * len(old[0]))
        ):
            results.append(problem)
        else:
            room.take(name, 0, (total - now) * len(old[0]))
            leaders = [each[0] for each in assigned or ()] or _next(state, spread_so_far, total - now)
            added = assigned or spread(leaders, len(old[0]), state.brokers)
            spread_so_far += len(added)
            delta.append(("topic", name, replaced(topic, [*topic["leaders"], *leaders], [*old, *added])))
            results.append(_OK)
    return RequestedChanges(storable(delta), results)


def _assigned_problem(
    state: ConfigState, first: Sequence[int], added: int, assigned: Sequence[Sequence[int]] | None
) -> Result | None:
    """The reason why `assigned` can't be the replicas of `added` more partitions; None: it can. Each needs as many as `first`, the
    replicas of partition 0."""
    if not assigned:
        return None
    return number_problem(len(assigned), added) or assignments_problem(assigned, state.brokers, len(first))


def delete_topics(state: ConfigState, names: Sequence[str]) -> RequestedChanges:
    """One result for each name."""
    bounded(names)
    if not given(0, state.static, state.settings).get("delete.topic.enable", True):
        return RequestedChanges([], [["TOPIC_DELETION_DISABLED", "Topic deletion is disabled."] for _ in names])
    found = [name for name in dict.fromkeys(names) if name in state.topics]
    return RequestedChanges(
        [("topic", name, None) for name in found], [_OK if name in state.topics else _UNKNOWN for name in names]
    )


def topic_configs_delta(state: ConfigState, changes: Sequence[ResourceConfigChange]) -> list[Change]:
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
    for configs in wanted.values():
        _check_lags(configs)
    return storable([
        ("topic", topic, {**state.topics[topic], "configs": configs})
        for topic, configs in wanted.items()
        if configs != state.topics[topic]["configs"]
    ])  # fmt: skip


def _next(state: ConfigState, spread_so_far: int, count: int) -> list[int]:
    """The leaders of `count` more partitions."""
    return [(spread_so_far + n) % state.brokers for n in range(count)]


def _spread(state: ConfigState) -> int:
    """Partitions that were spread over the brokers; those of internal topics have leaders of their own."""
    topics = state.topics.items()
    return sum(len(topic["leaders"]) for name, topic in topics if name not in internal_topics.CONFIGS)


def _default(state: ConfigState, name: str, asked: int) -> int:
    """The number that was asked for; for -1 that of the setting."""
    return given(0, state.static, state.settings).get(name, 1) if asked == -1 else asked  # type: ignore[return-value]
