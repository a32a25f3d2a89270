"""A process that does not outlive the one that started it (PR_SET_PDEATHSIG)."""

import ctypes
import os
import signal

# Found here: a child that was forked beside other threads loads nothing.
_prctl = ctypes.CDLL(None, use_errno=True).prctl
_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Has the kernel kill this process when the thread that forked it ends; ends at once if its parent is gone already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
