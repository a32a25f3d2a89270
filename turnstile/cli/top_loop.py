"""The loop of `turnstile top`: draws, waits for the next interval or a key, and bears a cluster that restarts."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.live import Live

from turnstile.admin_client import AdminError, AdminRefused, AdminUnreachable
from turnstile.cli.top_screen import render

if TYPE_CHECKING:
    from broker.admin.live_answers import LiveAnswer

_QUIT = frozenset(b"qQ\x03")
_INTERNALS = frozenset(b"iI")
_KEYS = "i: internals   q: end"


def watch(ask: Callable[[], LiveAnswer], interval_s: float, *, internals: bool = False) -> None:
    """Draws until q or Ctrl-C, and leaves the last view on the screen. The key i changes to the other view and back.

    `ask` is called for each view. Its first answer is needed: AdminError is raised. Later, what passes is shown over
    the last view until the cluster answers again; other errors are raised.
    """
    with suppress(KeyboardInterrupt):
        _draw(ask, interval_s, internals)


def _draw(ask: Callable[[], LiveAnswer], interval_s: float, internals: bool) -> None:
    console = Console()
    latest = ask()

    def view(trouble: str = "") -> RenderableType:
        return render(latest, console, trouble, internals=internals, keys=_KEYS, height=console.height)

    with (
        _keys() as key_within,
        Live(view(), console=console, auto_refresh=False, vertical_overflow="crop") as drawn,
    ):
        while (key := key_within(interval_s)) not in _QUIT:
            internals ^= key in _INTERNALS
            trouble = ""
            try:
                latest = ask()
            except AdminError as fault:
                if not passes(fault):
                    raise
                trouble = "no answer, trying again"
            drawn.update(view(trouble), refresh=True)


def passes(fault: AdminError) -> bool:
    """True if a cluster that restarts may cause it, so that it is going to be over."""
    return isinstance(fault, AdminUnreachable) or (isinstance(fault, AdminRefused) and fault.status >= 500)


@contextmanager
def _keys() -> Iterator[Callable[[float], int]]:
    """A function that waits for seconds or a key, and returns the key's first byte, or -1.

    Within, the terminal hands over keys at once and does not echo them, so that none is left for the shell.
    """
    try:
        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
    except (OSError, ValueError, termios.error):  # standard input is closed, or no terminal
        yield _sleep
        return

    typed = select.poll()
    typed.register(keyboard, select.POLLIN)

    def key_within(seconds: float) -> int:
        if typed.poll(seconds * 1000):
            return (os.read(keyboard, 64) or b"q")[0]
        return -1

    tty.setcbreak(keyboard)
    try:
        yield key_within
    finally:
        termios.tcsetattr(keyboard, termios.TCSAFLUSH, before)


def _sleep(seconds: float) -> int:
    time.sleep(seconds)
    return -1
