"""Waiting for signals that are blocked."""

from __future__ import annotations

import signal
from collections.abc import Collection


def wait_for(signals: Collection[int], within_s: float) -> signal.struct_siginfo | None:
    """The first of these signals, which must be blocked; None: none came within so many seconds.

    Not `sigtimedwait` alone: of a process that was stopped for longer than that, and goes on, CPython (until 3.13 at least) returns
    what was never filled in, a signal 0.
    """
    caught = signal.sigtimedwait(signals, within_s)
    return caught if caught is not None and caught.si_signo in signals else None
