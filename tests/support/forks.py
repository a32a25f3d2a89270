"""Code that needs a process to itself: signal masks, children of its own."""

import os
import warnings


def in_a_process(body):
    """Runs `body` in a fork of its own, for it changes signal masks; returns its exit code."""
    with warnings.catch_warnings():
        # Threads that other tests have left hold nothing that the child needs: it only forks, waits and signals.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = body()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
