"""Python programs in environments of their own under build/peers, with the versions and hashes of a requirements.txt."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys

from scripts.peers.jars import BUILD, HERE, Missing

TIMEOUT_S = 900


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
            _run(name, [sys.executable, "-m", "venv", str(home)])
            requirements = str(HERE / name / "requirements.txt")
            _run(name, [command, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", requirements])
            stamp.write_text(wanted)
    return command


def _run(name: str, command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Missing(f"{name} can't be installed: pip does not end within {TIMEOUT_S} s") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise Missing(f"{name} can't be installed: {said[-1]}")
