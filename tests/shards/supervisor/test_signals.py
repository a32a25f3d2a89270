"""Waiting for signals, also by a process that is stopped meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

PROGRAM = """
import signal, time
from shards.supervisor.signals import wait_for
watched = {signal.SIGCHLD, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, watched)
print("waiting", flush=True)
print(wait_for(watched, 0.2), flush=True)
print(wait_for(watched, 60).si_signo)
"""


def test_a_process_that_was_stopped_for_longer_than_it_waits_has_caught_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout as told:
        assert told.readline() == "waiting\n"
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(0.4)  # its time is over meanwhile: that is what is tried
        os.kill(child.pid, signal.SIGCONT)
        assert told.readline() == "None\n"
        os.kill(child.pid, signal.SIGTERM)
        assert told.readline() == f"{int(signal.SIGTERM)}\n"
    assert child.wait() == 0
