"""Logins in a schedule: open connections that take a token of their user's pool, as broker/serve/user_admission.py does.

A login is a waiter of its own beside its connection, which holds its other tokens meanwhile. One that is refused closes its
connection; a connection that closes ends its login, also one that is being decided.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from simulation.world import SimulatedConnection, World

from shards.limits.caps import UNLIMITED, CapRule


class Logins:
    """Those of one schedule, in every sixth some; drawn from numbers of their own, so that other schedules stay as they are."""

    def __init__(self, seed: int, world: World, caps: Sequence[int]) -> None:
        self._draw = draw = random.Random(f"logins {seed}")
        self._world = world
        self._caps = caps
        self._share = draw.choice([0.0, 0.0, 0.0, 0.0, 0.0, 0.5])
        self._changes = draw.choice([0.0, 0.05])
        self._of: dict[SimulatedConnection, SimulatedConnection] = {}
        names = ["user:alice", "user:bob"][: draw.choice([1, 2])]
        self.pools = names if self._share else []

    def rule(self) -> CapRule:
        """A cap of a user, or none."""
        if self._draw.random() < 0.3:
            return UNLIMITED
        return CapRule(self._draw.choice(self._caps), "turnstile.max.connections.per.user")

    def change(self) -> None:
        """Maybe a user's cap changes."""
        if self.pools and self._draw.random() < self._changes:
            self._world.push({**self._world.versions[-1], self._draw.choice(self.pools): self.rule()})

    def go_on(self, shard: int) -> None:
        """Some of the open connections of a shard log in; others are told what became of their login."""
        if not self.pools:
            return
        for connection in list(self._world.nodes[shard].connections):
            may_log_in = (
                connection.state == "open" and connection not in self._of and connection.pools[0] not in self.pools
            )
            if may_log_in and self._draw.random() < self._share:
                self._of[connection] = self._world.arrive(shard, (self._draw.choice(self.pools),))
        for connection, login in list(self._of.items()):
            if connection.node is self._world.nodes[shard]:
                self._follow(connection, login)

    def _follow(self, connection: SimulatedConnection, login: SimulatedConnection) -> None:
        if connection.state == "open" and login.state == "refused":
            self._world.close(connection)
        if connection.state != "open":
            del self._of[connection]
            if login.state == "open":
                self._world.close(login)
            elif login.state == "pending":
                self._world.cancel(login)
