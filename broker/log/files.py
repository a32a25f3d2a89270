"""Files of the log: a bounded number of open ones, and small ones that are replaced whole, with a checksum."""

import os
import struct
from typing import Any

import msgpack
from cachetools import LRUCache
from crc32c import crc32c

MAX_OPEN = 256
_CHECKSUM = struct.Struct(">I")


class _Descriptors(LRUCache[str, int]):
    """Open descriptors by path; the one that makes room for another is closed."""

    def popitem(self) -> tuple[str, int]:
        path, descriptor = super().popitem()
        os.close(descriptor)
        return path, descriptor


class OpenFiles:
    """File descriptors by path, opened for reading and writing when asked for."""

    def __init__(self, max_open: int = MAX_OPEN) -> None:
        self._open = _Descriptors(max_open)

    def __len__(self) -> int:
        return len(self._open)

    def descriptor(self, path: str, *, create: bool = False) -> int:
        """Valid until another one is asked for. Raises OSError."""
        descriptor = self._open.get(path)
        if descriptor is None:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
            self._open[path] = descriptor
        return descriptor

    def forget(self, path: str) -> None:
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def close(self) -> None:
        while self._open:
            self._open.popitem()


def replace(path: str, content: bytes) -> None:
    """Writes a small file; a reader finds the old content or the new one, never a part. Raises OSError."""
    aside = path + ".tmp"
    with open(aside, "wb") as file:
        file.write(content)
    os.replace(aside, path)


def replace_checked(path: str, value: Any) -> None:
    """The same for a value of plain lists, numbers and bytes, with a checksum in front. Raises OSError."""
    body: bytes = msgpack.packb(value)
    replace(path, _CHECKSUM.pack(crc32c(body)) + body)


def read_checked(path: str) -> Any:
    """What `replace_checked` wrote; None if it is damaged. Raises OSError, so FileNotFoundError if there is none."""
    with open(path, "rb") as file:
        raw = file.read()
    if len(raw) < _CHECKSUM.size or _CHECKSUM.pack(crc32c(raw[_CHECKSUM.size :])) != raw[: _CHECKSUM.size]:
        return None
    return msgpack.unpackb(raw[_CHECKSUM.size :])
