"""Kafka's StandardAuthorizer: which principal may do what from where, by the ACLs of a version. Pure.

deny_before_allow  A super user may do everything. For the others a DENY that matches rules, then an ALLOW; else nothing is
    allowed, but for a resource that no ACL names, of whatever operation and principal, where
    `allow.everyone.if.no.acl.found` rules.
allows_imply_describe  An ALLOW of READ, WRITE, DELETE or ALTER allows DESCRIBE, too; one of ALTER_CONFIGS allows
    DESCRIBE_CONFIGS. A DENY denies what it names. ALL is every operation.
decisions_cost_by_resource  What a decision costs depends on the ACLs of that resource and on how long prefixes are, not on
    how many ACLs there are.

Sources: StandardAuthorizerData.authorize, findResult; Authorizer.authorizeByResourceType; StandardAuthorizer.configure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from broker.kafka.security.acl import (
    ANY_PRINCIPAL,
    OPERATIONS,
    WILDCARD,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

_IMPLY = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def super_users(text: str) -> frozenset[str]:
    """The principals of `super.users`, which are separated by semicolons."""
    return frozenset(each.strip() for each in text.split(";") if each.strip())


class Authorizer:
    """The ACLs of one version of the configuration. Users are names; "alice" is the principal User:alice."""

    def __init__(
        self, acls: Iterable[Acl] = (), *, super_users: frozenset[str] = frozenset(), allow_if_none: bool = False
    ) -> None:
        self._super_users = super_users
        self._allow_if_none = allow_if_none
        self._by_place: dict[tuple[int, int, str], list[Acl]] = {}
        self._lengths: dict[int, tuple[int, ...]] = {}
        for acl in acls:
            self._by_place.setdefault((acl.resource, acl.pattern, acl.name), []).append(acl)
        for resource in {resource for resource, _, _ in self._by_place}:
            prefixes = {
                len(name) for r, pattern, name in self._by_place if (r, pattern) == (resource, PatternType.PREFIXED)
            }
            self._lengths[resource] = tuple(sorted(prefixes))

    def allows(self, user: str, host: str, operation: int, resource: int, name: str) -> bool:
        """True if this user may do that from this address (deny_before_allow)."""
        principal = f"User:{user}"
        if principal in self._super_users:
            return True
        found = allowed = False
        for acl in self._acls_of(resource, name):
            found = True
            if not _concerns(acl, principal, host):
                continue
            if acl.permission == Permission.DENY:
                if acl.operation in (Operation.ALL, operation):
                    return False
            elif not allowed:
                allowed = acl.operation in (Operation.ALL, operation) or acl.operation in _IMPLY.get(operation, ())  # type: ignore[call-overload]
        return allowed or (self._allow_if_none and not found)

    def operations(self, user: str, host: str, resource: ResourceType, name: str) -> int:
        """The operations of a resource's type that are allowed, as a field of bits."""
        return sum(1 << each for each in OPERATIONS[resource] if self.allows(user, host, each, resource, name))

    def allows_any(self, user: str, host: str, operation: int, resource: int) -> bool:
        """True if there is a resource of this type with which this user may do that."""
        if self.allows(user, host, operation, resource, "hardcode"):
            return True
        principal = f"User:{user}"
        concerned = [
            acl
            for (kind, _, _), acls in self._by_place.items()
            if kind == resource
            for acl in acls
            if _concerns(acl, principal, host) and acl.operation in (operation, Operation.ALL)
        ]
        denied = {(acl.pattern, acl.name) for acl in concerned if acl.permission == Permission.DENY}
        allowed = {(acl.pattern, acl.name) for acl in concerned if acl.permission == Permission.ALLOW}
        everything = (PatternType.LITERAL, WILDCARD)
        if everything in denied:
            return False
        return everything in allowed or any(not _is_dominated(each, denied) for each in allowed)

    def _acls_of(self, resource: int, name: str) -> Iterator[Acl]:
        """The ACLs whose pattern a resource matches."""
        places = self._by_place
        for literal in (name, WILDCARD):
            yield from places.get((resource, PatternType.LITERAL, literal), ())
        for length in self._lengths.get(resource, ()):
            if length > len(name):
                break
            yield from places.get((resource, PatternType.PREFIXED, name[:length]), ())


def _concerns(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, ANY_PRINCIPAL) and acl.host in (host, WILDCARD)


def _is_dominated(allowed: tuple[int, str], denied: set[tuple[int, str]]) -> bool:
    """True if a DENY covers all that an ALLOW allows."""
    pattern, name = allowed
    if pattern == PatternType.LITERAL and allowed in denied:
        return True
    return any((PatternType.PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1))
