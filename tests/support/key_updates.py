"""TLS 1.3 messages that Python's ssl can't send: KeyUpdates, by the libssl that it has loaded."""

from __future__ import annotations

import ctypes
import re
import ssl
from pathlib import Path

_POINTER_AT = object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)
"""Of the SSL in CPython's PySSLSocket, behind a reference to its owner."""


def key_updates(tls: ssl.SSLObject, outgoing: ssl.MemoryBIO, size: int) -> bytes | None:
    """`size` bytes of KeyUpdates of a client after its handshake, each under the keys of the one before; None: it can't be done."""
    path = re.search(r"\S*/libssl\.so\S*", Path("/proc/self/maps").read_text())
    if path is None or tls.version() != "TLSv1.3":
        return None
    libssl = ctypes.CDLL(path[0])
    libssl.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]
    libssl.SSL_do_handshake.argtypes = [ctypes.c_void_p]
    pointer = ctypes.c_void_p.from_address(id(tls._sslobj) + _POINTER_AT).value  # type: ignore[attr-defined]
    made = bytearray()
    while len(made) < size:
        assert libssl.SSL_key_update(pointer, 0) == libssl.SSL_do_handshake(pointer) == 1
        made += outgoing.read()
    return bytes(made)
