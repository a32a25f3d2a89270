"""The driver's order to a process with one real client, and the report of that at its end: JSON on its command line and its
output."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from turnstile.load.throttles import ThrottleTotals

TrafficRole = Literal["produce", "consume", "insist", "mutate"]


class TrafficOrder(TypedDict):
    """One client. `label` names its kind in the report; the others are as in spec.Traffic, for this one client."""

    role: TrafficRole
    bootstrap: str
    group: str
    label: str
    client_id: str
    topic: str
    partitions: int
    user: str
    password: str
    size_bytes: int
    records_per_s: float
    topics_per_s: float


class TrafficCounts(TypedDict):
    """Records and topics of one client, the connections that it opened, and its throttle times by its label."""

    produced: NotRequired[int]
    failed: NotRequired[int]
    consumed: NotRequired[int]
    created: NotRequired[int]
    rejected: NotRequired[int]
    connections: int
    throttled: dict[str, ThrottleTotals]
