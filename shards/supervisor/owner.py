"""The program that a cluster ends with, if it was started by one: watched by its pid and by our standard input.

cluster_ends_with_its_owner  When the program ends its cluster ends, however many of the program's forks live on: the pidfd of the
    program tells.
closed_stdin_ends_the_cluster  When the program closes our standard input the cluster ends, too. A fork that holds a copy of that
    pipe neither keeps the cluster alive (cluster_ends_with_its_owner) nor ends it.
"""

from __future__ import annotations

import os
import select

_STDIN = 0


class Owner:
    """Polled by the supervisor, which has no event loop, each time it has waited for signals."""

    def __init__(self, *, pid: int | None = None, stdin: bool = False) -> None:
        """`pid`: of the program; None: no program is known. `stdin`: whether the end of our standard input counts."""
        self._told = select.poll()
        self._process = -1
        self._has_ended = False
        if pid is not None:
            try:
                self._process = os.pidfd_open(pid)
            except ProcessLookupError:
                self._has_ended = True
            else:
                self._told.register(self._process, select.POLLIN)
        if stdin:
            self._told.register(_STDIN, select.POLLIN)

    def has_ended(self) -> bool:
        """True if the program has ended or has closed our standard input. Does not wait."""
        for descriptor, _ in self._told.poll(0):
            self._has_ended |= descriptor == self._process or _is_at_its_end(descriptor)
        return self._has_ended


def _is_at_its_end(descriptor: int) -> bool:
    """True if its other end is closed. What was sent through it is dropped."""
    try:
        return not os.read(descriptor, 4096)
    except OSError:
        return True  # a terminal that is gone, or no descriptor at all
