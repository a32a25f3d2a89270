"""Files that could not be read, or parts of them, kept under a name that says so.

A process that finds damage goes on with what it can read. What it can't read is moved to `NAME.damaged-<UTC time>` beside
the file it was in, and logged as one line. Such a file stays until its directory is deleted (with its topic) or a person
removes it; `set_aside_in` lists them.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from broker.runtime.logger import Logger

MARK = ".damaged-"

log = Logger()


class SetAside(NamedTuple):
    """One file: its path, and its size in bytes."""

    path: str
    size_bytes: int


def set_aside(path: str | os.PathLike[str], why: str, *, content: bytes | None = None) -> str:
    """Moves the file at `path` aside. With `content`, writes only these bytes aside and leaves the file.

    `why` is a sentence for the log line. Returns the new path. Raises OSError.
    """
    target = _free_name(os.fspath(path))
    if content is None:
        os.rename(path, target)
    else:
        with open(target, "xb") as file:
            file.write(content)
    log.warning("damaged data was set aside", file=os.fspath(path), aside=target, why=why)
    return target


def keep_copy(path: str, why: str) -> str:
    """Gives the file at `path` a second name aside, so that `path` can be replaced. Returns that name. Raises OSError."""
    target = _free_name(path)
    os.link(path, target)
    log.warning("damaged data was set aside", file=path, aside=target, why=why)
    return target


def set_aside_in(directory: str | os.PathLike[str]) -> list[SetAside]:
    """Everything set aside in `directory` and below it, by path; [] if there is no such directory."""
    return sorted(_walk(Path(directory)))


def _walk(directory: Path) -> Iterator[SetAside]:
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            if MARK in name:
                path = os.path.join(folder, name)
                try:
                    yield SetAside(path, os.stat(path).st_size)
                except OSError:
                    continue  # removed meanwhile


def _free_name(path: str) -> str:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target, number = f"{path}{MARK}{stamp}", 1
    while os.path.lexists(target):
        number += 1
        target = f"{path}{MARK}{stamp}-{number}"
    return target
