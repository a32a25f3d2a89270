"""What handlers share: how they ask other shards and the coordinator, and how they refuse."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from broker.protocol import codes
from broker.protocol.codec import Message
from broker.serve.call import Call, Handler
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.mesh.deferred import Deferred, MaybeDeferred, Spawn
from shards.mesh.mesh import COORDINATOR

T = TypeVar("T")

COORDINATOR_TIMEOUT_S = 15.0
LOST = (PeerLost, DeadlineExceeded)


class Requests(Protocol):
    """What is needed of a Mesh by handlers that change the cluster."""

    async def request(self, peer: Any, method: str, *args: Any, timeout_s: float = ...) -> Any: ...


def spawned(spawn: Spawn, function: Callable[[Any, Call], Coroutine[Any, Any, Message]]) -> Handler:
    """A handler of a coroutine function that changes the cluster: it runs to its end also when its client goes away."""
    return lambda request, call: spawn(function(request, call))


def or_lost(answer: MaybeDeferred[T], lost: Callable[[], T]) -> MaybeDeferred[T]:
    """`lost()` instead of the answer if the shard that was asked went away, or did not answer in time."""
    return answer.recover(LOST, lost) if isinstance(answer, Deferred) else answer


class Coded(Exception):
    """Why something is not done: a Kafka error code and one sentence."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class RequestRefused(Coded):
    """A part of a request is refused here; its other parts are not."""


class Unable(Coded):
    """The coordinator refused, or could not be asked."""


def changed_by(call: Call) -> str:
    """Who changes something, for the history."""
    return f"User:{call.user} at {call.ip}"


async def ask_coordinator(mesh: Requests, method: str, *args: Any) -> Any:
    """Calls the coordinator. Raises Unable: NOT_CONTROLLER (clients try again) while it is away."""
    try:
        return await mesh.request(COORDINATOR, method, *args, timeout_s=COORDINATOR_TIMEOUT_S)
    except PeerLost:
        raise Unable(codes.NOT_CONTROLLER, "The coordinator is restarting; try again.") from None
    except DeadlineExceeded:
        raise Unable(codes.REQUEST_TIMED_OUT, "The coordinator did not answer in time.") from None
    except RemoteError as fault:
        known = {"ConfigInvalid": codes.INVALID_CONFIG, "CannotStore": codes.KAFKA_STORAGE_ERROR}
        raise Unable(known.get(fault.code, codes.UNKNOWN_SERVER_ERROR), fault.message) from None


def code_named(name: str) -> int:
    """The code of a Kafka error name, 0 for ""."""
    return int(getattr(codes, name)) if name else codes.NONE
