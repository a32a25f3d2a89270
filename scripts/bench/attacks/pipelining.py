"""Clients that write small requests as fast as their sockets take them, and read the answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from scripts.bench import machine
from scripts.bench.attacks.attack import Attack
from scripts.bench.machine import Server
from tests.support import request_bytes
from tests.support.batches import batch
from tests.support.pipelining import flooding

SECONDS = 5
_RECORD = b"x" * 100
_ENOUGH = 1e9
"""Bytes a second that are never reached: every request is charged, none throttled."""
_PRODUCE = "--topic", "t:1"
_SASL = "--listener", "PLAIN=127.0.0.1:0", "--listener", "SASL=127.0.0.1:0,sasl"


def _produce(acks: int) -> bytes:
    return request_bytes.produce("attacker", "t", 0, batch(_RECORD), acks=acks)


def _run(frame: bytes, connections: int = 2, listener: str | None = None) -> Callable[[Server], None]:
    def run(server: Server) -> None:
        port = server.port if listener is None else server.ports[listener]
        with flooding(("127.0.0.1", port), frame, connections=connections, tls=listener == "TLS"):
            time.sleep(SECONDS)

    return run


def _limited(rate: float, server: Server) -> None:
    machine.put_quota(server, {"client-id": None}, {"producer_byte_rate": rate})  # type: ignore[dict-item]  # None: the default


_API_VERSIONS = machine.API_VERSIONS

ATTACKS = (
    Attack("pipelining: ApiVersions", _run(_API_VERSIONS)),
    Attack("pipelining: ApiVersions, TLS", _run(_API_VERSIONS, listener="TLS"), tls=True),
    Attack("pipelining: ApiVersions before authentication", _run(_API_VERSIONS, listener="SASL"), _SASL),
    Attack("pipelining: Produce, acks=0", _run(_produce(0)), _PRODUCE),
    Attack("pipelining: Produce, acks=1", _run(_produce(1)), _PRODUCE),
    Attack("pipelining: Produce, acks=1, TLS", _run(_produce(1), listener="TLS"), _PRODUCE, tls=True),
    Attack("pipelining: Produce under a byte rate", _run(_produce(1)), _PRODUCE, partial(_limited, 100_000.0)),
    Attack("pipelining: Produce charged to a byte rate", _run(_produce(1)), _PRODUCE, partial(_limited, _ENOUGH)),
    Attack("pipelining: ApiVersions, 50 connections", _run(_API_VERSIONS, connections=50)),
    Attack("pipelining: Produce, acks=1, 50 connections", _run(_produce(1), connections=50), _PRODUCE),
)
