"""Tasks in a nursery that the poller outlives.

dropped_at_the_end  Once the nursery is cancelled, a task that is to start in it is dropped. A process ends from the inside out, and
    its poller last: what a peer sends meanwhile would find the nursery closed, which raises, and ends the process before the
    journal has its last event.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import trio


def starting_in(nursery: trio.Nursery) -> Callable[..., None]:
    """`nursery.start_soon`, until the nursery is cancelled; afterwards it only closes the coroutines that it is given."""

    def start_soon(function: Callable[..., object], *args: object) -> None:
        if not nursery.cancel_scope.cancel_called:
            nursery.start_soon(function, *args)  # type: ignore[arg-type]  # as the caller has it
            return
        for each in args:
            if inspect.iscoroutine(each):
                each.close()

    return start_soon
