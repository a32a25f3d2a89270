"""The limits that a scenario suggests: what its file says, the commands that set them, a cluster under them.

suggested_limits_enforced  Within `in_force` every shard enforces the suggested limits.
limits_restored_after  After `in_force` the cluster has the settings and quotas that it had before, whatever happened
    within.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from turnstile.admin_client import AdminClient
from turnstile.entities import entity_words
from turnstile.settings import Quota, as_text

Entity = tuple[tuple[str, str | None], ...]
"""Names by type, in the order of the types."""
QuotasByEntity = Mapping[Entity, Mapping[str, float]]


@dataclass(frozen=True)
class Suggestion:
    """Settings by name, and quotas."""

    settings: Mapping[str, str] = field(default_factory=dict)
    quotas: tuple[Quota, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.settings or self.quotas)

    def commands(self) -> list[str]:
        """The commands that set them."""
        found = [["config", "set", name, value] for name, value in self.settings.items()]
        for entity, rates in self.quotas:
            found.append(
                ["quota", "set", *entity_words(entity), *(f"{rate}={value:.15g}" for rate, value in rates.items())]
            )
        return [shlex.join(["turnstile", *words]) for words in found]

    def as_json(self) -> dict[str, object]:
        """The limits as PUT /v1/cluster_config and PUT /v1/quotas take them."""
        return {
            "settings": dict(self.settings),
            "quotas": [{"entity": entity, "set": rates} for entity, rates in self.quotas],
        }


NONE = Suggestion()


@contextmanager
def in_force(suggestion: Suggestion, admin: AdminClient) -> Iterator[None]:
    """A cluster under the suggested limits. Raises AdminError for limits that can't be; nothing is changed then."""
    settings, quotas = _settings(suggestion, admin), _quotas(admin)
    alter = [{"entity": entity, "set": rates, "remove": []} for entity, rates in suggestion.quotas]
    if alter:
        admin.put("/v1/quotas", {"alter": alter}, dry_run="true")
    admin.put("/v1/cluster_config", {"upsert": dict(suggestion.settings), "remove": []})
    try:
        if alter:
            admin.put("/v1/quotas", {"alter": alter})
        yield
    finally:
        _restore(suggestion, admin, settings, quotas)


def _restore(
    suggestion: Suggestion, admin: AdminClient, settings: Mapping[str, object], quotas: QuotasByEntity
) -> None:
    """A setting that `up --set` gave has its value again when the live one is removed; only other ones are set."""
    admin.put("/v1/cluster_config", {"upsert": {}, "remove": list(suggestion.settings)})
    now = _settings(suggestion, admin)
    lost = {name: as_text(value) for name, value in settings.items() if value != now[name]}
    if lost:
        admin.put("/v1/cluster_config", {"upsert": lost, "remove": []})
    alter = []
    for entity, rates in suggestion.quotas:
        before = quotas.get(_key(entity), {})
        alter.append({"entity": entity, "set": before, "remove": [rate for rate in rates if rate not in before]})
    if alter:
        admin.put("/v1/quotas", {"alter": alter})


def _settings(suggestion: Suggestion, admin: AdminClient) -> dict[str, object]:
    """The values that the suggested settings have now, their defaults included."""
    return {name: admin.get("/v1/cluster_config", key=name)[name] for name in suggestion.settings}


def _quotas(admin: AdminClient) -> QuotasByEntity:
    return {_key(row["entity"]): row["values"] for row in admin.get("/v1/quotas")["quotas"]}


def _key(entity: Mapping[str, str | None]) -> Entity:
    return tuple(sorted(entity.items()))
