"""Two hundred thousand client ids under a quota for each."""

from __future__ import annotations

import contextlib

from scripts.bench import machine
from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import api_versions, connect, read_answer
from scripts.bench.machine import Server


def prepare(server: Server) -> None:
    machine.put_quota(server, {"client-id": "<default>"}, {"request_percentage": 10_000.0})


def run(server: Server) -> None:
    with contextlib.suppress(OSError), connect(server.port) as sock:
        for first in range(0, 200_000, 100):
            sock.sendall(b"".join(api_versions(f"client-{number}") for number in range(first, first + 100)))
            for _ in range(100):
                read_answer(sock)


ATTACK = Attack("200,000 client ids under a quota", run, prepare=prepare)
