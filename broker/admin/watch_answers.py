"""The answer of `/v1/watch`, one address or client over time, as types, as in answers.py."""

from __future__ import annotations

from typing import Annotated, TypedDict

from broker.admin.cluster_answers import ByReason
from broker.admin.utilisation_answers import UnixSeconds


class WatchPoint(TypedDict):
    """A point in time: the use at that time, and the events since the point before."""

    at: UnixSeconds
    used: Annotated[
        dict[str, float],
        "By limit: connections that are open, new_connections a second over the quota window, or the use of a quota by its key.",
    ]
    limits: Annotated[dict[str, float], "The limits that hold, in the same units."]
    throttle_ms: Annotated[dict[str, float], "The average throttle time within the quota window, by the quota's key."]
    admitted: Annotated[float, "Admitted connections a second, for an address."]
    refused: Annotated[dict[str, float], "Refused connections a second by reason, for an address."]


class WatchAnswer(TypedDict):
    """One address or client on one broker. It is watched from the first request on, until half an hour after the last one."""

    broker: int
    ip: str | None
    user: str | None
    client_id: str | None
    began: Annotated[float, "The time from which it is watched, in Unix seconds."]
    step_s: Annotated[float, "Seconds from one point to the next."]
    points: list[WatchPoint]
    admitted: Annotated[
        int | None,
        "Admitted connections since the shards started, or last forgot the counts of too many addresses; null for a client.",
    ]
    refused: Annotated[ByReason | None, "Refused connections, counted since the same time; null for a client."]
