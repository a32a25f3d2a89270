"""Progress of a job on stderr, where that is no terminal."""

import threading
from collections.abc import Callable

import pytest

from turnstile.pipeline import progress


def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """A function that waits for so many lines of a job; lines come a thousand times as often as in real use."""
    lines: list[str] = []
    more = threading.Condition()

    class Stderr:
        def write(self, text: str) -> None:
            with more:
                lines.append(text)
                more.notify()

        def flush(self) -> None: ...

        def isatty(self) -> bool:
            return False

    def wait(count: int) -> list[str]:
        with more:
            assert more.wait_for(lambda: len(lines) >= count, timeout=10)
        return lines

    monkeypatch.setattr(progress, "PIPED_S", 0.003)
    monkeypatch.setattr(progress.sys, "stderr", Stderr())
    return wait


def test_a_job_that_takes_long_says_a_line_at_a_time_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_lines = piped(monkeypatch)
    with progress.shown("report"):
        wait_for_lines(1)
        progress.step("open per ip")
        lines = wait_for_lines(len(wait_for_lines(1)) + 2)
    assert lines[0] == "report: reading (0 s)\n" and lines[-1] == "report: open per ip (0 s)\n"
    assert not any("\x1b" in line or "\r" in line for line in lines)


def test_a_job_inside_another_tells_its_steps_on_that_ones_line() -> None:
    with progress.shown("audit") as line, progress.shown("spark") as inner:
        progress.step("caps")
        assert inner is line and line.step == "caps"
