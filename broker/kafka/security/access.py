"""The authorizer of a shard, asked for the client of a request."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from broker.kafka.security.acl import CLUSTER_NAME, Acl, Operation, ResourceType
from broker.kafka.security.authorizer import Authorizer, super_users
from broker.serve.call import Call
from shards.config.image import ClusterImage

T = TypeVar("T")
SETTING = "authorizer.class.name"


class SplitItems(NamedTuple, Generic[T]):
    """The items of a request by whether its client may use their resource, each list in the order of the request. An item of no
    resource is allowed: of it nothing is told but that, by the handler."""

    allowed: list[T]
    denied: list[T]


class Access:
    """The operations that clients are allowed by the version of the configuration that is in force here."""

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self._authorizer = Authorizer()

    @property
    def is_on(self) -> bool:
        """True if the cluster was started with an authorizer; it stays so."""
        return bool(self.image.get(SETTING))

    def image_changed(self, kinds: Collection[str]) -> None:
        """The image has another version, in which records of `kinds` differ."""
        if self.is_on and {"acl", "setting"} & set(kinds):
            self._authorizer = Authorizer(
                acls_of(self.image),
                super_users=super_users(self.image.get("super.users")),
                allow_if_none=self.image.get("allow.everyone.if.no.acl.found"),
            )

    def may(self, call: Call, operation: Operation, resource: ResourceType, name: str) -> bool:
        return self._authorizer.allows(call.user, _host_of(call.ip), operation, resource, name)

    def member_may(self, member: Sequence[str], operation: Operation, topic: str) -> bool:
        """True if a member of a group, as (user, address), may do that with a topic; anything while there is no authorizer."""
        user, ip = member
        return not self.is_on or self._authorizer.allows(user, _host_of(ip), operation, ResourceType.TOPIC, topic)

    def may_cluster(self, call: Call, operation: Operation) -> bool:
        return self.may(call, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def cluster_operations(self, call: Call) -> int:
        """A client's operations on the cluster, as a field of bits; 0 for a client that may not describe the cluster."""
        if not self.may_cluster(call, Operation.DESCRIBE):
            return 0
        return self.operations(call, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_any(self, call: Call, operation: Operation, resource: ResourceType) -> bool:
        """True if there is a resource of this type with which it may do that."""
        return self._authorizer.allows_any(call.user, _host_of(call.ip), operation, resource)

    def operations(self, call: Call, resource: ResourceType, name: str) -> int:
        """The operations that are allowed, as a field of bits."""
        return self._authorizer.operations(call.user, _host_of(call.ip), resource, name)

    def split(
        self,
        call: Call,
        operation: Operation,
        resource: ResourceType,
        items: Iterable[T],
        name: Callable[[T], str | None],
    ) -> SplitItems[T]:
        """The items whose resource the client may use, and the others. `name`: of an item's resource; None: there is none."""
        allowed: list[T] = []
        denied: list[T] = []
        for item in items:
            named = name(item)
            is_allowed = named is None or self.may(call, operation, resource, named)
            (allowed if is_allowed else denied).append(item)
        return SplitItems(allowed, denied)

    def name_of(self, topic_id: UUID | None) -> str | None:
        """The topic's name; None if there is none with that id."""
        found = topic_id and self.image.topics.by_id(topic_id)
        return found.name if found else None


def acls_of(image: ClusterImage) -> list[Acl]:
    return [Acl(*json.loads(key)) for key in image.acls]


@lru_cache(maxsize=1024)
def _host_of(ip: str) -> str:
    """An address in Java's spelling, with which ACLs are compared: every group of an IPv6 address."""
    if ":" not in ip:
        return ip
    return ":".join(f"{int(group, 16):x}" for group in ip_address(ip.partition("%")[0]).exploded.split(":"))
