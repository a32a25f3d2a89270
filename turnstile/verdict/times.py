"""The duration of each step of the course."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Times:
    """Seconds of each step.

    `alone_s`: of the refusal of one copy alone, with which a herd of copies is compared. `stay_s`: the wait after a refusal, once
    all connections are back; it exceeds half a second, as a connection that closes sooner is not counted as open.
    `request_timeout_s`: the client's; None: no throttle time is longer than it.
    """

    connect_s: float = 30.0
    baseline_s: float = 4.0
    telemetry_ms: int = 500
    short_s: float = 2.5
    long_s: float = 4.6
    long_ms: int = 1500
    mutation_s: float = 5.0
    refuse_s: float = 4.5
    alone_s: float = 6.0
    recover_s: float = 15.0
    back_s: float = 1.2
    stay_s: float = 0.7
    settle_s: float = 0.8
    herd_s: float = 7.0
    shutdown_s: float = 12.0
    copies: int = 5
    request_timeout_s: float | None = None

    def quick(self) -> Times:
        """The shortest times by which a client that pauses for tens of milliseconds can still be judged; for tests."""
        return replace(
            self, connect_s=12, baseline_s=1.0, telemetry_ms=300, short_s=0.5, long_s=0.9, long_ms=300, mutation_s=2,
            refuse_s=3.4, alone_s=5, recover_s=8, settle_s=0.4, shutdown_s=3,
        )  # fmt: skip
