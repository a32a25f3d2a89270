"""Open files of the log, a bounded number of them: the one unused longest is closed when another is needed."""

import os
from collections import OrderedDict

MAX_OPEN = 256


class Files:
    """File descriptors by path, opened for reading and writing when asked for."""

    def __init__(self, max_open: int = MAX_OPEN) -> None:
        self._max_open = max_open
        self._open: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def descriptor(self, path: str, *, create: bool = False) -> int:
        """Valid until another one is asked for. Raises OSError."""
        descriptor = self._open.get(path)
        if descriptor is not None:
            self._open.move_to_end(path)
            return descriptor
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
        self._open[path] = descriptor
        if len(self._open) > self._max_open:
            _, oldest = self._open.popitem(last=False)
            os.close(oldest)
        return descriptor

    def forget(self, path: str) -> None:
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])


def replace(path: str, content: bytes) -> None:
    """Writes a small file so that whoever opens it finds the old content or the new one. Raises OSError."""
    aside = path + ".tmp"
    with open(aside, "wb") as file:
        file.write(content)
    os.replace(aside, path)
