"""A well-behaved client beside an attack: ApiVersions on eight connections in turn, so on every shard; how long it waits.

In each round it also asks a process that does nothing else, which tells what the machine itself adds to a wait.
"""

from __future__ import annotations

import multiprocessing
import socket
import time
from multiprocessing.connection import Connection

from scripts.bench import machine
from scripts.bench.attacks.attack import Waits
from scripts.bench.attacks.requests import connect, read_answer

CONNECTIONS = 8
EVERY_MS = 5
_PATIENCE_S = 120.0


class Bystander:
    """The client, in a process of its own, from when each of its connections was answered once."""

    def __init__(self, port: int) -> None:
        self._pipe, child = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=_run, args=(port, child))
        self._process.start()
        self._pipe.recv()

    def end(self) -> Waits:
        """Ends the client, which tells how long it waited."""
        self._pipe.send(None)
        waits: Waits = self._pipe.recv()
        self._process.join()
        return waits


def _run(port: int, pipe: Connection) -> None:
    idle, theirs = socket.socketpair()
    echo = multiprocessing.Process(target=_echo, args=(theirs,), daemon=True)
    echo.start()
    asking = [_Asking(port) for _ in range(CONNECTIONS)]
    for each in asking:
        each.ask()
    pipe.send(None)
    waited_ms: list[float] = []
    idle_ms: list[float] = []
    while not pipe.poll(EVERY_MS / 1000):
        for each in asking:
            waited_ms += _as_asked_steadily(each.ask())
        began = time.perf_counter()
        idle.sendall(b"?")
        idle.recv(1)
        idle_ms.append(machine.since(began) * 1000)
    waited_ms.sort()
    lost = sum(each.lost for each in asking)
    pipe.send(Waits(waited_ms[int(len(waited_ms) * 0.99)], waited_ms[-1], lost, max(idle_ms)))
    echo.terminate()


def _as_asked_steadily(waited_ms: float) -> list[float]:
    """A client that asks every EVERY_MS would have asked again and again during a long wait: these waits count, too."""
    waits = [waited_ms]
    while (waited_ms := waited_ms - EVERY_MS) > 0:
        waits.append(waited_ms)
    return waits


class _Asking:
    """One connection, opened again when the broker loses it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._sock = connect(port, timeout_s=_PATIENCE_S)
        self.lost = 0

    def ask(self) -> float:
        """Milliseconds until ApiVersions was answered, connecting again included."""
        began = time.perf_counter()
        while not self._answered():
            self.lost += 1
            self._sock.close()
            self._sock = connect(self._port, timeout_s=_PATIENCE_S)
        return machine.since(began) * 1000

    def _answered(self) -> bool:
        try:
            self._sock.sendall(machine.API_VERSIONS)
            read_answer(self._sock)
        except OSError:
            return False
        return True


def _echo(sock: socket.socket) -> None:
    while data := sock.recv(1):
        sock.sendall(data)
