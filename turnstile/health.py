"""`turnstile health`: whether a cluster answers, for health checks that run every few seconds: a socket, and no other import.

As HEALTHCHECK of the image it takes 15 ms of CPU, of which the interpreter's own start is the most.
"""

from __future__ import annotations

import os
import socket
import sys

DEFAULT_PORT = 9644
WITHIN_S = 2.0


def main() -> None:
    """The command without any option: exit code 0 when the cluster is healthy, else 1 and one line that says why not."""
    sentence = unhealthy(*address())
    print(sentence or "healthy")
    sys.exit(1 if sentence else 0)


def address(url: str | None = None) -> tuple[str, int]:
    """Of the admin API: `url`, else TURNSTILE_ADMIN, else where `turnstile up` was told to have it by its variables. Raises
    ValueError."""
    url = url or os.environ.get("TURNSTILE_ADMIN")
    if url:
        host, colon, port = url.rpartition("//")[2].rstrip("/").rpartition(":")
        if not colon or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{url} is not the URL of an admin API, such as http://127.0.0.1:{DEFAULT_PORT}")
        return host.strip("[]"), int(port)
    host = os.environ.get("TURNSTILE_UP_ADMIN_HOST", "")
    port = os.environ.get("TURNSTILE_UP_ADMIN_PORT", "")
    return "127.0.0.1" if host in ("", "0.0.0.0", "::") else host, int(port) if port.isdigit() else DEFAULT_PORT


def unhealthy(host: str, port: int, within_s: float = WITHIN_S) -> str | None:
    """Why the cluster is not healthy, in one sentence; None: it is."""
    where = f"{f'[{host}]' if ':' in host else host}:{port}"
    request = f"GET /healthz HTTP/1.1\r\nhost: {where}\r\nconnection: close\r\n\r\n"
    received = b""
    try:
        with socket.create_connection((host, port), timeout=within_s) as connection:
            connection.sendall(request.encode())
            while data := connection.recv(1 << 16):
                received += data
    except OSError as fault:
        return f"no cluster answers at http://{where} ({fault.strerror or fault})"
    head, _, body = received.partition(b"\r\n\r\n")
    if head[9:12] == b"200":
        return None
    return (
        body.decode(errors="replace").strip() or f"http://{where} answered with {head[:60].decode(errors='replace')!r}"
    )
