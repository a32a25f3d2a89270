"""Requested changes of quotas and of users -> the delta to store; rules and invariants as of config_state.py. Pure."""

from collections.abc import Mapping, Sequence

from shards.config.config_state import Change, ConfigState, bounded, storable
from shards.config.messages import QuotaChange, UserChange
from shards.config.stored_records import UserRecord
from shards.limits.quota_entities import (
    CALLBACK,
    REDPANDAS,
    SEMANTICS,
    Entity,
    check_semantics,
    entity_of,
    key_of_entity,
    quota_of,
)
from shards.settings.errors import ConfigInvalid


def quotas_delta(state: ConfigState, changes: Sequence[QuotaChange], *, observed: bool = False) -> list[Change]:
    """`changes`: [{type: name or None}, {key: value or None}]; `observed`: of quotas that are observed and not enforced.
    Raises ConfigInvalid with Kafka's messages."""
    semantics = state.text(SEMANTICS)
    if observed:
        by = f"{CALLBACK}={callback}" if (callback := state.value(CALLBACK)) else None
        by = f"{SEMANTICS}={REDPANDAS}" if semantics == REDPANDAS else by
        return _quotas_delta("observed_quota", state.observed_quotas, changes, semantics, by)
    return _quotas_delta("quota", state.quotas, changes, semantics)


def _quotas_delta(
    kind: str,
    records: Mapping[str, Mapping[str, float]],
    changes: Sequence[QuotaChange],
    semantics: str,
    unobserved_by: str | None = None,
) -> list[Change]:
    """Refuses to set what the semantics in force don't have; it can be removed. `unobserved_by`: the setting by which quotas of
    clients are not observed."""
    bounded(changes)
    wanted: dict[str, dict[str, float]] = {}
    for types_to_names, quotas in changes:
        entity: Entity = entity_of(types_to_names, REDPANDAS)
        key = key_of_entity(entity)
        values = wanted.setdefault(key, dict(records.get(key, {})))
        added = [name for name, value in quotas.items() if value is not None]
        if added:
            check_semantics(entity, added, semantics)
        if added and unobserved_by is not None and entity[0][0] != "ip":
            why = f"is not observed by {unobserved_by}: only Kafka's own quotas of clients can be rehearsed"
            raise ConfigInvalid(added[0], None, why, error="INVALID_REQUEST")
        for name, value in quotas.items():
            if value is None:
                values.pop(name, None)
                continue
            values[name] = quota_of(entity, name, value)
    return storable([(kind, key, values or None) for key, values in wanted.items() if values != records.get(key, {})])


def users_delta(state: ConfigState, changes: Sequence[UserChange]) -> list[Change]:
    """`changes`: [user, mechanism, credential as a dict, or None to remove it]. A credential is stored as it is; what is in
    it is checked by broker/serve/sasl.py. Raises ConfigInvalid."""
    bounded(changes)
    wanted: dict[str, UserRecord] = {}
    for name, mechanism, credential in changes:
        if not name or not isinstance(name, str):
            raise ConfigInvalid("user", name or "", "it must have a name", error="UNACCEPTABLE_CREDENTIAL")
        known = wanted.setdefault(name, dict(state.users.get(name, {})))
        if credential is not None:
            known[mechanism] = credential
        elif known.pop(mechanism, None) is None:
            raise ConfigInvalid("user", name, f"it has no {mechanism} credential", error="RESOURCE_NOT_FOUND")
    return storable(
        [("user", name, known or None) for name, known in wanted.items() if known != state.users.get(name, {})]
    )
