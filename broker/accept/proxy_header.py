"""The header of the PROXY protocol, versions 1 and 2, as a state machine: bytes in, a header or a fault out. No I/O, no clock.

    SIGNATURE  the first bytes, until they can be of one version only; none of them is taken off before
    LINE       version 1: until its CRLF, within 107 bytes
    FIXED      version 2: the 16 bytes that say how long the rest is
    REST       version 2: addresses and TLVs
    DONE       `header` is there
    FAILED     `fault` says why not

Invariants
    pieces_make_no_difference  The same bytes give the same header or fault, in whatever pieces they come.
    bytes_behind_stay  No byte behind the header is taken: what `feed` did not take is the client's.
    headers_are_bounded  At most MOST_BYTES of a header are kept, and nothing of one that announces more.
    checksums_are_verified  A header that carries a CRC32C is a fault unless the checksum is right.

LOCAL, UNKNOWN, UNSPEC, unix sockets and datagrams have no `source`: the connection's real addresses count. Faults have HAProxy's
names. Source: HAProxy's doc/proxy-protocol.txt, sections 2.1 and 2.2; `conn_recv_proxy` in its src/connection.c.
"""

import re
import struct
from collections.abc import Mapping
from enum import Enum, StrEnum
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from types import MappingProxyType
from typing import Final, NamedTuple

from broker.runtime.crc32c import crc32c
from shards.config.advertised import Address

SIGNATURE_1: Final = b"PROXY "
SIGNATURE_2: Final = b"\r\n\r\n\0\r\nQUIT\n"
MOST_LINE_BYTES: Final = 107
FIXED_BYTES: Final = 16
MOST_BYTES: Final = 16_384
"""HAProxy's own bound: its buffer (tune.bufsize)."""
MOST_UNIQUE_ID_BYTES: Final = 128
CRC32C, UNIQUE_ID = 0x03, 0x05
_LOCAL, _PROXY = 0, 1
_STREAM = 1
_FAMILY_BYTES: Final = {0: 0, 1: 12, 2: 36, 3: 216}  # UNSPEC, IPv4, IPv6, unix: both addresses and their ports
_PROTOCOLS: Final = 3  # UNSPEC, STREAM, DGRAM
_PORT = re.compile(rb"0|[1-9]\d{0,4}")
_LONE_END = re.compile(rb"\r(?!\n)|(?<!\r)\n")


class ProxyFault(StrEnum):
    """The reason why a connection has no header, in HAProxy's words."""

    EMPTY = "PRX_EMPTY"
    """The peer closed the connection before its first byte, as a health check does."""
    ABORT = "PRX_ABORT"
    """The connection broke before its header was whole."""
    TIMEOUT = "PRX_TIMEOUT"
    """The header was not whole in time."""
    TRUNCATED = "PRX_TRUNCATED"
    """The peer closed the connection within its header."""
    NOT_HDR = "PRX_NOT_HDR"
    """The first bytes are of no version of the protocol."""
    BAD_HDR = "PRX_BAD_HDR"
    """The header breaks the rules of its version, or its checksum is wrong."""
    BAD_PROTO = "PRX_BAD_PROTO"
    """The header names a family or protocol that does not exist."""


class ProxyHeader(NamedTuple):
    """`version`: 1 or 2. `source`, `destination`: the client's connection; None: the real addresses count. `tlvs`: by type, the
    last of each, as they were sent."""

    version: int
    source: Address | None = None
    destination: Address | None = None
    tlvs: Mapping[int, bytes] = MappingProxyType({})


class _State(Enum):
    SIGNATURE, LINE, FIXED, REST, DONE, FAILED = range(6)


class _Wrong(Exception):
    """Ends the parsing with a fault."""

    def __init__(self, fault: ProxyFault) -> None:
        super().__init__(fault)
        self.fault = fault


