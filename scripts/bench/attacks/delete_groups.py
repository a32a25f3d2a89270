"""DeleteGroups of groups that there are not."""

from __future__ import annotations

from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import ask, frame
from scripts.bench.machine import Server


def run(server: Server) -> None:
    names = tuple(f"group-{number}" for number in range(200_000))
    ask(server.port, frame("delete_groups", 2, lambda types: {"groups_names": names}))


ATTACK = Attack("DeleteGroups of 200,000", run)
