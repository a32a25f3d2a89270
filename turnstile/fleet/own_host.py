"""The addresses of this host that lie in given networks: from the kernel's own tables, so that no range is too large to ask."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from turnstile.load.sources import Sources

ROUTES = Path("/proc/net/fib_trie")
ADDRESSES_6 = Path("/proc/net/if_inet6")
MOST = 1024
"""Addresses that one host brings along: far more than a load needs to look like a crowd."""

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def usable(allowed: Sources) -> list[str]:
    """The first MOST addresses of `allowed` that this host can connect from."""
    found = [
        both
        for each in allowed.networks
        for local in _local(allowed.version)
        if (both := _overlap(each, local)) is not None
    ]
    whole = ipaddress.collapse_addresses(found)  # type: ignore[type-var]
    return list(islice(map(str, chain.from_iterable(whole)), MOST))


def _overlap(one: _Network, other: _Network) -> _Network | None:
    if not one.overlaps(other):
        return None
    return one if one.prefixlen >= other.prefixlen else other


def _local(version: int) -> list[_Network]:
    try:
        if version == 4:
            return list(local_4(ROUTES.read_text()))
        return list(local_6(ADDRESSES_6.read_text()))
    except OSError:
        return []


def local_4(routes: str) -> Iterator[_Network]:
    """The networks that the kernel delivers to this host, as /proc/net/fib_trie has them."""
    address = ""
    for line in routes.splitlines():
        words = line.split()
        if words[:1] == ["|--"]:
            address = words[1]
        elif (local := re.fullmatch(r"\s*/(\d+) host LOCAL", line)) is not None:
            yield ipaddress.ip_network(f"{address}/{local[1]}")


def local_6(table: str) -> Iterator[_Network]:
    """The addresses of this host's interfaces, as /proc/net/if_inet6 has them."""
    for line in table.splitlines():
        digits = line.split()[0]
        yield ipaddress.ip_network(int(digits, 16).to_bytes(16, "big"))
