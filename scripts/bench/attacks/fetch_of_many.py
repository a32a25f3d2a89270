"""Fetch of the same partition, 8 MB of it."""

from __future__ import annotations

from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import ask, fetch
from scripts.bench.machine import Server


def run(server: Server) -> None:
    ask(server.port, *[fetch(partitions=240_000, wait_ms=0)] * 2)


ATTACK = Attack("Fetch of 240,000 times one partition, twice", run, ("--topic", "t:1"))
