"""Recovery of a damaged store: its usable records, one by one, and what a damaged file still gives.

unreadable_records_are_left_out  A record that can't be read is left out and said; the others are used. It stays in the
    store until it is changed.
damaged_store_is_set_aside  A file that SQLite can't use is set aside, not deleted; what it still gives is in the new one.
recovered_ids_are_above_all_given  The new store's version and ids are above all that the damaged one can have given out:
    they follow the clock.
lost_store_keeps_partitions  A lost store loses no partition: its topics are taken from their files, so that no shard
    deletes these as unknown.
"""

import json
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from shards.config.acl_changes import check_acl_record
from shards.config.advertised_changes import check_advertised_record
from shards.config.config_state import Change, ConfigState
from shards.config.delegation_tokens import check_token_record
from shards.config.replicas import replicas_of
from shards.config.resource_changes import check_resource_record
from shards.config.setting_changes import check_brokers, contradiction
from shards.config.store import PRODUCER_ID, Store, StoreDamaged
from shards.config.stored_records import TopicRecord, UserRecord
from shards.config.topic_changes import canonical_configs, illegal_name
from shards.limits.observed_limits import check_observable
from shards.limits.quota_entities import REDPANDAS, entity_of, key_of_entity, quota_of
from shards.settings.addresses import normalise_ip
from shards.settings.broker_config import is_readable
from shards.settings.errors import ConfigInvalid
from shards.settings.features import FEATURES
from shards.settings.host_names import host_name

_IDS_PER_S = 1_000_000  # more than a cluster allocates


class UsableRecords(NamedTuple):
    """The records that can be used, and a sentence for each of the others."""

    records: list[Change]
    faults: list[str]


def usable_records(records: Iterable[Change]) -> UsableRecords:
    """The records that can be used, and a sentence for each of the others (unreadable_records_are_left_out)."""
    good: list[Change] = []
    faults: list[str] = []
    for kind, key, value in records:
        try:
            _CHECKS[kind](key, value)
            good.append((kind, key, value))
        except (ConfigInvalid, ValueError, TypeError, KeyError, AttributeError) as fault:
            faults.append(f"{kind} {key!r:.200} in the store can't be used and counts as not set: {fault!s:.300}")
    return UsableRecords(good, faults)


def _check_setting(key: str, text: object) -> None:
    _, _, name = key.partition("/")
    if not isinstance(text, str):
        raise ValueError("its value is not text")
    is_readable(name, text)


def _check_observed(key: str, text: object) -> None:
    _check_setting(key, text)
    check_observable(key.partition("/")[2])


def _check_quota(key: str, values: Mapping[str, object]) -> None:
    entity = entity_of(json.loads(key), REDPANDAS)
    if key_of_entity(entity) != key:
        raise ValueError("its entity is not spelled canonically")
    for name, value in values.items():
        if quota_of(entity, name, value) != value:
            raise ValueError(f"{name} is not a number")


def _check_user(name: str, credentials: UserRecord) -> None:
    if not name or not all(isinstance(each, dict) for each in credentials.values()):
        raise ValueError("its credentials are not objects")


def _check_topic(name: str, topic: TopicRecord) -> None:
    problem = illegal_name(name)
    if problem:
        raise ValueError(problem)
    uuid.UUID(hex=topic["id"])
    leaders = topic["leaders"]
    if not isinstance(leaders, list) or not leaders or not all(type(each) is int and each >= 0 for each in leaders):
        raise ValueError("its leaders are not broker ids")
    replicas = replicas_of(topic)
    if len(replicas) != len(leaders) or not all(leader in each for leader, each in zip(leaders, replicas, strict=True)):
        raise ValueError("its replicas are not those of its partitions")
    canonical_configs(topic["configs"])


def _check_feature(name: str, level: object) -> None:
    feature = FEATURES.get(name)
    if type(level) is not int or feature is None or not feature.least <= level <= feature.most:
        raise ValueError("it is no level of a feature")


def _check_host(name: str, addresses: object) -> None:
    if host_name(name) != name or not isinstance(addresses, list):
        raise ValueError("it is not the addresses of a host name")
    for ip in addresses:
        normalise_ip(ip)


