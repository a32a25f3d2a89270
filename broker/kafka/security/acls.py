"""DescribeAcls, CreateAcls, DeleteAcls 1-3 (29-31): KIP-11, KIP-290 (prefixes), KIP-140.

ACLs are part of the configuration: a request is answered when every shard authorizes by its ACLs. Without an authorizer they
are answered SECURITY_DISABLED, as by Kafka 4.1. Deleting goes by the ACLs that this broker knows. Sources: AclApis,
AclControlManager.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.kafka.api_error import ApiError
from broker.kafka.remote import ChangeFailed, CoordinatorCalls, ask_coordinator, changed_by, spawned
from broker.kafka.security import acl_and_user_guards
from broker.kafka.security.access import Access, acls_of
from broker.kafka.security.acl import CLUSTER_NAME, Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.messages import AclChange
from shards.errors import ClientFault
from shards.loop.deferred import Spawn

if TYPE_CHECKING:
    from broker.wire.requests import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
    from broker.wire.responses import CreateAclsTypes, DeleteAclsTypes, DescribeAclsTypes

_NO_AUTHORIZER = "No Authorizer is configured on the broker"
_NO_AUTHORIZER_TO_CHANGE = "No Authorizer is configured."
_UNKNOWN = 0


def routes(access: Access, mesh: CoordinatorCalls, spawn: Spawn) -> list[GuardedRoute]:
    handler = _Acls(access, mesh)
    return [
        GuardedRoute(29, handler.describe, acl_and_user_guards.describe_acls),
        GuardedRoute(30, spawned(spawn, handler.create), acl_and_user_guards.create_acls),
        GuardedRoute(31, spawned(spawn, handler.delete), acl_and_user_guards.delete_acls),
    ]


_CHANGED = ApiError(codes.NONE, "")


class _Acls:
    def __init__(self, access: Access, mesh: CoordinatorCalls) -> None:
        self._access = access
        self._mesh = mesh

    def describe(self, request: DescribeAclsRequest, call: Call[DescribeAclsTypes]) -> Message:
        types = call.types
        if not self._access.is_on:
            code, message = codes.SECURITY_DISABLED, _NO_AUTHORIZER
            return types.DescribeAclsResponse(error_code=code, error_message=message, resources=())
        wanted = _known(
            AclFilter(
                request.resource_type_filter, request.resource_name_filter, request.pattern_type_filter,
                request.principal_filter, request.host_filter, request.operation, request.permission_type,
            )
        )  # fmt: skip
        found: dict[tuple[int, str, int], list[DescribeAclsTypes.AclDescription]] = {}
        for acl in sorted(acls_of(self._access.image)):
            if wanted.matches(acl):
                one = types.AclDescription(
                    principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
                )
                found.setdefault((acl.resource, acl.name, acl.pattern), []).append(one)
        resources = (
            types.DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern, acls=tuple(each))
            for (kind, name, pattern), each in found.items()
        )
        return types.DescribeAclsResponse(error_code=codes.NONE, error_message="", resources=tuple(resources))

    async def create(self, request: CreateAclsRequest, call: Call[CreateAclsTypes]) -> Message:
        if not self._access.is_on:
            return _created(
                call.types, [ApiError(codes.SECURITY_DISABLED, _NO_AUTHORIZER_TO_CHANGE)] * len(request.creations)
            )
        acls = [
            Acl(
                each.resource_type, each.resource_name, each.resource_pattern_type, each.principal, each.host,
                each.operation, each.permission_type,
            )
            for each in request.creations
        ]  # fmt: skip
        if any(_UNKNOWN in (acl.resource, acl.pattern, acl.operation, acl.permission) for acl in acls):
            raise ClientFault("INVALID_REQUEST", "CreatableAcls contain unknown elements")
        if any(_is_of_filters(acl) for acl in acls):
            return _created(
                call.types, [ApiError(codes.UNKNOWN_SERVER_ERROR)] * len(acls)
            )  # as Kafka: no binding is made
        faults = [_fault(acl) for acl in acls]
        wanted = [acl for acl, fault in zip(acls, faults, strict=True) if not fault]
        failed = await self._change(call, [(list(acl), True) for acl in wanted])
        results = [ApiError(codes.INVALID_REQUEST, fault) if fault else failed for fault in faults]
        return _created(call.types, results)

    async def delete(self, request: DeleteAclsRequest, call: Call[DeleteAclsTypes]) -> Message:
        types = call.types
        if not self._access.is_on:
            code, message = codes.SECURITY_DISABLED, _NO_AUTHORIZER_TO_CHANGE
            refused = types.DeleteAclsFilterResult(error_code=code, error_message=message, matching_acls=())
            return types.DeleteAclsResponse(filter_results=tuple(refused for _ in request.filters))
        known = sorted(acls_of(self._access.image))
        found = []
        for each in request.filters:
            wanted = _known(
                AclFilter(
                    each.resource_type_filter, each.resource_name_filter, each.pattern_type_filter,
                    each.principal_filter, each.host_filter, each.operation, each.permission_type,
                )
            )  # fmt: skip
            found.append([acl for acl in known if wanted.matches(acl)])
        gone = dict.fromkeys(acl for acls in found for acl in acls)
        failed, why = await self._change(call, [(list(acl), False) for acl in gone])
        results = tuple(
            types.DeleteAclsFilterResult(
                error_code=failed,
                error_message=why or None,
                matching_acls=() if failed else tuple(_matching(types, acl) for acl in acls),
            )
            for acls in found
        )
        return types.DeleteAclsResponse(filter_results=results)

    async def _change(self, call: Call, changes: Sequence[AclChange]) -> ApiError:
        """The error of a change that the coordinator was asked for; NONE and "", as in Kafka, if it is in force everywhere."""
        if not changes:
            return _CHANGED
        try:
            await ask_coordinator(self._mesh, "alter_acls", changed_by(call), changes, False)
        except ChangeFailed as failed:
            code = codes.POLICY_VIOLATION if failed.code == codes.INVALID_CONFIG else failed.code
            return ApiError(code, failed.message)
        return _CHANGED


def _known(wanted: AclFilter) -> AclFilter:
    """Raises ClientFault for a filter with an element that is not known: Kafka closes the connection then."""
    if _UNKNOWN in (wanted.resource, wanted.pattern, wanted.operation, wanted.permission):
        raise ClientFault("INVALID_REQUEST", "Filters contain UNKNOWN elements")
    return wanted


def _is_of_filters(acl: Acl) -> bool:
    """True if it has an element that only filters may have, or none that is known."""
    return (
        acl.resource not in [*ResourceType]
        or acl.pattern not in (PatternType.LITERAL, PatternType.PREFIXED)
        or acl.operation not in [*Operation]
        or acl.permission not in [*Permission]
    )


def _fault(acl: Acl) -> str | None:
    """The fault of an ACL that can't be."""
    if acl.resource == ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.name:
        return "Invalid empty resource name"
    if ":" not in acl.principal:
        principal = acl.principal
        return f"Could not parse principal from `{principal}` (no colon is present separating the principal type from the principal name)"  # noqa: E501
    return None


def _created(types: CreateAclsTypes, results: Sequence[ApiError]) -> CreateAclsTypes.CreateAclsResponse:
    made = (types.AclCreationResult(error_code=code, error_message=message) for code, message in results)
    return types.CreateAclsResponse(results=tuple(made))


def _matching(types: DeleteAclsTypes, acl: Acl) -> DeleteAclsTypes.DeleteAclsMatchingAcl:
    return types.DeleteAclsMatchingAcl(
        error_code=codes.NONE, error_message=None, resource_type=acl.resource, resource_name=acl.name,
        pattern_type=acl.pattern, principal=acl.principal, host=acl.host, operation=acl.operation,
        permission_type=acl.permission,
    )  # fmt: skip
