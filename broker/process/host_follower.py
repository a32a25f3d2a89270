"""Keeps the addresses of host names in overrides up to date with DNS: a lookup each `turnstile.override.hosts.interval.ms`
(shards/config/host_overrides.py)."""

from __future__ import annotations

import trio

from broker.runtime.logger import RateLimitedLogger
from shards.config.coordinator import Coordinator
from shards.errors import CannotStore


class HostFollower:
    """Call `look_up` once at the start, then `run`, which ends by cancellation. Logs each name that DNS has no address for."""

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
        """Looks all names up; returns when the new addresses are in force, or could not be stored."""
        try:
            faults = await self._coordinator.follow_hosts()
        except CannotStore as fault:
            self._log.warning("the addresses of hosts in overrides could not be stored", why=str(fault))
            return
        for host, why in faults.items():
            self._log.warning("DNS has no address for the host of an override", host=host, why=why)
