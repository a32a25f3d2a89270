"""A message to another process and back, each side asleep until its epoll wakes it: the floor of an idle borrow.

`python -m scripts.bench.hop FD` is the other process.
"""

from __future__ import annotations

import select
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def hop_us(count: int) -> float:
    """The median of `count` messages of a borrow's size to another process and back, each side asleep until its epoll wakes
    it: the floor of an idle borrow."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    message, took_us = b"x" * 64, []
    other = subprocess.Popen(
        [sys.executable, "-m", "scripts.bench.hop", str(there.fileno())], cwd=ROOT, pass_fds=[there.fileno()]
    )
    there.close()
    with select.epoll() as epoll, here:
        epoll.register(here, select.EPOLLIN)
        for _ in range(count):
            began = time.perf_counter()
            here.send(message)
            epoll.poll()
            here.recv(len(message))
            took_us.append((time.perf_counter() - began) * 1e6)
    other.wait(timeout=20)
    return statistics.median(took_us)


def echo(fd: int) -> None:
    """Sends back what comes, until its end."""
    with socket.socket(fileno=fd) as sock, select.epoll() as epoll:
        epoll.register(sock, select.EPOLLIN)
        while True:
            epoll.poll()
            message = sock.recv(1024)
            if not message:
                return
            sock.send(message)


if __name__ == "__main__":
    echo(int(sys.argv[1]))
