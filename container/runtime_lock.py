"""The rows of requirements.lock that the package needs at run time, with their hashes: python3 runtime_lock.py [EXTRA...].

The lock is for developers, too. What the package needs itself says pyproject.toml; what those need in turn say the lock's comments
("# via ...", written by uv). Run where both files are.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any


def runtime(lock: str, project: dict[str, Any], extras: list[str]) -> list[str]:
    """The rows for the dependencies of `project`, with those of its `extras`, and for what they need."""
    asked = [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]
    needed = {normalised(re.split(r"[<>=!~;\[ ]", each)[0]) for each in asked}
    rows = [row for row in re.split(r"^(?=\S)", lock, flags=re.MULTILINE) if "==" in row.partition("\n")[0]]
    reasons = {normalised(row.partition("==")[0]): needed_by(row) for row in rows}
    while more := {name for name, why in reasons.items() if why & needed} - needed:
        needed |= more
    return [row for row in rows if normalised(row.partition("==")[0]) in needed]


def normalised(text: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", text.strip()).lower()


def needed_by(row: str) -> set[str]:
    """The distributions that a row's "# via" names."""
    comments = re.findall(r"^\s+#(?:\s+via)?\s+(\S+)$", row, re.MULTILINE)
    return {normalised(comment) for comment in comments}


if __name__ == "__main__":
    declared = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    print("".join(runtime(Path("requirements.lock").read_text(), declared, sys.argv[1:])))
