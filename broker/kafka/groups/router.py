"""Reaches the home of a group wherever it is among this broker's shards: here, or over the mesh.

The messages are those of messages.py here and in the room of each protocol. Over the mesh a message is its fields, by the method
`group.<its class>`; this module alone packs and unpacks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from broker.kafka.groups.messages import ListGroups
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.mesh.peer import PeerKey
from shards.ownership import home_of_coordinator_key

T = TypeVar("T")

Operations: TypeAlias = Mapping[type[object], Callable[..., object]]
"""The class of a message -> the function of its fields that answers it."""


class GroupMessage(Protocol):
    """A NamedTuple of one of the modules of messages."""

    @property
    def group(self) -> str: ...

    def __iter__(self) -> Iterator[object]: ...


class GroupCalls(Protocol):
    """The part of shards.mesh.mesh.Mesh that groups need."""

    def call(self, key: PeerKey, method: str, *args: object, timeout_s: float = ...) -> Deferred[object]: ...

    def serve(self, method: str, function: Callable[..., object]) -> None: ...


class GroupHome(Protocol):
    """The coordinator of the groups of one shard."""

    operations: Operations


def serve_on(mesh: GroupCalls, operations: Operations, is_open: Deferred[None]) -> None:
    """Offers the operations to the other shards of the broker; they are answered once `is_open` is resolved."""
    for kind, function in operations.items():
        mesh.serve(_method(kind), partial(_serve, is_open, function))


def _serve(is_open: Deferred[None], function: Callable[..., T], _peer: int, *fields: object) -> MaybeDeferred[T]:
    return function(*fields) if is_open.resolved else is_open.then(lambda _: function(*fields))


def _method(kind: type[object]) -> str:
    return f"group.{kind.__name__}"


class GroupRouter:
    """`coordinator` is that of this shard, number `me` of `shards`, on one of `brokers`."""

    def __init__(self, coordinator: GroupHome, mesh: GroupCalls, me: int, brokers: int, shards: int) -> None:
        self._coordinator = coordinator
        self._mesh = mesh
        self._me = me
        self._brokers = brokers
        self.shards = range(shards)

    def ask(self, message: GroupMessage, *, timeout_s: float = 5.0) -> MaybeDeferred[Any]:
        """The answer of the home of the message's group; of another shard it may be PeerLost or DeadlineExceeded."""
        shard = home_of_coordinator_key(message.group, self._brokers, len(self.shards))
        return self._send(shard, message, timeout_s)

    def ask_shard(self, shard: int, message: ListGroups, *, timeout_s: float = 5.0) -> MaybeDeferred[Any]:
        """The answer of one shard to a message that is not about one group."""
        return self._send(shard, message, timeout_s)

    def _send(self, shard: int, message: GroupMessage | ListGroups, timeout_s: float) -> MaybeDeferred[Any]:
        kind = type(message)
        if shard == self._me:
            answer: MaybeDeferred[object] = self._coordinator.operations[kind](*message)
            return answer
        return self._mesh.call(shard, _method(kind), *message, timeout_s=timeout_s)
