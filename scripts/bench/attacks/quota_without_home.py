"""Clients that produce as fast as a byte rate lets them, while its home is stopped and killed again and again.

The shards of this cluster are stopped and killed by the attack, so the waits of others are not judged.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time

from scripts.bench import machine
from scripts.bench.attacks.attack import Attack, Finding
from scripts.bench.attacks.requests import connect
from scripts.bench.machine import SHARDS, Server
from shards.ownership import home_of
from tests.support import request_bytes
from tests.support.batches import batch

CLIENT, QUOTA = "homeless", 100_000
CONNECTIONS, RECORD_BYTES = 16, 9000
STOPPED_S, BETWEEN_S, ROUNDS = 1.0, 0.7, 8
BURST_S = 10
"""The burst that Kafka's windows let pass at once, in seconds of the quota."""
MOST_WAIT_S = STOPPED_S + 0.6
"""The longest that an answer may take: its own shard's stop, or a quarter of a second for the home, on a busy machine."""
_FRAME = request_bytes.produce(CLIENT, "t", 0, batch(b"x" * RECORD_BYTES))


class _Clients:
    """Connections that send again when they may, and connect again when their shard dies."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(CONNECTIONS)]
        self.waits_s: list[float] = []
        for each in self._threads:
            each.start()

    def end(self) -> None:
        self._ends.set()
        for each in self._threads:
            each.join()

    def _run(self) -> None:
        while not self._ends.is_set():
            with contextlib.suppress(OSError), connect(self._port, timeout_s=10) as sock:
                self._produce(sock)

    def _produce(self, sock: socket.socket) -> None:
        while True:
            began_s = time.monotonic()
            sock.sendall(_FRAME)
            throttle_ms = request_bytes.produced(request_bytes.answer(sock)).throttle_ms
            self.waits_s.append(time.monotonic() - began_s)
            if self._ends.wait(throttle_ms / 1000):
                return


def prepare(server: Server) -> None:
    machine.put_quota(server, {"client-id": CLIENT}, {"producer_byte_rate": float(QUOTA)})


def run(server: Server) -> Finding:
    began_s = time.monotonic()
    clients = _Clients(server.port)
    for _ in range(ROUNDS):
        home = _home(server)
        os.kill(home, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(home, signal.SIGCONT)
        time.sleep(BETWEEN_S)
        os.kill(home, signal.SIGKILL)
        time.sleep(BETWEEN_S)
    took_s = time.monotonic() - began_s
    clients.end()
    moved = len(clients.waits_s) * len(_FRAME)
    most = QUOTA * (took_s + SHARDS * BURST_S) + CONNECTIONS * len(_FRAME)
    worst_s = max(clients.waits_s)
    text = f"{moved / 1e6:.1f} MB in {took_s:.0f} s, bound {most / 1e6:.1f} MB; an answer within {worst_s:.2f} s"
    return Finding(text, moved <= most and worst_s <= MOST_WAIT_S, judges_waits=False)


def _home(server: Server) -> int:
    """The pid of the shard that is home to the quota, once it runs."""
    shard = home_of(f"producer_byte_rate\0\0{CLIENT}", SHARDS)
    while True:
        for each in machine.admin_of(server).get("/v1/shards")["shards"]:
            if each["shard"] == shard and each["state"] == "up":
                return int(each["pid"])
        time.sleep(0.02)


ATTACK = Attack("quota with its home stopped and killed", run, ("--topic", "t:1"), prepare)
