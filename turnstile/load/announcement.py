"""A client's address in a header of the PROXY protocol, as a proxy in front of the broker says it. Pure.

Source: HAProxy's doc/proxy-protocol.txt, 2.1 and 2.2.
"""

from __future__ import annotations

import ipaddress
import struct

V1, V2 = "v1", "v2"
_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_PROXY, _TCP4, _TCP6 = 0x21, 0x11, 0x21
_FIRST_PORT = 1024

_IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def announcement(version: str, source: str, port: int, destination: tuple[str, int]) -> bytes:
    """The header for a client at `source` that reached `destination`. An IPv4 address beside an IPv6 one is told as mapped."""
    ends = [ipaddress.ip_address(source), ipaddress.ip_address(destination[0].partition("%")[0])]
    if len({end.version for end in ends}) > 1:
        ends = [_as_ipv6(end) for end in ends]
    if version == V1:
        return f"PROXY TCP{ends[0].version} {ends[0]} {ends[1]} {port} {destination[1]}\r\n".encode()
    block = ends[0].packed + ends[1].packed + struct.pack(">HH", port, destination[1])
    family = _TCP4 if ends[0].version == 4 else _TCP6
    return _SIGNATURE + struct.pack(">BBH", _PROXY, family, len(block)) + block


def port_of(client: int) -> int:
    """The port that a client is announced with: one that no listener is expected at."""
    return _FIRST_PORT + client % (65536 - _FIRST_PORT)


def _as_ipv6(address: _IpAddress) -> _IpAddress:
    return ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + address.packed) if address.version == 4 else address


def announced(
    version: str, source: str | None, client: int, own: tuple[str, int], destination: tuple[str, int]
) -> bytes:
    """The header of a client at `source`; None: of one at the `own` address of the socket."""
    host, port = own if source is None else (source, port_of(client))
    return announcement(version, host, port, destination)
