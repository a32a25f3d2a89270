"""A value that is not there yet: handed to whoever asked in the very pass of the loop in which it comes, without a task.

An answer from another shard arrives in a callback, and what follows from it is mostly one more callback: a response that
is encoded and sent. Starting a task for that costs several times the work. Whoever is a task anyway awaits it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import trio


class Later:
    """Settled once, with a value or an error. What is told of it runs at once when it is settled already."""

    __slots__ = ("_error", "_tell", "_value", "settled")

    def __init__(self) -> None:
        self.settled = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._tell: list[Callable[[Later], None]] = []

    def settle(self, value: Any = None, error: BaseException | None = None) -> None:
        """The value, or why there is none. Called once."""
        assert not self.settled
        self.settled, self._value, self._error = True, value, error
        tell, self._tell = self._tell, []
        for each in tell:
            each(self)

    def tell(self, whom: Callable[[Later], None]) -> None:
        """`whom(self)` is called once, when it is settled; it must not raise."""
        if self.settled:
            whom(self)
        else:
            self._tell.append(whom)

    def result(self) -> Any:
        """The value of one that is settled, or its error raised."""
        assert self.settled
        if self._error is not None:
            raise self._error
        return self._value

    def map(self, make: Callable[[Any], Any]) -> Later:
        """What `make` makes of the value, later; an error, also one that `make` raises, goes the same way."""
        made = Later()

        def settled(self: Later) -> None:
            try:
                made.settle(make(self.result()))
            except Exception as error:
                made.settle(error=error)

        self.tell(settled)
        return made

    def __await__(self) -> Generator[Any, Any, Any]:
        if not self.settled:
            event = trio.Event()
            self.tell(lambda _: event.set())
            yield from event.wait().__await__()
        return self.result()
