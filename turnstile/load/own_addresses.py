"""The addresses that a run connects from: its sources, or the one that the kernel chooses for a broker."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from turnstile.load.raw_sockets import Address
from turnstile.load.sources import Sources


class OwnAddresses:
    """`address in own`; an address as the cluster spells it."""

    def __init__(self, sources: Iterable[Sources], targets: Iterable[Address]) -> None:
        """`targets`: the brokers to which some connections go without a source of their own."""
        self._sources = tuple(sources)
        self._chosen = frozenset(_local_address(target) for target in targets)

    def __contains__(self, address: object) -> bool:
        return address in self._chosen or any(address in each for each in self._sources)

    def __str__(self) -> str:
        return ", ".join([*(each.text for each in self._sources), *sorted(self._chosen)])


def _local_address(target: Address) -> str:
    """A datagram socket that is connected sends nothing, and has the address that the kernel would connect from."""
    with socket.socket(target[0], socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(target[1])
        except OSError:  # no route: connecting fails, too
            return ""
        return str(sock.getsockname()[0])
