"""Records of the configuration that are JSON objects: as the store keeps them, and every image has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, Required, TypeAlias, TypedDict


class TopicRecord(TypedDict):
    """`id` in hex; `leaders`, and `replicas` if there are any but them: of each partition (replicas.py)."""

    id: str
    leaders: list[int]
    replicas: NotRequired[list[Sequence[int]]]
    configs: dict[str, str]


class CredentialRecord(TypedDict):
    """A SCRAM credential; its bytes in base64."""

    salt: str
    iterations: int
    stored_key: str
    server_key: str


UserRecord: TypeAlias = dict[str, CredentialRecord]
"""The credentials of a user by mechanism."""


class TokenRecord(TypedDict):
    """A delegation token: principals as [type, name], times in Unix milliseconds."""

    owner: list[str]
    requester: list[str]
    renewers: list[list[str]]
    issued_ms: int
    expires_ms: int
    max_ms: int


class FaultRecord(TypedDict, total=False):
    """A fault; broker/faults/fault.py says what is in it, and checks it."""

    kind: Required[str]
    api: list[str]
    client_id: str
    ip: str
    connection: str
    error: str
    delay_ms: int
    throttle_ms: int
    reset: bool
    mute: bool
    once: bool
    on_call: int
    times: int
    every_ms: int
    probability: float
    seed: int
