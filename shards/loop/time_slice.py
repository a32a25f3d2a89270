"""The share of work of one callback of the loop, after which everything else has its turn.

What one peer sends may go on for ever: requests, messages, bytes that its socket takes. So whatever works through them counts
each step here, and once the slice is over it asks the poller to be called again (`Poller.again`), behind all that is ready by then.

slices_are_bounded  A slice is over after `most_ns`, MOST_STEPS steps or MOST_BYTES bytes, whichever comes first. The step
    that ends it is done: whatever is called makes progress.
slices_belong_to_callbacks  A slice belongs to a callback, not to a connection: what other connections do in it counts, too.
"""

from __future__ import annotations

from collections.abc import Callable

SLICE_NS = 1_000_000
MOST_STEPS = 256
"""Requests, messages, reads or writes; the bound where time stands still, in a simulation."""
MOST_BYTES = 4 << 20


class TimeSlice:
    """The slice of the callback that runs now. `most_ns`: how long it may take."""

    __slots__ = ("_bytes", "_clock_ns", "_steps", "_until_ns", "fresh", "most_ns", "now_ns", "over")

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self.most_ns = SLICE_NS
        self.now_ns = 0
        """The time at which the callback began."""
        self.fresh = True
        """Nothing was spent of it. The poller begins slices by setting this, `over` and `now_ns`: few callbacks spend any."""
        self.over = False
        self._until_ns = self._steps = self._bytes = 0

    def begin(self, now_ns: int) -> None:
        """A callback begins."""
        self.now_ns = now_ns
        self.fresh = True
        self.over = False

    def open(self, times: int = 1) -> None:
        """The slice is so many times as long as that of one client."""
        self.fresh = False
        self._until_ns = self.now_ns + times * self.most_ns
        self._steps = times * MOST_STEPS
        self._bytes = times * MOST_BYTES

    def spend(self, size: int) -> bool:
        """A step was done, of `size` bytes: whether the slice is over."""
        if self.fresh:
            self.open()
        self._steps -= 1
        self._bytes -= size
        if self._steps <= 0 or self._bytes <= 0 or self._clock_ns() >= self._until_ns:
            self.over = True
        return self.over
