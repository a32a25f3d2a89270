"""A value that may not be there yet: the one way to wait for an answer of another process outside a task.

An answer of another shard arrives in a callback, and what follows from it is mostly one more callback: a response that
is encoded and sent. A task for that costs several times the work. A task that needs the value awaits it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar, cast

import trio

T = TypeVar("T")
U = TypeVar("U")


class Deferred(Generic[T]):
    """Resolved once, with a value or an error. A callback added after that runs at once."""

    __slots__ = ("_callbacks", "_error", "_value", "resolved")

    def __init__(self) -> None:
        self.resolved = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Deferred[T]], None]] = []

    def resolve(self, value: T) -> None:
        """Sets the value. Called once, and not after `fail`."""
        self._finish(value, None)

    def fail(self, error: BaseException) -> None:
        """Sets the error that `result` raises. Called once, and not after `resolve`."""
        self._finish(None, error)

    def add_callback(self, callback: Callable[[Deferred[T]], None]) -> None:
        """`callback(self)` is called once, when it is resolved or failed; it must not raise."""
        if self.resolved:
            callback(self)
        else:
            self._callbacks.append(callback)

    def result(self) -> T:
        """The value of one that is resolved, or its error raised."""
        assert self.resolved
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def map(self, make: Callable[[T], U]) -> Deferred[U]:
        """What `make` makes of the value; an error, also one that `make` raises, fails the new one."""
        made: Deferred[U] = Deferred()

        def resolved(self: Deferred[T]) -> None:
            try:
                value = make(self.result())
            except Exception as error:
                made.fail(error)
            else:
                made.resolve(value)

        self.add_callback(resolved)
        return made

    def _finish(self, value: T | None, error: BaseException | None) -> None:
        assert not self.resolved
        self.resolved, self._value, self._error = True, value, error
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def __await__(self) -> Generator[Any, Any, T]:
        if not self.resolved:
            event = trio.Event()
            self.add_callback(lambda _: event.set())
            yield from event.wait().__await__()
        return self.result()
