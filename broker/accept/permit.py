"""A permit: a place in a queue or a stopped listener that a pending connection holds, and how it is given back."""

from __future__ import annotations

from collections.abc import Callable


class Permit:
    """Calls `function(*arguments)` when it is given back: the first time, and never again.

    Giving back never waits, so it also happens while a shard shuts down. Model: Redpanda's `conn_quota::units`.
    """

    __slots__ = ("_arguments", "_function")

    def __init__(self, function: Callable[..., None], *arguments: object) -> None:
        self._function: Callable[..., None] | None = function
        self._arguments = arguments

    def give_back(self) -> None:
        """Calls the function, unless the permit was given back before."""
        function, self._function = self._function, None
        if function is not None:
            function(*self._arguments)
