"""Python programs in environments of their own under build/peers, with the versions and hashes of a requirements.txt."""

from __future__ import annotations

import fcntl
import shutil
import sys

from scripts.peers.fetching import fetch
from scripts.peers.jars import BUILD, HERE


def python(name: str) -> str:
    """The Python of the environment of scripts/peers/<name>/requirements.txt, which is made once. Raises Missing."""
    wanted = (HERE / name / "requirements.txt").read_text()
    home = BUILD / name
    stamp, command = home / "made-of.txt", str(home / "bin" / "python")
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may want it at once
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(home, ignore_errors=True)
            why = f"{name} can't be installed: "
            fetch([sys.executable, "-m", "venv", home], prefix=why)
            requirements = HERE / name / "requirements.txt"
            fetch([command, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", requirements], prefix=why)
            stamp.write_text(wanted)
    return command
