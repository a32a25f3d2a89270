"""Traffic of real clients next to a storm: one subprocess per producer and consumer, librdkafka inside.

Subprocesses, because the storm needs its process to itself, and because a client that hangs can then be ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from turnstile.load.spec import Traffic
from turnstile.load.throttles import ThrottleTotals, merge
from turnstile.load.traffic_order import TrafficOrder, TrafficRole

STOP_TIMEOUT_S = 20.0
_ROLES: dict[TrafficRole, str] = {
    "produce": "producer",
    "consume": "consumer",
    "insist": "producer that would not wait",
    "mutate": "creator of topics",
}


@dataclass
class TrafficResult:
    """The work of the real clients, summed: records, and connections they opened."""

    produced: int = 0
    """Acknowledged by the broker."""
    failed: int = 0
    """Given up by a producer."""
    consumed: int = 0
    created: int = 0
    """Topics."""
    rejected: int = 0
    """Topics that a quota refused."""
    throttled: dict[str, ThrottleTotals] = field(default_factory=dict)
    """The throttle times that clients were sent, by client-id and role."""
    connections: int = 0
    lost_clients: int = 0
    """Clients that ended without saying what they did; the other numbers are then too low."""

    @property
    def limited(self) -> bool:
        """True if a quota throttled a client, or refused a topic."""
        return self.rejected > 0 or any(totals["responses"] for totals in self.throttled.values())


class Clients:
    """The running clients of a scenario's traffic."""

    def __init__(self, traffic: Sequence[Traffic], bootstrap: str) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        for number, spec in enumerate(traffic):
            group = f"turnstile-load-{number}"
            client_id = spec.client_id or spec.topic
            counts: dict[TrafficRole, int] = {
                "produce": spec.producers,
                "consume": spec.consumers,
                "insist": spec.impatient,
                "mutate": spec.mutators,
            }
            for role, count in counts.items():
                order: TrafficOrder = {
                    "role": role, "bootstrap": bootstrap, "group": group, "label": f"{client_id} {_ROLES[role]}",
                    "client_id": client_id, "topic": spec.topic, "partitions": spec.partitions, "user": spec.user,
                    "password": spec.password, "size_bytes": spec.size_bytes, "records_per_s": spec.records_per_s,
                    "topics_per_s": spec.topics_per_s,
                }  # fmt: skip
                for _ in range(count):
                    self._start(order)

    def _start(self, order: TrafficOrder) -> None:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "turnstile.load.traffic_client", json.dumps(order)],
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
            merge(result.throttled, said.pop("throttled", {}))
            for name, value in said.items():
                setattr(result, name, getattr(result, name) + value)
        return result
