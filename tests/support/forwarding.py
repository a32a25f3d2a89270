"""A port that is mapped to another one, as Docker maps them: what a broker knows nothing of."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress


@contextmanager
def forwarded(target: tuple[str, int], greeting: Callable[[socket.socket], bytes] = lambda near: b"") -> Iterator[int]:
    """A port of 127.0.0.1 whose connections go on to `target`, each with the `greeting` of its client's socket before it."""
    woken, wake = socket.socketpair()
    with woken, wake, socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_forward, args=(listening, target, greeting, woken))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            wake.close()
            thread.join()


def _forward(
    listening: socket.socket,
    target: tuple[str, int],
    greeting: Callable[[socket.socket], bytes],
    woken: socket.socket,
) -> None:
    """Until `woken` is at its end."""
    sinks: dict[socket.socket, socket.socket] = {}
    with ExitStack() as opened:
        while True:
            ready, _, _ = select.select([listening, woken, *sinks], [], [])
            if woken in ready:
                return
            if listening in ready:
                near = opened.enter_context(listening.accept()[0])
                far = opened.enter_context(socket.create_connection(target))
                far.sendall(greeting(near))
                sinks |= {near: far, far: near}
            for source in sinks.keys() & set(ready):
                with suppress(OSError):
                    if data := source.recv(1 << 16):
                        sinks[source].sendall(data)
                        continue
                    sinks[source].shutdown(socket.SHUT_WR)
                del sinks[source]
