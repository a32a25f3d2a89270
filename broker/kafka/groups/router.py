"""Reaches the coordinator of a group wherever it is among this broker's shards: here, or over the mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from shards.loop.deferred import Deferred, MaybeDeferred
from shards.ownership import home_of_key


class GroupCalls(Protocol):
    """The part of shards.mesh.mesh.Mesh that groups need."""

    def call(self, key: Any, method: str, *args: Any, timeout_s: float = ...) -> Deferred[Any]: ...

    def serve(self, method: str, function: Callable[..., Any]) -> None: ...


class GroupHome(Protocol):
    """The coordinator of the groups of one shard."""

    operations: dict[str, Callable[..., Any]]


class GroupRouter:
    """`coordinator` is that of this shard, number `me` of `shards`, on one of `brokers`."""

    def __init__(self, coordinator: GroupHome, mesh: GroupCalls, me: int, brokers: int, shards: int) -> None:
        self._coordinator = coordinator
        self._mesh = mesh
        self._me = me
        self._brokers = brokers
        self.shards = range(shards)

    def ask(self, group: str, operation: str, *args: Any, timeout_s: float = 5.0) -> MaybeDeferred[Any]:
        """What GroupCoordinator.operations[operation](group, *args) answers; of another shard it may be PeerLost or
        DeadlineExceeded."""
        shard = home_of_key(group, self._brokers, len(self.shards))
        return self.ask_shard(shard, operation, group, *args, timeout_s=timeout_s)

    def ask_shard(self, shard: int, operation: str, *args: Any, timeout_s: float = 5.0) -> MaybeDeferred[Any]:
        """The same for an operation that is not about one group."""
        if shard == self._me:
            answer: MaybeDeferred[Any] = self._coordinator.operations[operation](*args)
            return answer
        return self._mesh.call(shard, f"group.{operation}", *args, timeout_s=timeout_s)
