"""A thousand clients of the admin API that say nothing, or slowly, or don't read; each comes back as soon as it is closed."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from scripts.bench import machine
from scripts.bench.attacks.attack import Attack, Finding
from scripts.bench.machine import Server
from turnstile.admin_client import AdminClient, AdminError

CLIENTS = 1_000
SECONDS = 8.0
MOST_MS = 2_000
_EVERY_S = 0.05
_BODY = b"PUT /v1/quotas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n" + b" " * 100_000
_UNREAD = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20
# Said at once, and a byte at a time.
KINDS = ((b"", b""), (b"GET /v1/shards HTTP/1.1\r\nX: ", b"x"), (_BODY, b" "), (_UNREAD, b""))


class _Clients:
    """All of them, each of the next kind, in one thread."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.opened = 0
        self._address = address
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> _Clients:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        socks: list[socket.socket | None] = [None] * CLIENTS
        while not self._ends.wait(_EVERY_S):
            for place, sock in enumerate(socks):
                at_once, later = KINDS[place % len(KINDS)]
                if sock is None or not _goes_on(sock, later):
                    socks[place] = self._open(at_once)
        for sock in filter(None, socks):
            sock.close()

    def _open(self, at_once: bytes) -> socket.socket | None:
        sock = socket.socket()
        sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            sock.connect(self._address)
        with contextlib.suppress(OSError):
            sock.send(at_once)
        self.opened += 1
        return sock


def _goes_on(sock: socket.socket, later: bytes) -> bool:
    """Says a little more; False when the other side has closed the connection, which is then closed here, too."""
    try:
        sock.send(later)
        if later or sock.recv(1, socket.MSG_PEEK):
            return True
    except BlockingIOError:
        return True
    except OSError:
        pass
    sock.close()
    return False


def run(server: Server) -> Finding:
    admin = machine.admin_of(server)
    url = urlsplit(admin.url)
    assert url.hostname and url.port
    waits: list[float] = []
    failed = 0
    with _Clients((url.hostname, url.port)) as clients:
        for _ in _until(time.monotonic() + SECONDS):
            began = time.monotonic()
            try:
                with AdminClient(admin.url) as one:  # a connection of its own each time
                    one.get("/v1/shards")
                    one.put("/v1/quotas", {"alter": []})
            except AdminError:
                failed += 1
            waits.append((time.monotonic() - began) * 1000)
    text = f"{clients.opened:,} opened; {len(waits) - failed} of {len(waits)} served, {max(waits):.0f} ms at worst"
    return Finding(text, not failed and max(waits) <= MOST_MS)


def _until(ends_s: float) -> Iterator[None]:
    while time.monotonic() < ends_s:
        yield
        time.sleep(_EVERY_S)


ATTACK = Attack("1,000 admin clients, silent, slow or deaf", run)
