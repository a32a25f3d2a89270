"""SIGINT, SIGTERM and SIGHUP as one KeyboardInterrupt: what a command has begun is undone, however it is told to end.

undoing_is_not_interrupted  While a KeyboardInterrupt unwinds, another signal does nothing: Ctrl-C pressed twice does not
    end what undoes.
ignored_signals_stay_ignored  A signal that was ignored, as by nohup or of a background job, stays ignored.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def undone() -> Iterator[None]:
    """Inside, each of these signals is a KeyboardInterrupt of the main thread, in which this is used."""
    before = {each: signal.getsignal(each) for each in _ENDING}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(each, _interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    fault = sys.exception()
    while fault is not None:  # the exception being handled where the signal came, and those before it
        if isinstance(fault, KeyboardInterrupt):
            return
        fault = fault.__context__
    raise KeyboardInterrupt
