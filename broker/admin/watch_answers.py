"""The answer of `/v1/watch`, one address or client over time, as types, as in answers.py."""

from __future__ import annotations

from typing import Annotated, TypedDict

from broker.admin.cluster_answers import ByReason
from broker.admin.utilisation_answers import UnixSeconds


class WatchPoint(TypedDict):
    """A point in time: the use that was seen then, and the events since the point before."""

    at: UnixSeconds
    used: Annotated[
        dict[str, float],
        "By limit: connections that are open, new_connections a second over the quota window, or the use of a quota by its key.",
    ]
    limits: Annotated[dict[str, float], "Those that hold, in the same units."]
    throttle_ms: Annotated[dict[str, float], "The average throttle time within the quota window, by the quota's key."]
    admitted: Annotated[float, "Connections a second; of an address."]
    refused: Annotated[dict[str, float], "Connections a second, by reason; of an address."]


class WatchAnswer(TypedDict):
    """One address or client on one broker. It is watched from the first question on, for half an hour after the last one."""

    broker: int
    ip: str | None
    user: str | None
    client_id: str | None
    began: Annotated[float, "Since when it is watched, in Unix seconds."]
    step_s: Annotated[float, "Seconds from one point to the next."]
    points: list[WatchPoint]
    admitted: Annotated[int | None, "Connections since the shards started; null: of a client."]
    refused: Annotated[ByReason | None, "Likewise."]
