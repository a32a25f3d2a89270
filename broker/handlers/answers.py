"""Answers that may have to wait: a handler builds its response either way, and stays a plain function if it can."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import trio

from broker.protocol import codes
from broker.serve.call import Call
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.mesh.mesh import COORDINATOR

COORDINATOR_TIMEOUT_S = 15.0
LOST = (PeerLost, DeadlineExceeded)


class Requests(Protocol):
    """What is needed of a Mesh by handlers that change the cluster."""

    async def request(self, peer: Any, method: str, *args: Any, timeout_s: float = ...) -> Any: ...


def then(answer: Any, build: Callable[[Any], Any], lost: Callable[[], Any]) -> Any | Awaitable[Any]:
    """`build(answer)`, at once or when the answer is there; `lost()` if the shard that was asked went away."""
    return _then(answer, build, lost) if inspect.isawaitable(answer) else build(answer)


async def _then(answer: Awaitable[Any], build: Callable[[Any], Any], lost: Callable[[], Any]) -> Any:
    try:
        value = await answer
    except LOST:
        return lost()
    return build(value)


def gather(answers: Sequence[Any], build: Callable[[list[Any]], Any]) -> Any | Awaitable[Any]:
    """`build` of all answers in their order; those whose shard went away are None."""
    if any(inspect.isawaitable(answer) for answer in answers):
        return _gather(answers, build)
    return build(list(answers))


async def _gather(answers: Sequence[Any], build: Callable[[list[Any]], Any]) -> Any:
    values: list[Any] = [None] * len(answers)

    async def wait(at: int, answer: Any) -> None:
        try:
            values[at] = await answer if inspect.isawaitable(answer) else answer
        except LOST:
            values[at] = None

    async with trio.open_nursery() as nursery:
        for at, answer in enumerate(answers):
            nursery.start_soon(wait, at, answer)
    return build(values)


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
