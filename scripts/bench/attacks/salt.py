"""A SCRAM credential with a salt that fills the longest request."""

from __future__ import annotations

from typing import Any

from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import ask, frame
from scripts.bench.machine import Server


def _fields(types: Any) -> dict[str, Any]:
    one = types.ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=bytes(80_000_000), salted_password=b"x" * 32
    )
    return {"deletions": (), "upsertions": (one,)}


def run(server: Server) -> None:
    ask(server.port, frame("alter_user_scram_credentials", 0, _fields))


ATTACK = Attack("a SCRAM salt of 80 MB", run)
