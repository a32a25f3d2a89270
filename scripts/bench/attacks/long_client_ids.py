"""As many client ids of 32 KB as one connection can name in ten seconds, under a default quota of each kind."""

from __future__ import annotations

import contextlib
import time

from scripts.bench import machine
from scripts.bench.attacks.attack import Attack, Finding
from scripts.bench.attacks.requests import api_versions, connect, read_answer
from scripts.bench.machine import Server

SECONDS = 10.0
MOST_MB_PER_S = 3.0
MOST_SCRAPE_MB = 1.0
_AT_ONCE = 10
_ID_BYTES = 32_000


def prepare(server: Server) -> None:
    quotas = {"request_percentage": 10_000.0, "producer_byte_rate": 1e9, "consumer_byte_rate": 1e9}
    machine.put_quota(server, {"client-id": "<default>"}, quotas)


def run(server: Server) -> Finding:
    """Memory is compared over the second half: in the first one tables fill, and the converter loads its libraries."""
    named = _name(server, 0)
    before_bytes = machine.memory_bytes(server.pid)
    named = _name(server, named)
    growth_mb_per_s = (machine.memory_bytes(server.pid) - before_bytes) / 1e6 / (SECONDS / 2)
    scrape_mb = len(machine.admin_of(server).text("/metrics")) / 1e6
    text = f"{named:,} ids, at last {growth_mb_per_s:.1f} MB/s of memory, a scrape of {scrape_mb:.2f} MB"
    return Finding(text, growth_mb_per_s <= MOST_MB_PER_S and scrape_mb <= MOST_SCRAPE_MB)


def _name(server: Server, named: int) -> int:
    """Names ids for half of the time, after `named` others; how many there are now."""
    ends = time.monotonic() + SECONDS / 2
    with contextlib.suppress(OSError), connect(server.port) as sock:
        while time.monotonic() < ends:
            names = [f"{named + number:010}".ljust(_ID_BYTES, "x") for number in range(_AT_ONCE)]
            sock.sendall(b"".join(map(api_versions, names)))
            for _ in range(_AT_ONCE):
                read_answer(sock)
            named += _AT_ONCE
    return named


ATTACK = Attack("client ids of 32 KB under a quota", run, prepare=prepare)
