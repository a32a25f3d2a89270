"""Names of the clusters that a user runs on this machine: given by `turnstile up --name`, found by every other command.

A name is a file in a folder of the user's own. It holds the pid of the cluster's supervisor, and a line of JSON about it.

a_name_is_of_one_cluster  A name is held, as the data directory is, for as long as any process of its cluster lives.
only_running_clusters_are_found  What a dead cluster has left in its file is never told, and is overwritten by the next one.
"""

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from broker.process.data_dir import hold_file
from shards.errors import CannotStart

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_MOST_BYTES = 1 << 16


class NamedCluster(NamedTuple):
    """A running cluster. `admin`: the URL of its admin API; `listeners`: HOST:PORT of each, the first broker's first."""

    name: str
    pid: int
    admin: str
    listeners: list[str]
    data_dir: str


def is_name(text: str) -> bool:
    """True if a cluster can be called so."""
    return re.fullmatch(NAME, text) is not None


class HeldName:
    """A name that this process and its children hold."""

    def __init__(self, name: str) -> None:
        """Raises CannotStart when a running cluster has it, or files can't be made."""
        self._name = name
        try:
            path = _folder(make=True) / name
        except OSError as fault:
            raise CannotStart(f"the name {name} can't be kept: {fault.strerror} ({fault.filename})") from None
        self._descriptor = hold_file(
            path,
            lambda pid: (
                f"a cluster named {name} is running (pid {pid}); end it with 'turnstile down --name {name}', or "
                "choose another --name"
            ),
        )

    def tell(self, admin: str, listeners: Sequence[str], data_dir: Path) -> None:
        """Publishes the cluster, so that commands find it by its name. Raises OSError."""
        about = {"pid": os.getpid(), "admin": admin, "listeners": list(listeners), "data_dir": str(data_dir)}
        self._write(f"{os.getpid()}\n{json.dumps(about)}\n")

    def give_up(self) -> None:
        """Withdraws the cluster: commands find it no more."""
        self._write("")

    def _write(self, text: str) -> None:
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)


def running() -> list[NamedCluster]:
    """The clusters that have a name, in its order."""
    try:
        paths = sorted(_folder(make=False).iterdir())
    except OSError:
        return []
    found = (_read(path) for path in paths if is_name(path.name))
    return [each for each in found if each is not None]


def find(name: str) -> NamedCluster | None:
    """The running cluster of this name."""
    return next((each for each in running() if each.name == name), None)


def _read(path: Path) -> NamedCluster | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:  # held: its cluster lives
        _, _, text = os.pread(descriptor, _MOST_BYTES, 0).decode(errors="replace").partition("\n")
        return _cluster(path.name, text)
    finally:
        os.close(descriptor)
    return None


def _cluster(name: str, text: str) -> NamedCluster | None:
    """The cluster that a file describes; None for one that starts or ends just now."""
    try:
        return NamedCluster(name=name, **json.loads(text))
    except (ValueError, TypeError):
        return None


def _folder(*, make: bool) -> Path:
    """The user's own: of the session where the system has one, else below the temporary files. Raises OSError."""
    uid = os.getuid()
    sessions = (os.environ.get("XDG_RUNTIME_DIR"), f"/run/user/{uid}")
    home = next((Path(each) for each in sessions if each and os.access(each, os.W_OK)), None)
    folder = home / "turnstile" if home is not None else Path(tempfile.gettempdir()) / f"turnstile-{uid}"
    if make:
        folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != uid or found.st_mode & 0o022:
        raise PermissionError(0, "other users can write to it", str(folder))
    return folder
