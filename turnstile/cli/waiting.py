"""Waiting for another process, told on standard error once it takes longer than people expect."""

from __future__ import annotations

import time
from collections.abc import Callable

import click

SAID_AFTER_S = 2.0
_AGAIN_S = 0.02


def until(condition: Callable[[], bool], *, within_s: float, what: str) -> bool:
    """True if the condition came true in time. `what` is said every two seconds, with the seconds that have passed."""
    began_s = time.monotonic()
    say_s = SAID_AFTER_S
    while not condition():
        passed_s = time.monotonic() - began_s
        if passed_s > within_s:
            return False
        if passed_s >= say_s:
            click.echo(f"{what} ({passed_s:.0f} s)", err=True)
            say_s = passed_s + SAID_AFTER_S
        time.sleep(_AGAIN_S)  # not our child: nothing tells when it changes
    return True
