"""Changes that the coordinator is asked to make: one row for each.

A row over the mesh is a list, so its readers take it apart by position.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from shards.config.stored_records import CredentialRecord

SettingChange: TypeAlias = tuple[str, str, str | None]
"""(broker id as text or "" for all brokers, name of the setting, value; None: it is no longer set)."""
QuotaChange: TypeAlias = tuple[Mapping[str, str | None], Mapping[str, float | None]]
"""({entity type: name, None for the default}, {quota key: value; None: it is removed})."""
UserChange: TypeAlias = tuple[str, str, CredentialRecord | None]
"""(user, mechanism, credential; None: it is removed)."""
FaultChange: TypeAlias = tuple[str, Mapping[str, object] | None]
"""(name, fault; None: it is removed)."""
AclFields: TypeAlias = Sequence[int | str]
"""Resource type, name, pattern type, principal, host, operation and permission, as Kafka's codes and texts."""
AclChange: TypeAlias = tuple[AclFields, bool]
"""(ACL, whether there is to be one)."""
ResourceConfigChange: TypeAlias = tuple[str, str, str | None]
"""(topic, group or client metrics resource, name of the config, value; None: it is no longer set)."""
FeatureUpdate: TypeAlias = tuple[str, int, int]
"""(name, level, kind of update)."""
Reassignment: TypeAlias = tuple[str, int, Sequence[int] | None]
"""(topic, partition, replicas; None: what is in progress is cancelled)."""


class TopicToCreate(NamedTuple):
    """`partitions` -1: as many as the default; `replicas` of each partition, the leader first, None: the coordinator chooses them,
    `factor` of each partition, -1: as many as the default."""

    name: str
    partitions: int
    configs: Mapping[str, str | None]
    replicas: Sequence[Sequence[int]] | None = None
    factor: int = -1


class TopicToExtend(NamedTuple):
    """`total` partitions; `replicas` of the added ones, the leader first, None: the coordinator chooses them."""

    name: str
    total: int
    replicas: Sequence[Sequence[int]] | None = None
