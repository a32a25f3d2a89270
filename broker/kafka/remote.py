"""Calls from handlers of Kafka's APIs to other shards and to the coordinator, and the error codes for calls that fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any, Protocol, TypeVar

from broker.kafka.api_error import ApiException
from broker.serve.call import Call, Handler
from broker.wire import codes
from broker.wire.codec import Message
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.loop.deferred import Deferred, MaybeDeferred, Spawn, gather
from shards.loop.turns import Turns
from shards.mesh.mesh import COORDINATOR
from shards.mesh.peer import PeerKey

T = TypeVar("T")
K = TypeVar("K")
R = TypeVar("R")
Types = TypeVar("Types")

COORDINATOR_TIMEOUT_S = 15.0
MOST_AT_ONCE = 100
LOST = (PeerLost, DeadlineExceeded)


class CoordinatorCalls(Protocol):
    """The part of a Mesh that handlers need to change the cluster."""

    async def request(self, key: PeerKey, method: str, *args: object, timeout_s: float = ...) -> object: ...


def spawned(spawn: Spawn, function: Callable[[R, Call[Types]], Awaitable[Message]]) -> Handler:
    """A handler made of a coroutine function that changes the cluster. The function runs to its end even if the client goes."""

    @wraps(function)
    def handle(request: R, call: Call[Types]) -> Deferred[Message]:
        return spawn(function(request, call))

    return handle


def or_lost(answer: MaybeDeferred[T], lost: Callable[[], T]) -> MaybeDeferred[T]:
    """The answer of another shard, or `lost()` if that shard went away or did not answer in time."""
    return answer.recover(LOST, lost) if isinstance(answer, Deferred) else answer


def ask_each(turns: Turns, keys: Sequence[K], ask: Callable[[K], MaybeDeferred[T]]) -> MaybeDeferred[list[T]]:
    """The answers to all keys, in the order of the keys; at most MOST_AT_ONCE of them are asked for at a time."""
    if len(keys) <= MOST_AT_ONCE:
        return gather([ask(key) for key in keys])
    return turns.spawn(_ask_in_turns(turns, keys, ask))


async def _ask_in_turns(turns: Turns, keys: Sequence[K], ask: Callable[[K], MaybeDeferred[T]]) -> list[T]:
    answers: list[T] = []
    for first in range(0, len(keys), MOST_AT_ONCE):
        async with turns.turn():
            some = gather([ask(key) for key in keys[first : first + MOST_AT_ONCE]])
        answers += await some if isinstance(some, Deferred) else some
    return answers


class RequestRefused(ApiException):
    """The handler refuses one part of a request, such as one resource; it serves the other parts."""


class ChangeFailed(ApiException):
    """The coordinator refused a change, or did not answer; in the latter case the change may have been made."""


def changed_by(call: Call) -> str:
    """The author of a change, user and address, as the configuration history names it."""
    return f"User:{call.user} at {call.ip}"


async def ask_coordinator(mesh: CoordinatorCalls, method: str, *args: object) -> Any:
    """Calls the coordinator. Raises ChangeFailed: NOT_CONTROLLER (clients try again) while it restarts."""
    try:
        return await mesh.request(COORDINATOR, method, *args, timeout_s=COORDINATOR_TIMEOUT_S)
    except PeerLost:
        raise ChangeFailed(codes.NOT_CONTROLLER, "The coordinator is restarting; try again.") from None
    except DeadlineExceeded:
        raise ChangeFailed(codes.REQUEST_TIMED_OUT, "The coordinator did not answer in time.") from None
    except RemoteError as fault:
        known = {
            "ConfigInvalid": codes.INVALID_CONFIG,
            "CannotStore": codes.KAFKA_STORAGE_ERROR,
            "ControllerThrottled": codes.THROTTLING_QUOTA_EXCEEDED,
        }
        raise ChangeFailed(known.get(fault.code, codes.UNKNOWN_SERVER_ERROR), fault.message) from None
