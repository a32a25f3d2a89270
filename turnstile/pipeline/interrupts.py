"""SIGINT and SIGTERM as KeyboardInterrupt, but never inside an import.

Invariant: an interrupt during an import is not lost, and leaves no lock of the import system behind, for which a thread that
imports Spark would wait for ever, and this process for the thread (interrupted.py says how that comes).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from turnstile.interrupted import raise_between_imports, withhold

T = TypeVar("T")

ENDING = (signal.SIGINT, signal.SIGTERM)
"""Signals that end a command and its JVM."""


@contextmanager
def between_imports() -> Iterator[None]:
    """Inside, each of ENDING is a KeyboardInterrupt as soon as the main thread imports nothing. Only there has it an effect."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, raise_between_imports) for each in (*ENDING, signal.SIGALRM)}
    try:
        yield
    finally:
        waiting_s, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        for each, handler in before.items():
            signal.signal(each, handler)
        if waiting_s:
            raise KeyboardInterrupt


@contextmanager
def withheld() -> Iterator[Callable[[], None]]:
    """Inside, until what it yields is called, an interrupt waits: what is begun there is not lost before whoever ends it knows
    of it. Only in the main thread, inside `between_imports`, has it an effect."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    withhold(True)
    try:
        yield lambda: withhold(False)
    finally:
        withhold(False)


def in_thread(function: Callable[[], T]) -> Future[T]:
    """The result or error of `function`, in a thread of its own in which ENDING stays blocked: these are the main thread's."""
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
