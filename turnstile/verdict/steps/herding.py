"""Copies of the client that lose their connections at one instant."""

from __future__ import annotations

import time

from turnstile.verdict.checks.herd import LATE_MS
from turnstile.verdict.judged import Client
from turnstile.verdict.stage import Stage

_TRIES = 2
_END_S = 1.0


def herding(stage: Stage) -> None:
    times = stage.times
    if stage.start_client is None or times.copies < 2:
        stage.skipped["herd"] = "no copies of the client were started"
        return
    copies: list[Client] = []
    try:
        for number in range(_TRIES):
            again = ", once more, as this machine woke threads late" if number else ""
            with stage.step("herd", f"{times.copies} copies cut at one instant{again}") as detail:
                began_ns = time.monotonic_ns()
                while len(copies) < times.copies - 1:
                    copies.append(stage.start_client())
                _await_copies(stage, began_ns)
                with stage.closed_at_accept():
                    detail["cut_ns"] = time.monotonic_ns()
                    time.sleep(times.herd_s)
                detail["lifted_ns"] = time.monotonic_ns()
                detail["copies"] = times.copies
                time.sleep(times.settle_s)
            if stage.machine.late_ms(detail["cut_ns"], detail["lifted_ns"]) <= LATE_MS:
                break
    finally:
        _end(copies)
        time.sleep(times.settle_s)  # the broker sees their ends before the next step begins


def _end(copies: list[Client]) -> None:
    for copy in copies:
        copy.terminate()
    deadline = time.monotonic() + _END_S
    for copy in copies:
        copy.wait(deadline - time.monotonic())
        copy.kill()


def _await_copies(stage: Stage, began_ns: int) -> None:
    """Waits until each copy has worked, or for as long as the first may take; copies of an earlier try come back."""
    wanted = max(stage.baseline.usual_connections, 1) * (stage.times.copies - 1)

    def is_there() -> bool:
        seen = list(stage.watch.since(began_ns))
        opened = {event.conn for event in seen if event.kind == "admitted"}
        working = {event.conn for event in seen if event.kind == "request"}
        return len(opened & working) >= wanted

    stage.wait_for(is_there, stage.times.connect_s / 2)
    time.sleep(stage.times.settle_s)