class HeaderParser:
    """One header. `header` or `fault` is set when it has ended, never both. `taken`: how many bytes were taken."""

    __slots__ = ("_began", "_kept", "_size", "_state", "fault", "header", "taken")

    def __init__(self) -> None:
        self.header: ProxyHeader | None = None
        self.fault: ProxyFault | None = None
        self.taken = 0
        self._began = False
        self._state = _State.SIGNATURE
        self._kept = b""
        self._size = FIXED_BYTES  # the bytes of version 2 that are kept before the next state

    @property
    def has_ended(self) -> bool:
        return self.header is not None or self.fault is not None

    def feed(self, data: bytes) -> int:
        """Takes from `data` what is known to belong to the header; returns how many bytes. Until the header has ended, the rest is
        to be fed again with what follows."""
        before = self.taken
        self._began = self._began or bool(data)
        try:
            if self._state is _State.SIGNATURE:
                self._state = _version_of(data)
            if self._state is _State.LINE:
                self._take_line(data)
            while self._state in (_State.FIXED, _State.REST):
                if not self._take_binary(data[self.taken - before :]):
                    break
        except _Wrong as wrong:
            self.fault, self._state, self._kept = wrong.fault, _State.FAILED, b""
        return self.taken - before

    def end(self, fault: ProxyFault | None = None) -> None:
        """Nothing more comes, for this reason; None: the peer has closed the connection."""
        if not self.has_ended:
            closed = ProxyFault.TRUNCATED if self._began else ProxyFault.EMPTY
            self.fault, self._state, self._kept = fault or closed, _State.FAILED, b""

    # Version 1

    def _take_line(self, data: bytes) -> None:
        before = len(self._kept)
        line = self._kept + data[: MOST_LINE_BYTES - before]
        end = line.find(b"\r\n")
        self.taken += (len(line) if end < 0 else end + 2) - before
        text = line if end < 0 else line[:end]
        lone = _LONE_END.search(text)
        if lone is not None and (end >= 0 or lone.start() < len(line) - 1 or line.endswith(b"\n")):
            raise _Wrong(ProxyFault.BAD_HDR)
        if end >= 0:
            self.header, self._state, self._kept = _of_line(text), _State.DONE, b""
        elif len(line) == MOST_LINE_BYTES:
            raise _Wrong(ProxyFault.BAD_HDR)
        else:
            self._kept = line

    # Version 2

    def _take_binary(self, data: bytes) -> bool:
        """Takes what the state still lacks; False: more bytes are needed."""
        took = data[: self._size - len(self._kept)]
        self._kept += took
        self.taken += len(took)
        if len(self._kept) < self._size:
            return False
        if self._state is _State.FIXED:
            self._size = _size_of(self._kept)
            self._state = _State.REST
        else:
            self.header, self._state, self._kept = _of_binary(self._kept), _State.DONE, b""
        return True


def _version_of(data: bytes) -> _State:
    """LINE, FIXED, or SIGNATURE while it may be either. Raises _Wrong when it is neither."""
    for signature, state in ((SIGNATURE_1, _State.LINE), (SIGNATURE_2, _State.FIXED)):
        if data.startswith(signature):
            return state
        if signature.startswith(data):
            return _State.SIGNATURE
    raise _Wrong(ProxyFault.NOT_HDR)


def _of_line(line: bytes) -> ProxyHeader:
    """A line without its CRLF. Raises _Wrong."""
    words = line.split(b" ")
    family = {b"TCP4": AF_INET, b"TCP6": AF_INET6}.get(words[1])
    if family is None:
        if words[1] != b"UNKNOWN":
            raise _Wrong(ProxyFault.BAD_PROTO)
        return ProxyHeader(1)
    if len(words) != 6:
        raise _Wrong(ProxyFault.BAD_HDR)
    source, destination = (Address(_ip(family, words[n]), _port(words[n + 2])) for n in (2, 3))
    return ProxyHeader(1, source, destination)


