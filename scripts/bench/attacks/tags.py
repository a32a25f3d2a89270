"""A header with 40 MB of tagged fields."""

from __future__ import annotations

import struct

from broker.wire.primitives import uvarint
from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import ask
from scripts.bench.machine import Server

_METADATA, _VERSION = 3, 12


def run(server: Server) -> None:
    body = b"".join(uvarint(number) + b"\x04abcd" for number in range(1, 5_000_000))
    head = struct.pack(">hhih", _METADATA, _VERSION, 7, 1) + b"x" + uvarint(4_999_999) + body
    request = head + b"\x01\x00\x00\x00"
    ask(server.port, struct.pack(">i", len(request)) + request)


ATTACK = Attack("40 MB of tagged fields", run)
