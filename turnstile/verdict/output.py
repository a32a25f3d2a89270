"""The output of the program under test: read as fast as it comes, and its last words kept."""

from __future__ import annotations

import os
import select
import threading

_KEPT = 2000
_CHUNK = 65_536
"""The capacity of a pipe: one read takes all that has been written."""


class Output:
    """A pipe for the program and its child processes, emptied by a thread. Only the end of the output is stored."""

    def __init__(self) -> None:
        self._reading, self.fd = os.pipe()
        self._ended, self._end = os.pipe()
        self._last = b""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Takes what has been written, and reads no more, whoever still holds the other end."""
        os.close(self._end)
        self._thread.join()
        for fd in (self._reading, self.fd, self._ended):
            os.close(fd)

    def last_words(self) -> str:
        return self._last.decode(errors="replace")

    def _run(self) -> None:
        ready = select.poll()
        ready.register(self._reading, select.POLLIN)
        ready.register(self._ended, 0)  # POLLHUP when `close` has closed its other end
        while True:
            found = dict(ready.poll())
            if self._reading in found:
                self._last = (self._last + os.read(self._reading, _CHUNK))[-_KEPT:]
            if self._ended in found:
                return
