"""Traffic of real clients next to a storm: one subprocess per producer and consumer, librdkafka inside.

Subprocesses, because the storm needs its process to itself, and because a client that hangs can then be ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from load.spec import Traffic

STOP_TIMEOUT_S = 20.0


@dataclass
class TrafficResult:
    """What the real clients did, summed: records, and connections they opened."""

    produced: int = 0
    """Acknowledged by the broker."""
    failed: int = 0
    """Given up by a producer."""
    consumed: int = 0
    connections: int = 0
    lost_clients: int = 0
    """Clients that ended without saying what they did; the other numbers are then too low."""


class Clients:
    """The running clients of a scenario's traffic."""

    def __init__(self, traffic: Sequence[Traffic], bootstrap: str) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        for number, spec in enumerate(traffic):
            group = f"turnstile-load-{number}"
            for role, count in (("produce", spec.producers), ("consume", spec.consumers)):
                for _ in range(count):
                    self._start({"role": role, "bootstrap": bootstrap, "group": group, **vars(spec)})

    def _start(self, order: dict[str, object]) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "load.traffic_client", json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C is for the driver, which then stops its clients in an orderly way.
            start_new_session=True,
        )
        self._processes.append(process)

    def wait_until_ready(self) -> None:
        """Return once every client has its topic; so that the storm doesn't race with its creation."""
        for process in self._processes:
            assert process.stdout is not None
            process.stdout.readline()

    def stop(self) -> TrafficResult:
        """End the clients and add up what they say."""
        result = TrafficResult()
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            assert process.stdout is not None
            try:
                said = json.loads(process.stdout.read() or "null")
                process.wait(timeout=STOP_TIMEOUT_S)
            except (ValueError, subprocess.TimeoutExpired):
                said = None
                process.kill()
                process.wait()
            process.stdout.close()
            if said is None:
                result.lost_clients += 1
                continue
            for name, value in said.items():
                setattr(result, name, getattr(result, name) + value)
        return result
