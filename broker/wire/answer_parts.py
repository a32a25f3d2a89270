"""An answer of which a part stands in a file: it goes from there to the client, as Kafka sends its FileRecords (sendfile).

slices_do_not_change  A slice is bytes that don't change any more, of a file that stays open until they are sent, whatever
    becomes of its name.
answer_length_known_first  The length of an answer is known before it is sent; a file that turns out to be shorter ends the
    connection.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias


class OpenFile:
    """An open descriptor, closed with the last reference to it. `sliced`: the descriptors of which there are slices."""

    __slots__ = ("__weakref__", "fd", "sliced", "slices")

    def __init__(self, fd: int, sliced: set[int]) -> None:
        self.fd = fd
        self.sliced = sliced
        self.slices = 0

    def __del__(self) -> None:
        os.close(self.fd)


class FileSlice:
    """`size` bytes of a file from `position` on; those that were sent are not of it any more."""

    __slots__ = ("_file", "_position", "_size")

    def __init__(self, file: OpenFile, position: int, size: int) -> None:
        self._file = file
        self._position = position
        self._size = size
        file.slices += 1
        file.sliced.add(file.fd)

    def __del__(self) -> None:
        file = self._file
        file.slices -= 1
        if not file.slices:
            file.sliced.discard(file.fd)

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return self._read(self._size)

    def send_to(self, fd: int, most_bytes: int) -> int:
        """Sends what a socket takes of so many bytes, and returns how much that was. Raises OSError, also when the file ends
        too soon."""
        sent = os.sendfile(fd, self._file.fd, self._position, min(self._size, most_bytes))
        if not sent:
            raise OSError(errno.EIO, "the file has become shorter")
        self.skip(sent)
        return sent

    def chunk(self, most_bytes: int) -> bytes:
        """The next bytes, for a caller that needs them in memory. Raises OSError."""
        return self._read(min(self._size, most_bytes))

    def skip(self, sent: int) -> None:
        """Passes over bytes that were sent."""
        self._position += sent
        self._size -= sent

    def _read(self, size: int) -> bytes:
        found = os.pread(self._file.fd, size, self._position)
        if len(found) < size:
            raise OSError(errno.EIO, "the file has become shorter")
        return found


class Rest:
    """Bytes in memory, of which the first are sent."""

    __slots__ = ("left",)

    def __init__(self, data: bytes) -> None:
        self.left = memoryview(data)

    def __len__(self) -> int:
        return len(self.left)

    def __bytes__(self) -> bytes:
        return bytes(self.left)

    def skip(self, sent: int) -> None:
        """Passes over bytes that were sent."""
        self.left = self.left[sent:]


class AnswerParts:
    """The parts of an answer in their order. They are taken out as they are sent."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[bytes | FileSlice | AnswerParts]) -> None:
        self.parts: deque[Rest | FileSlice] = deque()
        together: list[bytes] = []
        for part in parts:
            if isinstance(part, bytes):
                together.append(part)
                continue
            if together:
                self.parts.append(Rest(b"".join(together)))
                together = []
            if isinstance(part, FileSlice):
                self.parts.append(part)
            else:
                self.parts.extend(part.parts)
        if together:
            self.parts.append(Rest(b"".join(together)))

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __bytes__(self) -> bytes:
        """All of it. Raises OSError."""
        return b"".join(map(bytes, self.parts))

    @property
    def memory_bytes(self) -> int:
        """The bytes of it that are in no file."""
        return sum(len(part) for part in self.parts if isinstance(part, Rest))


Encoded: TypeAlias = bytes | AnswerParts
"""An answer as it goes out."""


def joined(parts: Sequence[bytes | FileSlice | AnswerParts]) -> Encoded:
    """One answer of these parts; bytes if none of them is in a file."""
    try:
        return b"".join(parts)  # type: ignore[arg-type] # the mistake is what is looked for: it costs nothing else
    except TypeError:
        return AnswerParts(parts)
