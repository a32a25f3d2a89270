"""kcat, from Debian's packages with its libraries: installed, or unpacked into build/peers."""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple

from scripts.peers import debian

LIBRARIES = ("librdkafka1", "libyajl2")


class Found(NamedTuple):
    """The path of kcat, and the environment that it needs."""

    path: str
    env: dict[str, str]


def kcat() -> Found:
    """Raises scripts.peers.fetching.Missing."""
    if (installed := shutil.which("kcat")) is not None:
        return Found(installed, {})
    path = debian.program("kcat", "kcat")
    return Found(
        path, {"LD_LIBRARY_PATH": os.pathsep.join(folder for name in LIBRARIES for folder in debian.libraries(name))}
    )
