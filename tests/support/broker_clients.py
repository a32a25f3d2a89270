"""Connections to all brokers of a cluster, for tests of limits that these have together."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import ExitStack

from harness import Cluster, connect, until
from user_logins import ANY_IP, open_here


class BrokerClients:
    """Connections that are made to all brokers in turn, and stay open where they are let in."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.addresses = next(iter(cluster.listeners.values()))
        self.open: list[socket.socket] = []

    def more(self, count: int, broker: int | None = None, listener: str | None = None) -> int:
        """How many of `count` that connect at once are let in, on the first listener or on another."""
        decided, admitted = self._cluster.decided(), self._admitted()
        addresses = self.addresses if listener is None else self._cluster.listeners[listener]
        for n in range(count):
            to = addresses[n % len(addresses) if broker is None else broker]
            self.open.append(connect(to, ANY_IP[n % len(ANY_IP)]))
        until(lambda: self._cluster.decided() == decided + count, what="each admitted or refused")
        return self._admitted() - admitted

    def close(self) -> None:
        while self.open:
            self.open.pop().close()
        until(lambda: open_here(self._cluster) == 0, what="all closed")

    def _admitted(self) -> int:
        return int(self._cluster.metric("turnstile_connections_admitted_total"))


class Storm:
    """Threads that connect to all brokers without end, and keep what is let in for a while."""

    def __init__(self, cluster: Cluster, threads: int = 4) -> None:
        self._ends = threading.Event()
        addresses = next(iter(cluster.listeners.values()))
        self._threads = [threading.Thread(target=self._run, args=(addresses, n)) for n in range(threads)]

    def __enter__(self) -> Storm:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _run(self, addresses: list[tuple[str, int]], number: int) -> None:
        with ExitStack() as at_end:
            kept: list[socket.socket] = []
            at_end.callback(lambda: [each.close() for each in kept])
            n = 0
            while not self._ends.is_set():
                n += 1
                try:
                    sock = connect(addresses[n % len(addresses)], ANY_IP[number])
                except OSError:
                    continue  # a shard is down
                kept.append(sock)
                if len(kept) >= 12:
                    poll = select.poll()
                    for each in kept:
                        poll.register(each, select.POLLIN | select.POLLHUP)
                    ended = {fd for fd, _ in poll.poll(0)}
                    gone = [each for each in kept if each.fileno() in ended] or kept[:1]
                    kept = [each for each in kept if each not in gone]
                    for each in gone:
                        each.close()
