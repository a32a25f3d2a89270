"""Clients that ask for what is not there yet, wait up to a minute, and leave at once."""

from __future__ import annotations

import contextlib
import time

from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import connect, fetch
from scripts.bench.machine import Server


def run(server: Server) -> None:
    request = fetch(partitions=1, wait_ms=60_000)
    for _ in range(16_000):
        with contextlib.suppress(OSError), connect(server.port, timeout_s=30) as sock:
            sock.sendall(request)
    time.sleep(3)


ATTACK = Attack("16,000 abandoned long polls", run, ("--topic", "t:1"))
