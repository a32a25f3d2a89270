"""Fifteen frames of 99 MiB that lack their last byte."""

from __future__ import annotations

import struct

from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import hold
from scripts.bench.machine import Server

_BYTES = 99 << 20


def run(server: Server) -> None:
    hold(server.port, [struct.pack(">i", _BYTES) + bytes(_BYTES - 1)] * 15, 5.0)


ATTACK = Attack("15 frames of 99 MiB, unfinished", run)