_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "setting": _check_setting, "quota": _check_quota, "user": _check_user, "topic": _check_topic,
    "acl": check_acl_record, "client_metrics": partial(check_resource_record, "client_metrics"),
    "group_config": partial(check_resource_record, "group_config"), "feature": _check_feature,
    "token": check_token_record, "advertised": check_advertised_record,
    "observed": _check_observed, "observed_quota": _check_quota, "host": _check_host}  # fmt: skip


def drop_contradictions(state: ConfigState, lost: list[str]) -> None:
    """The rules between settings hold, if need be without a setting that depends on one that was lost; a sentence in `lost` says
    so. Raises ConfigInvalid if nothing was lost."""
    while True:
        try:
            return check_brokers(state.brokers, state.static, state.settings)
        except ConfigInvalid as fault:
            keys = [key for key in state.settings if key.partition("/")[2] == fault.name]
            if not keys or not lost:
                raise contradiction(fault, state.settings) from None
            lost.append(f"{fault.name} counts as not set: {fault}")
            for key in keys:
                del state.settings[key]


_PLURALS = {
    "client_metrics": "client metrics resources",
    "group_config": "groups' configs",
    "token": "delegation tokens",
    "advertised": "addresses for clients",
    "observed": "observed limits",
    "observed_quota": "observed quotas",
    "host": "addresses of hosts",
}


class OpenedStore(NamedTuple):
    """The store, and sentences about what was lost."""

    store: Store
    losses: list[str]


def open_store(
    path: Path,
    *,
    now_s: float,
    set_aside: Callable[[Path, str], str],
    topics_on_disk: Callable[[], dict[str, dict[str, object]]],
) -> OpenedStore:
    """The store, and what was lost if it was damaged or is missing where topics have files: sentences.

    `set_aside(path, why)` renames the file and returns its new path. `topics_on_disk()`: topics by name, as records have
    them, read from partitions' files. Raises CannotStart when it can't be used for another reason, such as its rights.
    """
    try:
        if path.exists() or not topics_on_disk():
            return OpenedStore(Store(path), [])
        aside, why = None, f"{path.name} is missing"
    except StoreDamaged as damage:
        aside, why = _set_aside(path, damage.why, set_aside), f"{path.name} is damaged ({damage.why})"
    salvaged = salvage(aside) if aside is not None else []
    records, faults = usable_records(salvaged)
    known = {key for kind, key, _ in records if kind == "topic"}
    found = {name: topic for name, topic in topics_on_disk().items() if name not in known}
    records += [("topic", name, topic) for name, topic in found.items()]
    store = Store(path)
    store.continue_at(int(now_s), {PRODUCER_ID: int(now_s) * _IDS_PER_S})
    store.commit(now_s, "recovery", [(kind, key, None, value) for kind, key, value in records])
    kept = f" and kept as {aside.name}" if aside is not None else ""
    sentence = (
        f"{why}{kept}: {_counted(records)} could be restored, {len(found)} of the topics from their files; settings, "
    )
    return OpenedStore(
        store,
        [
            sentence
            + "quotas, users, ACLs, delegation tokens and topics beyond these are lost, and so is the history of changes",
            *faults,
        ],
    )


def _counted(records: list[Change]) -> str:
    kinds = [kind for kind, _, _ in records]
    return ", ".join(f"{kinds.count(kind)} {_PLURALS.get(kind, f'{kind}s')}" for kind in _CHECKS)


def _set_aside(path: Path, why: str, set_aside: Callable[[Path, str], str]) -> Path:
    """Sets the file aside together with its write-ahead log, whose name follows from the file's."""
    aside = Path(set_aside(path, why))
    for suffix in ("-wal", "-shm"):
        beside = Path(f"{path}{suffix}")
        if beside.exists():
            beside.rename(f"{aside}{suffix}")
    return aside


def salvage(path: Path) -> list[Change]:
    """Every record that a damaged file still gives, from both ends of its tree. The file is not written to."""
    found: dict[tuple[str, str], Any] = {}
    for order in ("ASC", "DESC"):
        try:
            db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        except sqlite3.Error:
            break
        try:
            db.execute("PRAGMA writable_schema=ON")  # or a file shorter than its header says is not read at all
            for kind, key, text in db.execute(
                f"SELECT kind, key, value FROM record ORDER BY kind {order}, key {order}"
            ):
                found[kind, key] = json.loads(text)
        except (sqlite3.Error, ValueError, UnicodeDecodeError):
            continue
        finally:
            db.close()
    return [(kind, key, value) for (kind, key), value in sorted(found.items()) if kind in _CHECKS]
