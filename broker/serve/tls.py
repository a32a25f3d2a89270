"""A TLS connection with the calls of a raw socket, so that a Connection need not know which of the two it has.

The handshake happens inside the first reads. Bytes that TLS has to write but the socket does not take wait here: the
poller is asked for every edge of writability on such sockets, and an empty `send` moves them on.
"""

from __future__ import annotations

import contextlib
import ssl
from _socket import socket as RawSocket
from pathlib import Path
from socket import MSG_DONTWAIT, SHUT_WR
from typing import Any

from shards.config.cluster_plan import ListenerEndpoint
from shards.errors import CannotStart

_CHUNK = 64 << 10
_FILL = 32 << 10
"""Bytes that are read at once. A record has half of that, so there is data in it, unless a client floods with TLS's own messages:
KeyUpdates, each of which costs new keys here and was made beforehand there."""
_RECORD = 16 << 10
"""The most bytes of data in a TLS record."""
_WHOLE_RECORD = _RECORD + 256 + 5
"""Bytes among which a record is whole, with what encryption adds, and its header (RFC 8446, 5.2)."""


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """The SSL context that a listener's connections share. Raises OSError or ssl.SSLError when the files are no certificate and
    key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The two that OpenSSL hands out take a seventh of a connection's CPU time, and hold on this shard alone.
    context.num_tickets = 0
    context.load_cert_chain(certificate, key)
    return context


def context_of(endpoint: ListenerEndpoint) -> ssl.SSLContext | None:
    """The context of a listener given as NAME=host:port,tls,cert=FILE,key=FILE; None without tls.

    Raises CannotStart, naming what is missing or wrong.
    """
    if "tls" not in endpoint.options:
        return None
    given = dict(option.split("=", 1) for option in endpoint.options if "=" in option)
    if not {"cert", "key"} <= given.keys():
        raise CannotStart(f"listener {endpoint.listener} needs cert=FILE and key=FILE beside tls")
    for option, what in (("cert", "certificate"), ("key", "key")):
        try:
            open(given[option], "rb").close()
        except OSError as fault:
            file = f"{option}={given[option]}, the {what} of listener {endpoint.listener}"
            raise CannotStart(f"cannot read {file}: {fault.strerror}") from None
    try:
        return server_context(given["cert"], given["key"])
    except OSError as fault:
        raise CannotStart(f"cannot use {_unusable(given['cert'], given['key'], endpoint.listener, fault)}") from None


def _unusable(certificate: str, key: str, listener: str, fault: OSError) -> str:
    """The fault of two files that can be read: one is no PEM of its kind, or they don't belong together."""
    for path, what, mark in ((certificate, "certificate", b" CERTIFICATE-"), (key, "private key", b"PRIVATE KEY-")):
        if mark not in Path(path).read_bytes():
            return f"{path} for listener {listener}: it is no {what} in PEM"
    if isinstance(fault, ssl.SSLError) and fault.reason == "KEY_VALUES_MISMATCH":
        return f"{certificate} and {key} for listener {listener}: the key is that of another certificate"
    return f"{certificate} and {key} for listener {listener}: {fault.strerror or fault}"


class TlsSocket:
    """Wraps a connected socket. Like it, raises BlockingIOError when it would block, and OSError for a broken peer."""

    def __init__(self, raw: RawSocket, context: ssl.SSLContext) -> None:
        self._raw = raw
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._unsent = b""
        self._drained = False
        self._last: int | OSError | None = (
            None  # the end that `_read_more` has met behind data: what the next read is told
        )
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def getpeername(self) -> Any:
        """As of the socket."""
        return self._raw.getpeername()

    def getsockname(self) -> Any:
        """As of the socket."""
        return self._raw.getsockname()

    def recv_into(self, buffer: memoryview, size: int = 0, flags: int = 0) -> int:
        """Decrypted bytes; the first calls go through the handshake. A short read does not mean that there is no more, see
        `is_empty`."""
        if self._last is not None:
            if isinstance(self._last, OSError):
                raise self._last
            return 0
        self._drained = False
        filled = 0
        if not self._has_input():
            self.flush()
            filled = self._fill()
        while (read := self._read(buffer)) is None:
            self.flush()
            if filled >= _FILL:
                raise ConnectionResetError("TLS without data")
            filled += self._fill()
        return read + self._read_more(buffer[read:]) if read else 0

    def _read_more(self, buffer: memoryview) -> int:
        """The number of bytes of further records, as far as whole ones have come and fit: what a connection does for each read
        costs as much as the decryption of a record."""
        got = 0
        while len(buffer) - got >= _RECORD:
            try:
                if self._incoming.pending < _WHOLE_RECORD:
                    if self._drained:
                        break
                    if not self._fill():
                        self._drained = False  # the end of the stream is for the next read
                        break
                if self._incoming.pending >= _WHOLE_RECORD:
                    read = self._read(buffer[got:])
                    if not read:
                        self._last = read
                        break
                    got += read
            except BlockingIOError:
                break
            except OSError as fault:
                self._last = fault
                break
        return got

    def _read(self, buffer: memoryview) -> int | None:
        """The size of one record's data; 0: the peer has ended TLS; None: a whole record has not come. Raises
        ConnectionResetError."""
        try:
            return self._tls.read(len(buffer), buffer)  # type: ignore[return-value]
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLZeroReturnError:
            return 0
        except ssl.SSLError as fault:
            self.flush()
            raise ConnectionResetError(str(fault)) from None

    @property
    def is_empty(self) -> bool:
        """True if the last `recv_into` has left nothing, here or in the socket: what comes next makes the socket ready."""
        return self._drained and self._last is None and not self._has_input() and not self._outgoing.pending

    def send(self, data: bytes | memoryview, flags: int = 0) -> int:
        if self._unsent or not data:
            self.flush()
            if self._unsent:
                raise BlockingIOError
        sent = 0
        while sent < len(data) and not self._unsent:
            sent += self._tls.write(data[sent : sent + _CHUNK])
            self.flush()
        return sent

    def flush(self) -> None:
        """Sends what TLS has made, as far as the socket takes it."""
        if self._outgoing.pending:
            self._unsent += self._outgoing.read()
        while self._unsent:
            try:
                sent = self._raw.send(self._unsent, MSG_DONTWAIT)
            except BlockingIOError:
                return
            self._unsent = self._unsent[sent:]

    def shutdown(self, how: int) -> None:
        """Ends the sending side with a close_notify; what the socket does not take of that is not waited for."""
        assert how == SHUT_WR
        with contextlib.suppress(ssl.SSLError):  # it raises until the peer has ended TLS, too, which may never come
            self._tls.unwrap()
        self.flush()
        if not self._unsent:
            self._raw.shutdown(how)

    def setsockopt(self, level: int, name: int, value: bytes) -> None:
        self._raw.setsockopt(level, name, value)

    def close(self) -> None:
        self._raw.close()

    def _has_input(self) -> bool:
        """True if TLS has bytes to look at; where it has none, asking it costs an exception."""
        return bool(self._incoming.pending or self._tls.pending())

    def _fill(self) -> int:
        """The number of bytes that came. Raises OSError."""
        data = self._raw.recv(_FILL, MSG_DONTWAIT)
        self._drained = len(data) < _FILL
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return len(data)
