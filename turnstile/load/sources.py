"""Source addresses: `127.1.0.0/22`, `127.1.0.7`, or several of them, comma-separated. IPv4 or IPv6, not both."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SourceAddresses(Protocol):
    """Addresses that clients connect from, in turn; any index gives one."""

    text: str

    @property
    def version(self) -> int: ...
    @property
    def networks(self) -> Sequence[Network]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> str: ...
    def __contains__(self, address: object) -> bool: ...


class Sources:
    """An indexable list of addresses that is never written out: 127.0.0.0/8 has sixteen million.

    Every address of a network counts, the first and the last as well: on loopback they are addresses like any other.
    Raises ValueError, with a sentence, for what is not an address or a network.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.networks: list[Network] = []
        for part in text.split(","):
            try:
                self.networks.append(ipaddress.ip_network(part.strip()))
            except ValueError as wrong:
                raise ValueError(f"sources: {part.strip()!r} is not an address or a network ({wrong}).") from None
        self.version = self.networks[0].version
        if any(network.version != self.version for network in self.networks):
            raise ValueError(f"sources: {text!r} mixes IPv4 and IPv6.")
        self._size = sum(network.num_addresses for network in self.networks)
        self._at = lru_cache(maxsize=65536)(self._find)

    def __reduce__(self) -> tuple[type[Sources], tuple[str]]:
        """Pickled as the text: a cache can't be sent to another process."""
        return Sources, (self.text,)

    def __len__(self) -> int:
        return min(self._size, sys.maxsize)  # an IPv6 network has more than `len` can return

    def __getitem__(self, index: int) -> str:
        return self._at(index % self._size)

    def __contains__(self, address: object) -> bool:
        found = ipaddress.ip_address(str(address))
        return any(found in network for network in self.networks)

    def _find(self, index: int) -> str:
        for network in self.networks:
            if index < network.num_addresses:
                return str(network[index])
            index -= network.num_addresses
        raise IndexError(index)

    def __repr__(self) -> str:
        return f"Sources({self.text!r})"
