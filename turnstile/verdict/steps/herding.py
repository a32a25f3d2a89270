"""Copies of the client that lose their connections at one instant."""

from __future__ import annotations

import time

from turnstile.verdict.judged import Client
from turnstile.verdict.stage import Stage


def herding(stage: Stage) -> None:
    times = stage.times
    if stage.start_client is None or times.copies < 2:
        stage.skipped["herd"] = "no copies of the client were started"
        return
    copies: list[Client] = []
    try:
        with stage.step("herd", f"{times.copies} copies cut at one instant") as detail:
            began_ns = time.monotonic_ns()
            while len(copies) < times.copies - 1:
                copies.append(stage.start_client())
            _await_copies(stage, began_ns)
            with stage.closed_at_accept():
                detail["cut_ns"] = time.monotonic_ns()
                detail["late_ms"] = stage.lateness_ms(times.herd_s)
            detail["lifted_ns"] = time.monotonic_ns()
            detail["copies"] = times.copies
            time.sleep(times.settle_s)
    finally:
        for copy in copies:
            copy.terminate()
        for copy in copies:
            copy.wait(1.0)
            copy.kill()


def _await_copies(stage: Stage, began_ns: int) -> None:
    """Until each has worked, or for as long as the first may take."""
    deadline = time.monotonic() + stage.times.connect_s / 2
    wanted = max(stage.baseline.usual_connections, 1) * (stage.times.copies - 1)
    while time.monotonic() < deadline:
        seen = list(stage.watch.since(began_ns))
        opened = {event.conn for event in seen if event.kind == "admitted"}
        working = {event.conn for event in seen if event.kind == "request"}
        if len(opened & working) >= wanted:
            break
        time.sleep(0.05)
    time.sleep(stage.times.settle_s)
