"""The requests of a connection, one after the other, until it counts as admitted; and the refusal that an answer tells.

    apiversions  ApiVersions: a broker that serves the connection answers it.
    login        and then SaslHandshake: a cap of Turnstile's that refuses with an answer (turnstile.refuse.mode) answers
                 ApiVersions, and ends the connection behind it, or answers this with the error of the refusal. A listener without
                 SASL says ILLEGAL_SASL_STATE, and the connection goes on. With a user SaslAuthenticate follows, by PLAIN,
                 which is where a refusal as a failed login shows.

Source: KIP-152 for the requests; broker/serve/refused_connection.py for how they are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from turnstile.admin_client import AdminClient, AdminError

API_VERSIONS, LOGIN, NO_PROBE = "apiversions", "login", "none"
CLOSE, AFTER_API_VERSIONS, SASL_ERROR, API_ERROR = "close", "after-api-versions", "sasl-error", "api-error"
"""Ends of a refused connection, named as the modes of turnstile.refuse.mode; CLOSE: before a byte was answered."""
_MODE = "turnstile.refuse.mode"
_ANSWERING = frozenset((AFTER_API_VERSIONS, SASL_ERROR, API_ERROR))
_HANDSHAKE, _AUTHENTICATE = (17, 1), (36, 1)  # not flexible: the header ends with the client id
_CORRELATION_BYTES = 4
_REFUSED_BY = frozenset((44, 89))  # POLICY_VIOLATION, THROTTLING_QUOTA_EXCEEDED: what turnstile.refuse.error may be
_TOO_MANY = b"Too many connects"


class ProbeRequest(NamedTuple):
    """A frame to send, and how its answer, without its length, says that the connection is refused: by which end; "": it is not."""

    frame: bytes
    refused: Callable[[bytes], str]


class Login(NamedTuple):
    """A user, and its password."""

    user: str
    password: str


def probe_requests(probe: str, login: Login | None = None) -> tuple[ProbeRequest, ...]:
    """The requests of a probe, in the order in which they are sent."""
    if probe == NO_PROBE:
        return ()
    asked = [ProbeRequest(api_versions_request(), _never)]
    if probe == LOGIN:
        asked.append(ProbeRequest(_request(*_HANDSHAKE, _string(b"PLAIN")), _by_error))
        if login is not None:
            token = b"\0".join((b"", login.user.encode(), login.password.encode()))
            body = struct.pack(">i", len(token)) + token
            asked.append(ProbeRequest(_request(*_AUTHENTICATE, body), _by_login))
    return tuple(asked)


def refuses_with_an_answer(admin: AdminClient) -> bool:
    """True if a broker of the cluster is set to answer connections that a cap refuses. False where that can't be known."""
    try:
        brokers = {shard["broker"] for shard in admin.get("/v1/shards")["shards"]}
        return any(admin.get("/v1/cluster_config", key=_MODE, broker=each)[_MODE] in _ANSWERING for each in brokers)
    except (AdminError, KeyError, TypeError):
        return False


def api_versions_request(client_id: str = "turnstile-load") -> bytes:
    """ApiVersions v3 with its length, as a client's first request. A broker too old for it answers with error 35."""
    name = client_id.encode()
    header = struct.pack(">hhih", 18, 3, 1, len(name)) + name + b"\0"
    body = bytes([len(name) + 1]) + name + b"\x021\0"
    return struct.pack(">i", len(header) + len(body)) + header + body


def _request(api_key: int, version: int, body: bytes) -> bytes:
    frame = struct.pack(">hhi", api_key, version, 2) + _string(b"turnstile-load") + body
    return struct.pack(">i", len(frame)) + frame


def _string(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def _never(answer: bytes) -> str:
    return ""


def _error(answer: bytes) -> int:
    return int.from_bytes(answer[_CORRELATION_BYTES : _CORRELATION_BYTES + 2], "big", signed=True)


def _by_error(answer: bytes) -> str:
    return API_ERROR if _error(answer) in _REFUSED_BY else ""


def _by_login(answer: bytes) -> str:
    return SASL_ERROR if _error(answer) and _TOO_MANY in answer else _by_error(answer)
