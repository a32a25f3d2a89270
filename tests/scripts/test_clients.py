"""The clients of the admin API in modules/ are those that its OpenAPI document makes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = ROOT / "scripts" / "clients" / "make.py"


def test_what_make_clients_writes_is_what_is_there() -> None:
    done = subprocess.run([sys.executable, str(MAKE), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"make clients\n{done.stdout}{done.stderr}"


def test_a_client_that_is_stale_is_named(tmp_path: Path) -> None:
    for name in ("scripts/clients", "modules/python", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("modules/go", "modules/node", "modules/dotnet", "modules/java/src/main/java/turnstile"):
        (tmp_path / name).mkdir(parents=True)
    client = tmp_path / "modules" / "python" / "turnstile_admin.py"
    written = client.read_text()
    client.write_text(written.replace("def get_tokens", "def tokens"))
    command = [sys.executable, str(tmp_path / "scripts" / "clients" / "make.py")]
    told = subprocess.run([*command, "--check"], capture_output=True, text=True)
    assert told.returncode == 1 and "modules/python/turnstile_admin.py is not what make clients writes" in told.stdout
    assert "docs/api.md" not in told.stdout
    assert subprocess.run(command, check=False).returncode == 0 and client.read_text() == written


@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("gofmt", ["gofmt", "-l", "modules/go"]),
        ("node", ["node", "--check", "modules/node/admin.js"]),
    ],
)
def test_a_client_is_as_its_language_has_it(tool: str, command: list[str]) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
