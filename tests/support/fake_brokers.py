"""A broker of which every move is known, for tests of what drives a load."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from turnstile.admin_client import AdminClient


@contextmanager
def fake_broker(*arguments: str) -> Iterator[tuple[str, AdminClient]]:
    """(bootstrap, admin API) of a fake broker."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fake_broker.py")), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    port, admin = process.stdout.readline().split()
    try:
        yield f"127.0.0.1:{port}", AdminClient(f"http://127.0.0.1:{admin}")
    finally:
        process.stdin.close()
        process.wait(timeout=10)
        process.stdout.close()
