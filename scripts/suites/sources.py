"""Packages with the source of a suite, fetched by their package managers and checked by a hash."""

from __future__ import annotations

import base64
import hashlib
import sys
import tarfile
from pathlib import Path

from scripts.peers import fetching, jars
from scripts.suites.suite import BUILD, CannotRun, built


def kafka_jars() -> str:
    """The class path of Kafka and its tools. Raises CannotRun."""
    try:
        return jars.classpath()
    except fetching.Missing as missing:
        raise CannotRun(str(missing)) from None


def npm_package(name: str, version: str, sha512: str) -> Path:
    """The unpacked folder of an npm package; `sha512` in base64, as npm tells its integrity. Raises CannotRun."""
    folder = BUILD / "npm" / f"{name.replace('/', '-').strip('@')}-{version}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        packed = built(["npm", "pack", "--silent", f"{name}@{version}"], folder.parent).strip().splitlines()[-1]
        _unpack(folder.parent / packed, "sha512", base64.b64decode(sha512), folder)
    return folder / "package"


def pypi_sdist(name: str, version: str, sha256: str) -> Path:
    """The unpacked folder of a source distribution on PyPI; `sha256` in hex. Raises CannotRun."""
    folder = BUILD / "pypi" / f"{name}-{version}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        options = ("--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation")
        built([sys.executable, "-m", "pip", "download", *options, f"{name}=={version}"], folder.parent)
        packed = next(folder.parent.glob(f"{name.replace('-', '_')}-{version}.tar.gz"))
        _unpack(packed, "sha256", bytes.fromhex(sha256), folder)
    return next(each for each in folder.iterdir() if each.is_dir())


def _unpack(packed: Path, algorithm: str, expected: bytes, folder: Path) -> None:
    found = hashlib.new(algorithm, packed.read_bytes()).digest()
    if found != expected:
        raise CannotRun(f"{packed.name} differs from the package that is pinned: its {algorithm} is {found.hex()}")
    part = folder.with_suffix(".part")
    with tarfile.open(packed) as archive:
        archive.extractall(part, filter="data")
    part.rename(folder)
    packed.unlink()
