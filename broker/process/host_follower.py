"""Overrides of host names follow DNS, at intervals of `turnstile.override.hosts.interval.ms` (shards/config/host_overrides.py)."""

from __future__ import annotations

import trio

from broker.runtime.logger import RateLimitedLogger
from shards.config.coordinator import Coordinator
from shards.errors import CannotStore


class HostFollower:
    """`look_up` once, `run` until cancelled. Names without an address are logged."""

    def __init__(self, coordinator: Coordinator, log: RateLimitedLogger) -> None:
        self._coordinator = coordinator
        self._log = log

    async def run(self) -> None:
        while True:
            await trio.sleep(
                self._coordinator.state.number("turnstile.override.hosts.interval.ms", lambda fault: None) / 1000
            )
            await self.look_up()

    async def look_up(self) -> None:
        """Returns when what DNS says is in force."""
        try:
            faults = await self._coordinator.follow_hosts()
        except CannotStore as fault:
            self._log.warning("addresses of hosts can't be stored", why=str(fault))
            return
        for host, why in faults.items():
            self._log.warning("DNS has no address for the host of an override", host=host, why=why)
