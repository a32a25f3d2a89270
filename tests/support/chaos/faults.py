"""What may happen to processes of a cluster from outside, and can be undone: stops, lost links, a disk without space.

Nothing here needs a hook in the processes: a fault is what an operating system can do to any process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

_PIDFD_GETFD = 438  # the same number on every architecture of Linux
_CONNECTED = "03"  # the state of a socket in /proc/net/unix
_libc = ctypes.CDLL(None, use_errno=True)


def kill(pid: int) -> bool:
    """`kill -9`; False when the process has ended before."""
    return _signal(pid, signal.SIGKILL)


def stop(pid: int) -> bool:
    """The process does nothing until `resume`, and its sockets stay open."""
    return _signal(pid, signal.SIGSTOP)


def resume(pid: int) -> bool:
    return _signal(pid, signal.SIGCONT)


def links(pid: int) -> list[int]:
    """Descriptors of a process that are connections it accepted on a named unix socket: links of the mesh."""
    inodes = set()
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[5] == _CONNECTED:
            inodes.add(f"socket:[{fields[6]}]")
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(entry) in inodes:
                    found.append(int(entry.name))
    return sorted(found)


def cut(pid: int, descriptor: int) -> bool:
    """Ends both directions of a socket of another process, as if the kernel had lost it; False when it is gone."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        taken = _libc.syscall(_PIDFD_GETFD, process, descriptor, 0)
    finally:
        os.close(process)
    if taken < 0:
        return False
    with socket.socket(fileno=taken) as sock, contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
        return True
    return False


@contextlib.contextmanager
def without_space(pids: Iterable[int]) -> Iterator[None]:
    """No file of these processes can grow, as on a full disk; their children inherit it, so those are given space again, too."""
    limited = [pid for pid in pids if _limit_files(pid, 0)]
    try:
        yield
    finally:
        for pid in limited:
            _limit_files(pid, resource.RLIM_INFINITY)


def _limit_files(pid: int, size: int) -> bool:
    try:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    except ProcessLookupError:
        return False
    return True


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
