"""The data directory: made, held for one cluster at a time, and readable by its owner alone."""

from __future__ import annotations

import fcntl
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from shards.errors import CannotStart
from shards.supervisor.progress import is_alive
from shards.uuids import random_uuid, uuid_text

ENDING_S = 5.0
"""The longest wait for the processes of a supervisor that was killed."""
_AGAIN_S = 0.05


def make_data_dir(path: Path | None) -> Path:
    """Makes the folder, or a temporary one. It holds logs, SCRAM keys and the journal, so what is made in it from now on
    by this process and its children is for its owner alone. Raises CannotStart."""
    os.umask(0o077)
    if path is None:
        return Path(tempfile.mkdtemp(prefix="turnstile-"))
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as fault:
        raise CannotStart(f"cannot use {path} as the data directory: {fault.strerror}") from None
    return path.absolute()


def hold(data_dir: Path) -> int:
    """Holds the data directory, as `hold_file` does. Raises CannotStart."""
    return hold_file(
        data_dir / "lock",
        lambda pid: (
            f"{data_dir} is in use by a running cluster (pid {pid}); end it with 'turnstile down', or give another "
            "--data-dir"
        ),
    )


def holder(data_dir: Path) -> int | None:
    """The pid of the supervisor that holds the data directory; None where none does, or none that this user can see."""
    try:
        descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        pid = _pid_in(descriptor)
        return int(pid) if not _locked(descriptor) and pid.isdecimal() else None
    finally:
        os.close(descriptor)


def hold_file(path: Path, in_use: Callable[[str], str]) -> int:
    """Holds a file for as long as this process lives, its children included; its first line is the pid. Children of a supervisor
    that was killed are ending, and are waited for. Raises CannotStart with what `in_use` says of the other's pid."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    until_s = time.monotonic() + ENDING_S
    while not _locked(descriptor):
        pid = _pid_in(descriptor)
        # Without a pid another process has the lock for a moment only, to look at the file.
        has_ended = not pid or (pid.isdecimal() and not is_alive(int(pid)))
        if not has_ended or time.monotonic() > until_s:
            os.close(descriptor)
            raise CannotStart(in_use(pid or "not known"))
        time.sleep(_AGAIN_S)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _pid_in(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode("ascii", "replace").partition("\n")[0].strip()


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def cluster_id(data_dir: Path) -> str:
    """The cluster id in Metadata: made once for a data directory, 22 characters of base64 as Kafka's. Raises CannotStart."""
    path = data_dir / "cluster-id"
    found = _kept(path, lambda: uuid_text(random_uuid()))
    if not (found.isascii() and found.isprintable()) or not found or " " in found:
        raise CannotStart(
            f"{path} should hold a cluster id; was it edited? Without the file, the cluster gets a new one"
        )
    return found


def scram_secret(data_dir: Path) -> bytes:
    """The key of unknown users' salts (broker/serve/sasl.py): made once for a data directory, shown to no client. Raises
    CannotStart."""
    path = data_dir / "scram-secret"
    try:
        found = bytes.fromhex(_kept(path, lambda: secrets.token_hex(32)))
    except ValueError:
        found = b""
    if not found:
        raise CannotStart(f"{path} should hold hexadecimal digits; was it edited? Without the file, another is made")
    return found


def _kept(path: Path, make: Callable[[], str]) -> str:
    """The line of a file, which is made when it is not there."""
    if not path.exists():
        path.write_text(make() + "\n")
    return path.read_bytes().decode("ascii", "replace").strip()
