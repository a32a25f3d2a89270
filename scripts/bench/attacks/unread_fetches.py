"""Twenty clients that ask for 50 MB each and read nothing."""

from __future__ import annotations

from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import fetch, fill, hold
from scripts.bench.machine import Server


def run(server: Server) -> None:
    fill(server.port, megabytes=40)
    hold(server.port, [fetch(partitions=1, wait_ms=100)] * 20, 8.0)


ATTACK = Attack("20 fetches of 50 MB, unread", run, ("--topic", "t:1"))