def _ip(family: int, text: bytes) -> str:
    """inet_pton takes no leading zeros and no other spelling. Raises _Wrong."""
    try:
        return inet_ntop(family, inet_pton(family, text.decode("ascii")))
    except (OSError, ValueError):
        raise _Wrong(ProxyFault.BAD_HDR) from None


def _port(text: bytes) -> int:
    if not _PORT.fullmatch(text) or int(text) > 65535:
        raise _Wrong(ProxyFault.BAD_HDR)
    return int(text)


def _size_of(fixed: bytes) -> int:
    """The size of a whole header of version 2, by its first 16 bytes. Raises _Wrong."""
    version, command = fixed[12] >> 4, fixed[12] & 15
    if version != 2:
        raise _Wrong(ProxyFault.NOT_HDR)
    if command not in (_LOCAL, _PROXY):
        raise _Wrong(ProxyFault.BAD_HDR)
    family, protocol = fixed[13] >> 4, fixed[13] & 15
    if command == _PROXY and (family not in _FAMILY_BYTES or protocol >= _PROTOCOLS):
        raise _Wrong(ProxyFault.BAD_PROTO)
    size = FIXED_BYTES + int.from_bytes(fixed[14:16])
    if size > MOST_BYTES or (command == _PROXY and size < FIXED_BYTES + _FAMILY_BYTES[family]):
        raise _Wrong(ProxyFault.BAD_HDR)
    return size


def _of_binary(header: bytes) -> ProxyHeader:
    """A whole header of version 2. Raises _Wrong.

    The block of LOCAL and of UNSPEC is to be ignored, and may be anything: it is read as far as it makes sense, for its checksum.
    """
    command, family, protocol = header[12] & 15, header[13] >> 4, header[13] & 15
    at = FIXED_BYTES + _FAMILY_BYTES.get(family, 0)
    tlvs = _tlvs(header, at)
    if tlvs is None:
        if command == _PROXY and family:
            raise _Wrong(ProxyFault.BAD_HDR)
        return ProxyHeader(2)
    if command == _LOCAL or not family or family == 3 or protocol != _STREAM:
        return ProxyHeader(2, tlvs=tlvs)
    kind, size = (AF_INET, 4) if family == 1 else (AF_INET6, 16)
    ends = struct.unpack_from(f">{size}s{size}sHH", header, FIXED_BYTES)
    source, destination = (Address(inet_ntop(kind, ends[n]), ends[n + 2]) for n in (0, 1))
    return ProxyHeader(2, source, destination, tlvs)


class _Placed(NamedTuple):
    """The place of a TLV's value."""

    kind: int
    start: int
    size: int


def _tlvs(header: bytes, at: int) -> Mapping[int, bytes] | None:
    """The TLVs from `at` on; None when they don't end where the header does. Raises _Wrong for a checksum that is wrong."""
    placed = _placed(header, at)
    if placed is None:
        return None
    found: dict[int, bytes] = {}
    for kind, start, size in placed:
        value = header[start : start + size]
        if kind == CRC32C:
            blank = header[:start] + bytes(size) + header[start + size :]
            if size != 4 or kind in found or crc32c(blank) != int.from_bytes(value):
                raise _Wrong(ProxyFault.BAD_HDR)
        elif kind == UNIQUE_ID and size > MOST_UNIQUE_ID_BYTES:
            raise _Wrong(ProxyFault.BAD_HDR)
        found[kind] = value
    return MappingProxyType(found)


def _placed(header: bytes, at: int) -> list[_Placed] | None:
    """The TLVs from `at` on; None when one is cut."""
    placed = []
    while at < len(header):
        if at + 3 > len(header):
            return None
        one = _Placed(header[at], at + 3, int.from_bytes(header[at + 1 : at + 3]))
        placed.append(one)
        at = one.start + one.size
    return placed if at == len(header) or not placed else None
