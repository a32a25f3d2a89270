"""The addresses that a run connects from: its sources, or the one that the kernel chooses for a broker."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_network

from turnstile.load.raw_sockets import Address
from turnstile.load.sources import SourceAddresses

IPV6_BITS = 128
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

    def counted_by(self, ipv6_prefix: int) -> OwnAddresses:
        """The addresses as a cluster with this turnstile.ipv6.prefix.length counts them: of a smaller network, the first address of
        the network that counts as one address."""
        if ipv6_prefix >= IPV6_BITS:
            return self
        first = (str(network[0]) for each in self._sources for network in each.networks)
        own = [ip for ip in (*first, *self._chosen) if ":" in ip]
        counted = {str(ip_network(f"{ip}/{ipv6_prefix}", strict=False).network_address) for ip in own}
        return OwnAddresses(self._sources, (), self._chosen | counted)

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
