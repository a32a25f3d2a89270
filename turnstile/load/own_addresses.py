"""The addresses that a run connects from: its sources, or the one that the kernel chooses for a broker."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from turnstile.load.raw_sockets import Address
from turnstile.load.sources import SourceAddresses

NAMED = 16
"""Ranges and addresses that a sentence names."""


class OwnAddresses:
    """`address in own`; an address as the cluster spells it."""

    def __init__(
        self, sources: Iterable[SourceAddresses], targets: Iterable[Address], others: Iterable[str] = ()
    ) -> None:
        """`targets`: the brokers to which some connections go without a source of their own. `others`: of drivers elsewhere."""
        self._sources = tuple(sources)
        self._chosen = frozenset({*map(local_address, targets), *others})

    def __contains__(self, address: object) -> bool:
        return address in self._chosen or any(address in each for each in self._sources)

    def __str__(self) -> str:
        names = [*(each.text for each in self._sources), *sorted(self._chosen)]
        rest = len(names) - NAMED
        return ", ".join(names[:NAMED]) + (f" and {rest} others" if rest > 0 else "")


def local_address(target: Address) -> str:
    """The address that the kernel would connect from; "" where it knows no way.

    A datagram socket that is connected sends nothing, and has that address.
    """
    with socket.socket(target[0], socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(target[1])
        except OSError:  # no route: connecting fails, too
            return ""
        return str(sock.getsockname()[0])
