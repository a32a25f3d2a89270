"""Binds what a cluster listens on, before any process is forked, so that a restarted process finds its sockets open."""

import errno
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from shards.config.cluster_plan import COORDINATOR_MEMBER, ListenerEndpoint, ListenerSpec
from shards.errors import CannotStart


class BoundListeners(NamedTuple):
    """The endpoints of all brokers, and by (broker, shard) its socket of each."""

    endpoints: list[ListenerEndpoint]
    sockets: dict[tuple[int, int], list[tuple[ListenerEndpoint, socket.socket]]]


def bind_listeners(
    specs: Sequence[ListenerSpec],
    brokers: int,
    shards: int,
    *,
    backlog: int,
    ports: Mapping[str, int] | None = None,
) -> BoundListeners:
    """One socket per shard for each listener of each broker, sharing its port (SO_REUSEPORT).

    `backlog`: connections the kernel keeps on each before they are accepted. `ports`: the port of each listener whose
    spec names none, by "BROKER/LISTENER". Where it is missing here, too, the kernel chooses.

    Raises CannotStart with one sentence when a port is taken or an address is not of this machine.
    """
    endpoints: list[ListenerEndpoint] = []
    sockets: dict[tuple[int, int], list[tuple[ListenerEndpoint, socket.socket]]] = {
        (broker, shard): [] for broker in range(brokers) for shard in range(shards)
    }
    for broker in range(brokers):
        for spec in specs:
            port = spec.port + broker if spec.port else (ports or {}).get(f"{broker}/{spec.name}", 0)
            what = f"listener {spec.name} of broker {broker}"
            if port:
                bind_tcp(spec.host, port, what, shared=False).close()  # SO_REUSEPORT alone would join a stranger's port
            with bind_tcp(spec.host, port, what, shared=True) as chosen:
                port = chosen.getsockname()[1]
                endpoint = ListenerEndpoint(broker, spec.name, spec.host, port, spec.options)
                endpoints.append(endpoint)
                for shard in range(shards):  # bound by the port's number, else close() below would release the port
                    sock = bind_tcp(spec.host, port, what, shared=True)
                    sock.listen(backlog)
                    sockets[broker, shard].append((endpoint, sock))
    return BoundListeners(endpoints, sockets)


class ListeningSockets:
    """The listening sockets of one process. While the process is not running they can be closed: the kernel then gives
    connections to the other sockets of their port."""

    def __init__(self, sockets: Sequence[socket.socket], size: int) -> None:
        """`size`: connections the kernel keeps on each before they are accepted."""
        self._sockets = sockets
        self._size = size
        self._are_closed = False

    def close(self) -> None:
        """Resets the connections that wait, and takes no more until open()."""
        if self._are_closed:
            return
        for sock in self._sockets:
            sock.shutdown(socket.SHUT_RDWR)  # the port stays bound
        self._are_closed = True

    def open(self) -> None:
        """Listens again, if it was closed."""
        if self._are_closed:
            for sock in self._sockets:
                sock.listen(self._size)
            self._are_closed = False


def bind_tcp(host: str, port: int, what: str, *, shared: bool, option: str = "--port or --listener") -> socket.socket:
    """A bound TCP socket, not yet listening. Raises CannotStart naming `what`, the address, the reason, and the command
    line's `option` for another port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == socket.AF_INET6 and host != "::":
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        sock.bind((host, port))
    except (OSError, OverflowError) as fault:
        sock.close()
        raise CannotStart(f"cannot listen on {host}:{port} for {what}: {_why(fault, option)}") from None
    return sock


def _why(fault: OSError | OverflowError, option: str) -> str:
    match getattr(fault, "errno", None):
        case errno.EADDRINUSE:
            return f"the port is in use; choose another with {option}, or stop what listens there"
        case errno.EADDRNOTAVAIL:
            return "this machine has no such address"
        case errno.EACCES:
            return "ports below 1024 need more rights than this user has"
        case None:
            return "a port is a number from 0 to 65535"
        case _:
            return str(getattr(fault, "strerror", fault)) or str(fault)


class MeshAddresses:
    """Unix sockets of the mesh, reached through an open directory so that no data directory's path is too long for them."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._path = path

    def address(self, member: tuple[int, int]) -> str:
        """The address to dial for a member, valid in every process that inherited this object."""
        name = "coordinator.sock" if member == COORDINATOR_MEMBER else f"b{member[0]}s{member[1]}.sock"
        return f"/proc/self/fd/{self._fd}/{name}"

    def bind(self, members: Sequence[tuple[int, int]]) -> dict[tuple[int, int], socket.socket]:
        sockets = {}
        for member in members:
            address = self.address(member)
            (self._path / address.rsplit("/", 1)[1]).unlink(missing_ok=True)
            sock = sockets[member] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.bind(address)
            sock.listen(512)
        return sockets
