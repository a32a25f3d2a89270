"""SIGTERM while the client is refused."""

from __future__ import annotations

import time

from turnstile.verdict.stage import Stage


def shutting_down(stage: Stage) -> None:
    client = stage.client
    if client is None:
        stage.skipped["shutdown"] = "the client was not started here"
        return
    with stage.step("shutdown", "told to end while refused") as detail, stage.closed_at_accept():
        time.sleep(stage.times.settle_s)
        stage.measure()
        detail["signalled_ns"] = time.monotonic_ns()
        client.terminate()
        has_ended = stage.wait_for(stage.has_ended, stage.times.shutdown_s)
        if not has_ended:
            stage.measure()
        detail["ended_ns"] = time.monotonic_ns() if has_ended else None
