"""Something a pending connection holds, with the way to give it back: a place in a queue, a listener it has stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Permit:
    """Calls `function(*arguments)` when it is given back: the first time, and never again.

    Giving back never waits, so it also happens while a shard shuts down. Model: Redpanda's `conn_quota::units`.
    """

    __slots__ = ("_arguments", "_function")

    def __init__(self, function: Callable[..., None], *arguments: Any) -> None:
        self._function: Callable[..., None] | None = function
        self._arguments = arguments

    def give_back(self) -> None:
        """Ends what was held; does nothing when it has ended before."""
        function, self._function = self._function, None
        if function is not None:
            function(*self._arguments)
