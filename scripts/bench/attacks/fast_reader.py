"""A client that fetches 40 MB of records over and over, and reads them as fast as they come."""

from __future__ import annotations

import multiprocessing
import socket
import ssl
import time

from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import connect, fetch, fill
from scripts.bench.machine import Server

SECONDS = 5


def _read(port: int, tls: bool) -> None:
    sock: socket.socket = connect(port)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        sock = context.wrap_socket(sock)
    sock.sendall(fetch(partitions=1, wait_ms=100) * 1000)
    while sock.recv(1 << 20):
        pass


def _run(server: Server, listener: str | None) -> None:
    fill(server.port, megabytes=40)
    port = server.port if listener is None else server.ports[listener]
    readers = [multiprocessing.Process(target=_read, args=(port, listener == "TLS")) for _ in range(2)]
    for each in readers:
        each.start()
    time.sleep(SECONDS)
    for each in readers:
        each.kill()
        each.join()


ATTACKS = (
    Attack("a fast reader of 40 MB fetches", lambda server: _run(server, None), ("--topic", "t:1")),
    Attack("a fast reader of 40 MB fetches, TLS", lambda server: _run(server, "TLS"), ("--topic", "t:1"), tls=True),
)
