"""A certificate for 127.0.0.1, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple


class Certificate(NamedTuple):
    """The files of a certificate and its key."""

    cert: Path
    key: Path

    def listener(self, name: str) -> str:
        """An option of `turnstile up`: a TLS listener on any port."""
        return f"{name}=127.0.0.1:0,tls,cert={self.cert},key={self.key}"


def make_certificate(folder: Path) -> Certificate | None:
    """A certificate that nobody has signed, in `folder`; None without openssl."""
    if shutil.which("openssl") is None:
        return None
    made = Certificate(folder / "server.pem", folder / "server.key")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    subprocess.run([*command.split(), "-out", made.cert, "-keyout", made.key], check=True, capture_output=True)
    return made
