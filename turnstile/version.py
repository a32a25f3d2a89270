"""The version of this Turnstile: the distribution's version, and the commit that it was made of."""

from __future__ import annotations

from pathlib import Path

_RECORD = Path(__file__).with_name("commit.txt")
"""The file in a wheel and an sdist (setup.py) with the commit, and its time."""
_SHOWN = 12


def version() -> str:
    """The version, such as 0.1.0; "unknown" where the package was not installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("turnstile-kafka")
    except PackageNotFoundError:
        return "unknown"


def commit() -> str:
    """The commit in hexadecimal, with `+changes` behind it for a tree that differed; "" where it is not known. In a checkout git
    is asked."""
    if _RECORD.exists():
        return _RECORD.read_text().split()[0]
    checkout = Path(__file__).parents[1]
    if not (checkout / ".git").exists():
        return ""
    return _git(checkout, "rev-parse", "HEAD") + ("+changes" if _git(checkout, "status", "--porcelain") else "")


def _git(folder: Path, *arguments: str) -> str:
    import subprocess

    try:
        asked = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip()


def described() -> str:
    """The version for people: `0.1.0 (commit 3f06b72aaaf2)`."""
    name, plus, changes = commit().partition("+")
    return f"{version()} (commit {name[:_SHOWN]}{plus}{changes})" if name else version()
