"""DescribeClientQuotas 0-1 and AlterClientQuotas 0-1 (KIP-546, KIP-612): quotas of users, client-ids and IPs.

A filter names entity types: an exact name, the default, or any name; `strict` asks for entities of these types only.
Entries of one request are answered one by one; its valid entries become one version of the configuration. Entity
types and messages are Kafka 4.1's (ClientQuotaControlManager, ClientQuotasImage); by Redpanda's semantics of quotas
`client-id-prefix` is a type, too, and by Kafka's a quota of one that is still stored is neither in force nor told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.kafka.quotas import guards
from broker.kafka.remote import ChangeFailed, CoordinatorCalls, RequestRefused, ask_coordinator, changed_by, spawned
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.limits.quota_entities import (
    PREFIX,
    REDPANDAS,
    SEMANTICS,
    Entity,
    check_semantics,
    entity_of,
    quota_of,
    types_of,
)
from shards.loop.deferred import Spawn
from shards.settings.errors import ConfigInvalid

if TYPE_CHECKING:
    from broker.wire.requests import AlterClientQuotasRequest, DescribeClientQuotasRequest, EntryData
    from broker.wire.responses import AlterClientQuotasTypes, DescribeClientQuotasTypes

EXACT, DEFAULT, ANY = range(3)


class Filter(NamedTuple):
    """The entities that a client asks for: per type a name, None for the default, or ANY."""

    types: dict[str, str | int | None]
    strict: bool

    def matches(self, entity: Entity) -> bool:
        names = dict(entity)
        if not self.types:
            return not self.strict
        if self.strict and names.keys() != self.types.keys():
            return False
        return all(kind in names and wanted in (ANY, names[kind]) for kind, wanted in self.types.items())


def routes(image: ClusterImage, mesh: CoordinatorCalls, spawn: Spawn) -> list[GuardedRoute]:
    handler = _Quotas(image, mesh)
    return [
        GuardedRoute(48, handler.describe, guards.describe_client_quotas),
        GuardedRoute(49, spawned(spawn, handler.alter), guards.alter_client_quotas),
    ]


class _Quotas:
    def __init__(self, image: ClusterImage, mesh: CoordinatorCalls) -> None:
        self._image = image
        self._mesh = mesh

    def _semantics(self) -> str:
        semantics: str = self._image.get(SEMANTICS)
        return semantics

    def describe(self, request: DescribeClientQuotasRequest, call: Call[DescribeClientQuotasTypes]) -> Message:
        types = call.types
        try:
            wanted = _filter(request, types_of(self._semantics()))
        except RequestRefused as refused:
            return types.DescribeClientQuotasResponse(
                error_code=refused.code, error_message=refused.message, entries=None
            )
        tells_prefixes = self._semantics() == REDPANDAS
        entries = tuple(
            types.EntryData(
                entity=tuple(types.EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
                values=tuple(types.ValueData(key=key, value=value) for key, value in quotas.items()),
            )
            for entity, quotas in self._image.quotas.items()
            if wanted.matches(entity) and (tells_prefixes or PREFIX not in dict(entity))
        )
        # An empty list, never null: Java's admin client fails on null.
        return types.DescribeClientQuotasResponse(error_code=codes.NONE, error_message="", entries=entries)

    async def alter(self, request: AlterClientQuotasRequest, call: Call[AlterClientQuotasTypes]) -> Message:
        asked = [tuple(sorted((e.entity_type, e.entity_name) for e in entry.entity)) for entry in request.entries]
        times = Counter(asked)
        faults: list[RequestRefused | None] = []
        changes = []
        for entry, key in zip(request.entries, asked, strict=True):
            try:
                if times[key] > 1:
                    names = ", ".join(f"{kind}={name}" for kind, name in key)
                    message = f"Ignoring duplicate entity ClientQuotaEntity(entries={{{names}}})"
                    raise RequestRefused(codes.INVALID_REQUEST, message)
                changes.append(_change(entry, self._semantics()))
                faults.append(None)
            except ConfigInvalid as fault:
                faults.append(RequestRefused(codes.INVALID_REQUEST, str(fault)))
            except RequestRefused as refused:
                faults.append(refused)
        if changes:
            try:
                await ask_coordinator(self._mesh, "alter_quotas", changed_by(call), changes, request.validate_only)
            except ChangeFailed as failed:
                code = codes.INVALID_REQUEST if failed.code == codes.INVALID_CONFIG else failed.code
                faults = [fault or RequestRefused(code, failed.message) for fault in faults]
        return call.types.AlterClientQuotasResponse(entries=_results(call, request.entries, faults))


def _filter(request: DescribeClientQuotasRequest, known: Collection[str]) -> Filter:
    """Raises RequestRefused with Kafka's message."""
    types: dict[str, str | int | None] = {}
    for component in request.components:
        kind, match, how = component.entity_type, component.match, component.match_type
        if not kind:
            raise RequestRefused(codes.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in types:
            message = f"Entity type {kind} cannot appear more than once in the filter."
            raise RequestRefused(codes.INVALID_REQUEST, message)
        if kind not in known:
            raise RequestRefused(codes.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if how not in (EXACT, DEFAULT, ANY):
            raise RequestRefused(codes.INVALID_REQUEST, f"Unknown match type {how}")
        if how == EXACT and match is None:
            message = "Request specified MATCH_TYPE_EXACT, but set match string to null."
            raise RequestRefused(codes.INVALID_REQUEST, message)
        if how != EXACT and match is not None:
            name = "MATCH_TYPE_DEFAULT" if how == DEFAULT else "MATCH_TYPE_SPECIFIED"
            raise RequestRefused(codes.INVALID_REQUEST, f"Request specified {name}, but also specified a match string.")
        types[kind] = (match, None, ANY)[how]
    if "ip" in types and len(types) > 1:
        raise RequestRefused(
            codes.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component.",
        )
    return Filter(types, request.strict)


def _change(entry: EntryData, semantics: str) -> list[object]:
    """The change that the coordinator is asked for. Raises ConfigInvalid or RequestRefused."""
    names = [part.entity_type for part in entry.entity]
    if len(set(names)) < len(names):
        raise RequestRefused(codes.INVALID_REQUEST, "Invalid quota entity: a type appears more than once")
    wanted = {part.entity_type: part.entity_name for part in entry.entity}
    entity = entity_of(wanted, semantics)
    check_semantics(entity, [op.key for op in entry.ops if not op.remove], semantics)
    quotas: dict[str, float | None] = {}
    for op in entry.ops:
        if not op.remove:
            quota_of(entity, op.key, op.value)
        quotas[op.key] = None if op.remove else op.value
    return [dict(entity), quotas]


def _results(
    call: Call[AlterClientQuotasTypes], entries: Sequence[EntryData], faults: Sequence[RequestRefused | None]
) -> tuple[AlterClientQuotasTypes.EntryData, ...]:
    types = call.types
    return tuple(
        types.EntryData(
            error_code=fault.code if fault else codes.NONE,
            error_message=fault.message if fault else None,
            entity=tuple(
                types.EntityData(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity
            ),
        )
        for entry, fault in zip(entries, faults, strict=True)
    )
