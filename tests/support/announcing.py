"""Headers of the PROXY protocol as other people's proxies make them: what HAProxy, NGINX and load balancers of clouds send."""

from __future__ import annotations

import socket
import struct

from crc32c import crc32c

SIGNATURE = bytes.fromhex("0d0a0d0a000d0a515549540a")
LOCAL, PROXY = 0x20, 0x21
CRC32C = 3


def v1(source: str, port: int, destination: str = "192.0.2.1", destination_port: int = 9092) -> bytes:
    family = "TCP6" if ":" in source else "TCP4"
    return f"PROXY {family} {source} {destination} {port} {destination_port}\r\n".encode()


def tlv(kind: int, value: bytes) -> bytes:
    return struct.pack(">BH", kind, len(value)) + value


def v2(
    source: str = "10.1.2.3",
    port: int = 4711,
    destination: str = "192.0.2.1",
    destination_port: int = 9092,
    tlvs: bytes = b"",
    *,
    crc: bool = False,
) -> bytes:
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    ends = socket.inet_pton(family, source) + socket.inet_pton(family, destination)
    ends += struct.pack(">HH", port, destination_port)
    return binary(PROXY, 0x21 if ":" in source else 0x11, ends, tlvs, crc=crc)


def binary(command: int, family: int, block: bytes, tlvs: bytes = b"", *, crc: bool = False) -> bytes:
    """Any header of version 2; `crc`: with a checksum as its last TLV."""
    rest = block + tlvs + (tlv(CRC32C, bytes(4)) if crc else b"")
    header = SIGNATURE + struct.pack(">BBH", command, family, len(rest)) + rest
    return header[:-4] + struct.pack(">I", crc32c(header)) if crc else header
