"""Files of the log: a bounded number of open ones, and small ones that are replaced whole, with a checksum."""

import errno
import os
import resource
import struct
from typing import Any
from weakref import WeakValueDictionary

import msgpack
from cachetools import LRUCache

from broker.runtime.crc32c import crc32c
from broker.wire.answer_parts import FileSlice, OpenFile

MAX_OPEN = 256
_CHECKSUM = struct.Struct(">I")


def max_open() -> int:
    """The number of files of logs that a process keeps open: few if it may have few descriptors."""
    return max(min(MAX_OPEN, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 8), 1)


def is_short_of_resources(fault: OSError) -> bool:
    """True if a file could not be opened or read for want of descriptors or memory, which says nothing of the file."""
    return fault.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class OpenFiles:
    """Files by path, opened for reading and writing when asked for. `max_open` are kept open; slices, which may wait for slow
    clients, are given of half as many, and keep those open, too."""

    def __init__(self, max_open: int = MAX_OPEN) -> None:
        self._kept: LRUCache[str, OpenFile] = LRUCache(max_open)
        self._open: WeakValueDictionary[str, OpenFile] = WeakValueDictionary()
        self._sliced: set[int] = set()
        self._most_sliced = max(max_open // 2, 1)

    def __len__(self) -> int:
        return len(self._kept)

    def descriptor(self, path: str, *, create: bool = False) -> int:
        """Valid until another one is asked for. Raises OSError."""
        return self._file(path, create).fd

    def slice(self, path: str, position: int, size: int) -> FileSlice | None:
        """Bytes of a file; None if it doesn't have them, or if there are slices of too many others. Raises OSError."""
        file = self._file(path, False)
        if len(self._sliced) >= self._most_sliced and not file.slices:
            return None
        if os.fstat(file.fd).st_size < position + size:
            return None
        return FileSlice(file, position, size)

    def _file(self, path: str, create: bool) -> OpenFile:
        file = self._kept.get(path)
        if file is None:
            file = self._open.get(path)
            if file is None:
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
                file = self._open[path] = OpenFile(fd, self._sliced)
            self._kept[path] = file
        return file

    def forget(self, path: str) -> None:
        """The file is gone, or another one has its name."""
        self._kept.pop(path, None)
        self._open.pop(path, None)

    def close(self) -> None:
        self._kept.clear()


def replace(path: str, content: bytes) -> None:
    """Writes a small file; a reader finds the old content or the new one, never a part. Raises OSError."""
    aside = path + ".tmp"
    with open(aside, "wb") as file:
        file.write(content)
    os.replace(aside, path)


def replace_checked(path: str, value: object) -> None:
    """As `replace`, for a value of plain lists, numbers and bytes, with a checksum in front. Raises OSError."""
    body: bytes = msgpack.packb(value)
    replace(path, _CHECKSUM.pack(crc32c(body)) + body)


def read_checked(path: str) -> Any:
    """The data that `replace_checked` wrote; None if it is damaged. Raises OSError, so FileNotFoundError if there is none."""
    with open(path, "rb") as file:
        raw = file.read()
    if len(raw) < _CHECKSUM.size or _CHECKSUM.pack(crc32c(raw[_CHECKSUM.size :])) != raw[: _CHECKSUM.size]:
        return None
    return msgpack.unpackb(raw[_CHECKSUM.size :])
