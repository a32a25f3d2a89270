"""The epochs of a data directory: one number for each process that is forked, above all earlier ones.

file_is_above_every_epoch  The file holds a number that is at least every epoch given out. It is up to RESERVED ahead of them,
    so that a fork needs neither space nor a descriptor: a full disk, a damaged file or one that is gone keeps no process from
    starting again.
half_the_reserve_is_left  Half of the reserve is left when the file is written anew. While that fails, the other half is
    given out.
orderly_end_keeps_the_last_epoch  A cluster that ends in order leaves the last epoch in the file; of one that was killed,
    numbers may be left out.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from shards.errors import CannotStart

RESERVED = 10_000
MOST = 1 << 53
"""The largest epoch that is taken from a file: every display, and JavaScript, can show it."""


class Epochs:
    """The epochs of a data directory. To be made once the directory is locked: then no other process uses the file."""

    def __init__(self, path: Path) -> None:
        """Raises CannotStart when the file holds no number, OSError when it can't be read or written."""
        self._path = path
        self._last = _read(path)
        self._reserved = self._last
        self._reserve()

    def next(self) -> int:
        """The next epoch. Raises OSError when the reserve is used up and the file can't be written."""
        if self._reserved - self._last <= RESERVED // 2:
            with contextlib.suppress(OSError):
                self._reserve()
        if self._last == self._reserved:
            self._reserve()
        self._last += 1
        return self._last

    def end(self) -> None:
        """No more epochs are asked for (orderly_end_keeps_the_last_epoch)."""
        with contextlib.suppress(OSError):
            self._write(self._last)

    def _reserve(self) -> None:
        self._write(self._last + RESERVED)
        self._reserved = self._last + RESERVED

    def _write(self, number: int) -> None:
        aside = self._path.with_suffix(".new")
        aside.write_text(f"{number}\n")
        aside.rename(self._path)


def _read(path: Path) -> int:
    try:
        number = int(path.read_text())
    except FileNotFoundError:
        return 0
    except ValueError:
        number = -1
    if not 0 <= number <= MOST:
        raise CannotStart(f"{path} should hold one number from 0 to {MOST}; was it edited?")
    return number
