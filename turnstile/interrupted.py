"""The end of a command by Ctrl-C, from its first instant to its last: one line, and exit code 130.

interrupts_end_before_work  Before a command has begun its work, Ctrl-C ends the process at once. Importing takes a tenth of
    a second and more; a KeyboardInterrupt in the middle of that would be a traceback, or be swallowed by an import.
interrupts_undo_work  While a command works, Ctrl-C raises KeyboardInterrupt, so that the command undoes what it began. During an
    import the interrupt waits until the import is over. importlib has a weak reference's callback that takes the lock of all
    imports before its `try`, and Python ignores exceptions in such callbacks: an interrupt there would be lost, and the lock never
    released.
interrupts_end_after_work  When a command has done its work, while the interpreter ends, Ctrl-C ends the process at once again.
ignored_interrupts_stay_ignored  A SIGINT that was ignored, as of a background job of a script, stays ignored.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""
SAID = "turnstile: interrupted"
_AGAIN_S = 0.01
_IMPORTING = "<frozen importlib."
_withheld = False


def end_at_once() -> None:
    """From here on Ctrl-C ends the process (interrupts_end_before_work, interrupts_end_after_work)."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
    waiting_s, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    if waiting_s:  # a Ctrl-C that came during the last import
        _end(signal.SIGINT, None)


def undo_first() -> None:
    """From here on Ctrl-C raises KeyboardInterrupt (interrupts_undo_work), in a process that called `end_at_once` before."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, raise_between_imports)


def raise_between_imports(number: int, frame: FrameType | None) -> None:
    """A signal handler that raises KeyboardInterrupt, after the import that the main thread may be in. It uses SIGALRM to wait."""
    if not (_withheld or _is_importing(frame)):
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, _again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


def withhold(withheld: bool) -> None:
    """Makes interrupts wait (True), as during an import, or no longer (False). Blocking the signal in the main thread is not
    enough: another thread would take it, and Python would still run the handler in the main thread."""
    global _withheld
    _withheld = withheld


def imports_are_done() -> None:
    """Raises KeyboardInterrupt now if a Ctrl-C waits for the end of an import: the caller is about to block signals."""
    waiting_s, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    if waiting_s:
        raise KeyboardInterrupt


def _again(number: int, frame: FrameType | None) -> None:
    """Sends SIGINT once more. A direct raise would interrupt code that has blocked SIGINT in the meantime."""
    os.kill(os.getpid(), signal.SIGINT)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTING):
            return True
        frame = frame.f_back
    return False


def _end(number: int, frame: FrameType | None) -> None:
    sentence = f"\n{SAID}\n" if os.isatty(2) else f"{SAID}\n"
    try:
        os.write(2, sentence.encode())
    finally:
        os._exit(INTERRUPTED)
