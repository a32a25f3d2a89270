"""Programs of Debian's packages without installing them: downloaded by apt-get, unpacked into build/peers."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

from scripts.peers.fetching import Missing, fetch
from scripts.peers.jars import BUILD


def program(name: str, package: str) -> str:
    """The path of a program: the installed one, else that of the package, which is fetched once. Raises Missing."""
    installed = shutil.which(name)
    return installed or str(_unpacked(package) / "usr" / "bin" / name)


def libraries(package: str) -> list[str]:
    """The folders with shared libraries of a package, which is fetched once. Raises Missing."""
    return sorted({str(path.parent) for path in (_unpacked(package) / "usr" / "lib").rglob("*.so*")})


def _unpacked(package: str) -> Path:
    folder = BUILD / package
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / f"{package}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes want it at once
        if not folder.exists():
            if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
                raise Missing(f"{package} is not installed, and there is no apt-get to fetch it with")
            part = BUILD / f"{package}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            why = f"{package} is not installed (apt-get install {package}), and "
            fetch(["apt-get", "download", "-qq", package], part, prefix=why)
            fetch(["dpkg-deb", "-x", *part.glob("*.deb"), part / "root"], part, prefix=why)
            (part / "root").rename(folder)
            shutil.rmtree(part)
    return folder
