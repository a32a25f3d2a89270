"""The shapes of what Python programs give to a cluster and are told of it, for type checkers and editors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict

FaultKind = Literal["error", "disconnect", "delay", "blackhole", "throttle"]


class FaultOptions(TypedDict, total=False):
    """A fault: what it does, to which requests, and at which calls: docs/faults.md."""

    name: str
    api: str | Sequence[str]
    client_id: str
    ip: str
    connection: str
    error: str
    delay_ms: int
    throttle_ms: int
    mute: bool
    reset: bool
    once: bool
    on_call: int
    times: int
    every_ms: int
    probability: float
    seed: int


class SetFault(FaultOptions):
    """A fault that is set. `fired`: how many calls it was for so far."""

    kind: FaultKind
    fired: int


class ClusterOptions(TypedDict, total=False):
    """The arguments of Cluster, which says what they mean."""

    limits: Mapping[str, object] | None
    quotas: Mapping[str, Mapping[str, float]] | None
    topics: Mapping[str, int] | Iterable[str]
    users: Mapping[str, str] | None
    brokers: int
    shards: int
    listeners: Iterable[str]
    observe: Mapping[str, object] | None
    data_dir: str | os.PathLike[str] | None
    like: str | None
    as_version: str | None
