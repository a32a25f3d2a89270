"""The HTTP server of the admin API: accepts connections, bounds them, and outlives every shortage.

connections_are_bounded  At most MOST_CONNECTIONS are open, and no more than a quarter of the descriptors that this
    process may have. One more takes the place of another (http_places.py), so that the API answers beside any number of
    idle and slow clients.
shortage_ends_no_process  A shortage of descriptors or memory ends neither the server nor its process: connections are
    closed, and what waits in the backlog is accepted when that has helped.

HTTP's libraries for trio are h11, which has no I/O, and Hypercorn, which keeps a connection that its client has closed
until a timeout (0.18), and which cannot be told to leave HTTP/2 out. So the I/O is here, and the protocol is h11's.
"""

from __future__ import annotations

import errno
import resource
import socket

import trio
from starlette.types import ASGIApp

from broker.admin.http_connection import HttpConnection
from broker.admin.http_places import Places

MOST_CONNECTIONS = 256
MOST_HELD_BYTES = 32 << 20
_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_RETRY_S = 0.05


async def serve_http(app: ASGIApp, listening: socket.socket) -> None:
    """Serves until cancelled; `listening` is closed then."""
    places = Places(_most_connections(), MOST_HELD_BYTES)
    async with trio.open_nursery() as nursery:
        with trio.socket.from_stdlib_socket(listening) as accepting:
            while True:
                stream = await _accept(accepting, places)
                if stream is not None:
                    connection = HttpConnection(app, stream, places)
                    places.add(connection)
                    nursery.start_soon(connection.run)


def _most_connections() -> int:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(MOST_CONNECTIONS, descriptors // 4))


async def _accept(listening: trio.socket.SocketType, places: Places) -> trio.SocketStream | None:
    """The next connection, once there is room for it; None when it has to be tried again."""
    # Waits first: accept(2) takes a descriptor before it looks for a connection, so without one it fails even when no client
    # connects.
    await trio.lowlevel.wait_readable(listening)
    if places.is_full and not places.make_room():
        await trio.sleep(_RETRY_S)  # a request of each is being worked on, and that ends
        return None
    try:
        sock, _ = await listening.accept()
    except OSError as fault:
        if fault.errno == errno.EBADF:
            raise
        if fault.errno in _SHORT:
            places.make_room()
            await trio.sleep(_RETRY_S)
        return None  # also where a connection was gone again, or for another fault of the network (accept(2))
    return trio.SocketStream(sock)
