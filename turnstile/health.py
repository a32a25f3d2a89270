"""`turnstile health`: whether a cluster answers, for health checks that run every few seconds: a socket, and no other import.

As HEALTHCHECK of the image it takes 15 ms of CPU, of which the interpreter's own start is the most.
"""

from __future__ import annotations

import os
import socket
import sys
import time

DEFAULT_PORT = 9644
WITHIN_S = 2.0
NOTED = "/dev/shm/turnstile-admin"
"""The file in a container with the admin API's host and port, noted by the image's entry point, and the id of that process."""


def main() -> None:
    """The command without any option: exit code 0 when the cluster is healthy, else 1 and one line that says why not."""
    try:
        sentence = unhealthy(*address())
    except ValueError as fault:
        sentence = str(fault)
    print(sentence or "healthy")
    sys.exit(1 if sentence else 0)


def address(url: str | None = None) -> tuple[str, int]:
    """The address of the admin API: `url`, else TURNSTILE_ADMIN, else the one NOTED, else the one that the variables of
    `turnstile up` say. Raises ValueError."""
    url = url or os.environ.get("TURNSTILE_ADMIN")
    if url:
        host, colon, port = url.rpartition("//")[2].rstrip("/").rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit() and int(port) <= 65535):
            raise ValueError(f"{url} is not the URL of an admin API, such as http://127.0.0.1:{DEFAULT_PORT}")
        return host.strip("[]"), int(port)
    host, port = _noted() or (
        os.environ.get("TURNSTILE_UP_ADMIN_HOST", ""),
        os.environ.get("TURNSTILE_UP_ADMIN_PORT", ""),
    )
    return "127.0.0.1" if host in ("", "0.0.0.0", "::") else host, int(port) if port.isdigit() else DEFAULT_PORT


def _noted() -> tuple[str, str] | None:
    """The host and port that the entry point of this container noted; None: it noted none, or has ended, or another user wrote
    the file."""
    try:
        with open(NOTED) as file:
            if os.fstat(file.fileno()).st_uid not in (0, os.geteuid()):
                return None
            host, port, pid = file.read(300).split()
            return (host, port) if os.path.exists(f"/proc/{int(pid)}") else None
    except (OSError, ValueError):
        return None


def unhealthy(host: str, port: int, within_s: float = WITHIN_S) -> str | None:
    """The reason why the cluster is not healthy, in one sentence; None: it is healthy."""
    where = f"{f'[{host}]' if ':' in host else host}:{port}"
    request = f"GET /healthz HTTP/1.1\r\nhost: {where}\r\nconnection: close\r\n\r\n"
    received = b""
    deadline_s = time.monotonic() + within_s
    try:
        with socket.create_connection((host, port), timeout=within_s) as connection:
            connection.sendall(request.encode())
            while data := connection.recv(1 << 16):
                received += data
                connection.settimeout(max(0.001, deadline_s - time.monotonic()))
    except (OSError, UnicodeError) as fault:
        return f"no cluster answers at http://{where} ({getattr(fault, 'strerror', None) or fault})"
    head, _, body = received.partition(b"\r\n\r\n")
    if head[9:12] == b"200":
        return None
    return (
        body.decode(errors="replace").strip() or f"http://{where} answered with {head[:60].decode(errors='replace')!r}"
    )
