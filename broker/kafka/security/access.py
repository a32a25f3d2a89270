"""The authorizer of a shard, asked for the client of a request; and what denied answers have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from broker.kafka.security.acl import CLUSTER_NAME, Acl, Operation, ResourceType
from broker.kafka.security.authorizer import Authorizer, super_users
from broker.serve.call import Answer, Call, Handler
from broker.wire import codes
from broker.wire.wire import Types
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred

T = TypeVar("T")
SETTING = "authorizer.class.name"
MESSAGES = {
    codes.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    codes.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    codes.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}


class Access:
    """What clients may do by the version of the configuration that is in force here."""

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self._authorizer = Authorizer()

    @property
    def is_on(self) -> bool:
        """Whether the cluster was started with an authorizer; it stays so."""
        return bool(self.image.get(SETTING))

    def image_changed(self, kinds: Iterable[str]) -> None:
        """The image has another version, in which records of `kinds` differ."""
        if self.is_on and {"acl", "setting"} & set(kinds):
            self._authorizer = Authorizer(
                acls_of(self.image),
                super_users=super_users(self.image.get("super.users")),
                allow_if_none=self.image.get("allow.everyone.if.no.acl.found"),
            )

    def may(self, call: Call, operation: Operation, resource: ResourceType, name: str) -> bool:
        return self._authorizer.allows(call.user, _host_of(call.ip), operation, resource, name)

    def may_cluster(self, call: Call, operation: Operation) -> bool:
        return self.may(call, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_any(self, call: Call, operation: Operation, resource: ResourceType) -> bool:
        """Whether there is a resource of this type with which it may do that."""
        return self._authorizer.allows_any(call.user, _host_of(call.ip), operation, resource)

    def operations(self, call: Call, resource: ResourceType, name: str) -> int:
        """The operations that are allowed, as a field of bits."""
        return self._authorizer.operations(call.user, _host_of(call.ip), resource, name)

    def split(
        self, call: Call, operation: Operation, resource: ResourceType, items: Iterable[T], name: Callable[[T], str]
    ) -> tuple[list[T], list[T]]:
        """(allowed, denied), each in the order of `items`."""
        allowed: list[T] = []
        denied: list[T] = []
        for item in items:
            (allowed if self.may(call, operation, resource, name(item)) else denied).append(item)
        return allowed, denied

    def name_of(self, topic_id: UUID | None) -> str | None:
        """The topic's name; None if there is none with that id."""
        found = topic_id and self.image.topics.by_id(topic_id)
        return found.name if found else None


Guard: TypeAlias = Callable[[Access, Handler], Handler]
"""Makes of a handler one that answers first what its client may not do."""


Refused: TypeAlias = Callable[[Types, Any, int], Any]
"""The whole answer to a request that is denied with an error code."""


def unless(code: Callable[[Access, Call, Any], int], refused: Refused) -> Guard:
    """Of an API that is answered or denied as a whole: `code` says with which error, NONE for not at all."""

    def guard(access: Access, handler: Handler) -> Handler:
        def handle(request: Any, call: Call) -> Answer:
            denied = code(access, call, request)
            if not denied:
                return handler(request, call)
            made: Answer = refused(call.types, request, denied)
            return made

        return handle

    return guard


def described(resource: ResourceType, field: str, name: str) -> Guard:
    """Of an API that lists all: the items of `field` that the client may not describe are left out."""

    def guard(access: Access, handler: Handler) -> Handler:
        def handle(request: Any, call: Call) -> Answer:
            def show(response: Any) -> Any:
                items = getattr(response, field)
                kept = (each for each in items if access.may(call, Operation.DESCRIBE, resource, getattr(each, name)))
                setattr(response, field, tuple(kept))
                return response

            return after(handler(request, call), show)

        return handle

    return guard


def acls_of(image: ClusterImage) -> list[Acl]:
    return [Acl(*json.loads(key)) for key in image.acls]


def after(answer: Answer, make: Callable[[Any], Any]) -> Answer:
    """What `make` makes of a handler's answer, when it is there."""
    made: Answer = answer.then(make) if isinstance(answer, Deferred) else make(answer)
    return made


def answered(response: Any, field: str, more: Iterable[Any]) -> Any:
    """The response, with more items in one of its arrays."""
    setattr(response, field, (*getattr(response, field), *more))
    return response


@lru_cache(maxsize=1024)
def _host_of(ip: str) -> str:
    """As Java spells addresses, with which ACLs are compared: every group of an IPv6 address."""
    if ":" not in ip:
        return ip
    return ":".join(f"{int(group, 16):x}" for group in ip_address(ip.partition("%")[0]).exploded.split(":"))
