"""A value that may not be there yet: the one way to wait for an answer outside a task.

An answer of another shard arrives in a callback, and mostly one more callback follows: a response is encoded and sent. A
task for that costs several times the work. A task that needs the value awaits it. Longer sequences are written as a
coroutine, and `Spawn` makes a Deferred of it.

callbacks_called_once  Every callback is called once, with a value or an error, unless the Deferred is cancelled first; then
    none is.
cancelling_cancels_the_work  Cancelling a Deferred cancels the work that its value comes from. So one Deferred has one
    consumer, or is never cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Generic, TypeAlias, TypeVar, cast

import trio

T = TypeVar("T")
U = TypeVar("U")


class Deferred(Generic[T]):
    """Resolved once, with a value or an error. A callback added after that runs at once."""

    __slots__ = ("_callbacks", "_cancelled", "_error", "_value", "on_cancel", "resolved")

    def __init__(self) -> None:
        self.resolved = False
        self.on_cancel: Callable[[], None] | None = None
        """Called once when the Deferred is cancelled: ends the work that the value would come from."""
        self._cancelled = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Deferred[T]], None]] = []

    def resolve(self, value: T) -> None:
        """Sets the value; dropped if it was cancelled. Called once, and not after `fail`."""
        self._finish(value, None)

    def fail(self, error: BaseException) -> None:
        """Sets the error that `result` raises; dropped if it was cancelled. Called once, and not after `resolve`."""
        self._finish(None, error)

    def ends_by(self, on_cancel: Callable[[], None]) -> None:
        """`on_cancel` ends the work that the value comes from; called once, if it is cancelled."""
        self.on_cancel = on_cancel

    def cancel(self) -> None:
        """The value is not wanted any more: no callback will be called. Does nothing if it was resolved before."""
        if self.resolved or self._cancelled:
            return
        self._cancelled = True
        self._callbacks = []
        on_cancel, self.on_cancel = self.on_cancel, None
        if on_cancel is not None:
            on_cancel()

    def add_callback(self, callback: Callable[[Deferred[T]], None]) -> None:
        """`callback(self)` is called once, when it is resolved or failed; it must not raise."""
        if self.resolved:
            callback(self)
        elif not self._cancelled:
            self._callbacks.append(callback)

    def result(self) -> T:
        """The value of one that is resolved, or its error raised."""
        assert self.resolved
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def then(self, make: Callable[[T], MaybeDeferred[U]]) -> Deferred[U]:
        """The result of `make` on the value, now or later; an error, also one that `make` raises, fails the new one."""
        return self._derive(lambda: make(self.result()))

    def recover(self, errors: tuple[type[Exception], ...], make: Callable[[], T]) -> Deferred[T]:
        """The value; instead of one of `errors`, what `make` makes."""

        def result() -> T:
            try:
                return self.result()
            except errors:
                return make()

        return self._derive(result)

    def _derive(self, make: Callable[[], MaybeDeferred[U]]) -> Deferred[U]:
        made: Deferred[U] = Deferred()
        made.on_cancel = self.cancel

        def resolved(_: Deferred[T]) -> None:
            try:
                value = make()
            except Exception as error:
                made.fail(error)
                return
            if isinstance(value, Deferred):
                made.on_cancel = value.cancel
                value.add_callback(made.follow)
            else:
                made.resolve(value)

        self.add_callback(resolved)
        return made

    def follow(self, other: Deferred[T]) -> None:
        """Ends as another one that is resolved."""
        self._finish(other._value, other._error)

    def _finish(self, value: T | None, error: BaseException | None) -> None:
        if self._cancelled:
            return
        assert not self.resolved
        self.resolved, self._value, self._error, self.on_cancel = True, value, error, None
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def __await__(self) -> Generator[object, object, T]:
        if not self.resolved:
            event = trio.Event()
            self.add_callback(lambda _: event.set())
            yield from event.wait().__await__()
        return self.result()


MaybeDeferred: TypeAlias = T | Deferred[T]
"""A value that is there, or comes later. `isinstance(value, Deferred)` is the one test for it."""


def then(value: MaybeDeferred[T], make: Callable[[T], MaybeDeferred[U]]) -> MaybeDeferred[U]:
    """The result of `make` on a value, at once if it is there."""
    return value.then(make) if isinstance(value, Deferred) else make(value)


def use_unawaited(value: MaybeDeferred[T], use: Callable[[T], None], mistaken: Callable[[Exception], None]) -> None:
    """`use` is called with a value, at once if it is there, and nothing waits for it; so `mistaken` is told of an error of
    either."""

    def came(there: Deferred[T]) -> None:
        try:
            use(there.result())
        except Exception as error:
            mistaken(error)

    if isinstance(value, Deferred):
        value.add_callback(came)
    else:
        there: Deferred[T] = Deferred()
        there.resolve(value)
        came(there)


def gather(values: Sequence[MaybeDeferred[T]]) -> MaybeDeferred[list[T]]:
    """All values in their order, at once if they are all there. The first error fails the whole, and cancels the others."""
    waiting = [value for value in values if isinstance(value, Deferred)]
    if not waiting:
        return cast(list[T], [*values])
    gathered: Deferred[list[T]] = Deferred()
    left = len(waiting)

    def cancel() -> None:
        for each in waiting:
            each.cancel()

    def came(each: Deferred[T]) -> None:
        nonlocal left
        left -= 1
        if gathered.resolved:
            return
        try:
            each.result()
        except Exception as error:
            gathered.fail(error)
            cancel()
            return
        if not left:
            gathered.resolve([value.result() if isinstance(value, Deferred) else value for value in values])

    gathered.on_cancel = cancel
    for each in waiting:
        each.add_callback(came)
    return gathered


class Spawn:
    """Makes a Deferred of a coroutine, by running it as a task. `start_soon` is that of a nursery."""

    def __init__(self, start_soon: Callable[..., object]) -> None:
        self._start_soon = start_soon

    def __call__(self, coroutine: Awaitable[T], *, cancellable: bool = False) -> Deferred[T]:
        """Returns or raises what it does, when it has ended.

        `cancellable`: cancelling the Deferred ends the task, as a wait should. Otherwise the task runs to its end: a change
        that was begun is finished though the client that asked for it is gone.
        """
        answer: Deferred[T] = Deferred()
        scope = trio.CancelScope()
        if cancellable:
            answer.on_cancel = scope.cancel
        self._start_soon(_run, coroutine, answer, scope)
        return answer


async def _run(coroutine: Awaitable[T], answer: Deferred[T], scope: trio.CancelScope) -> None:
    with scope:
        try:
            value = await coroutine
        except Exception as error:
            answer.fail(error)
        else:
            answer.resolve(value)
