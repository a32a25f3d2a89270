"""The usual pause of a client on a connection after an answer, for each API.

A throttle time that is shorter than the pause says nothing: a client that ignores it would have sent nothing either.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from turnstile.verdict.timeline import MS, Event

_Connection = tuple[int, int, int, int]


def usual_pauses_ms(events: Iterable[Event]) -> dict[str, float]:
    """Milliseconds from an answer that was not throttled to the next request on its connection: the median for each API.

    An API after which nothing ever came is not in it.
    """
    last: dict[_Connection, Event] = {}
    seen: dict[str, list[float]] = {}
    for event in events:
        if event.kind != "request":
            continue
        before = last.get(event.conn)
        if before is not None and not before.throttle_ms:
            pause_ms = (event.at_ns - before.at_ns) / MS - before.took_ms
            seen.setdefault(before.api, []).append(max(pause_ms, 0.0))
        last[event.conn] = event
    return {api: median(pauses) for api, pauses in seen.items()}
