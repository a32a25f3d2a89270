"""SIGINT and SIGTERM as KeyboardInterrupt, but never inside an import.

Invariant: an interrupt during an import is not lost, and leaves no lock of the import system behind. Python ignores what is
raised in a weak reference's callback. importlib has one that takes the lock of all imports before its `try`: an interrupt
there is gone, and the lock is never released, so that a thread that imports Spark waits for ever, and this process for the
thread.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

ENDING = (signal.SIGINT, signal.SIGTERM)
"""Signals that end a command and its JVM."""
_AGAIN_S = 0.01
_IMPORTING = "<frozen importlib."


@contextmanager
def between_imports() -> Iterator[None]:
    """Inside, each of ENDING is a KeyboardInterrupt as soon as the main thread imports nothing. Only there has it an effect."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, _interrupt) for each in (*ENDING, signal.SIGALRM)}
    try:
        yield
    finally:
        waiting_s, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        for each, handler in before.items():
            signal.signal(each, handler)
        if waiting_s:
            raise KeyboardInterrupt


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _is_importing(frame):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        return
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTING):
            return True
        frame = frame.f_back
    return False


def in_thread(function: Callable[[], T]) -> Future[T]:
    """What `function` returns or raises, in a thread of its own in which ENDING stays blocked: these are the main thread's."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(function())
        except BaseException as error:
            answer.set_exception(error)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        threading.Thread(target=run, daemon=True).start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return answer
