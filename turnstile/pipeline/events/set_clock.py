"""A wall clock that was set while a journal was written: what times of day are worth there.

Events are in order of mono_ns, and all limits are judged by it. The wall clock only says when they were, for people.
"""

from turnstile.quantities import duration

SET_NS = 1_000_000_000
"""The wall clock was set if it moved against mono_ns by more. Slewing, as by NTP, changes the speed of both clocks, so it does not
count."""


def clock_set_s(set_ns: int) -> float:
    """The seconds by which the wall clock was set; 0: it was not."""
    return round(set_ns / 1e9, 3) if set_ns > SET_NS else 0.0


def clock_was_set(set_s: float) -> str:
    """The consequences of it, as two sentences; "" of a clock that was not set."""
    if not set_s:
        return ""
    return (
        f"The wall clock was set meanwhile, by {duration(set_s * 1000)} in all, or the machine slept or was restarted: "
        "times of day are not certain. Verdicts and counts do not depend on them."
    )
