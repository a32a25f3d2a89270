"""The parts of a build that pyproject.toml has no word for: where packages lie in the wheel, and its commit.

one_top_name  In a wheel `broker` and `shards` lie in `turnstile`, and their imports are written so: site-packages has many
    owners, and other distributions may have modules of these names. The tree, and an editable install, keep short names.
described_without_the_tree  The description of the package is README.md, in which files of the tree are named and not linked.
same_commit_same_bytes  A wheel has the time of its commit and modes of its own, whatever the umask and the clock are.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
OWNER = "turnstile"
MOVED = ("broker", "shards")
RECORD = "commit.txt"
"""In the package `turnstile`, of an sdist and a wheel: the commit, and its time in seconds since 1970."""


class Commit(NamedTuple):
    """`name`: in hexadecimal, with `+changes` behind it where the tree differs; "" where nobody knows."""

    name: str
    time_s: int


def commit() -> Commit:
    """As TURNSTILE_COMMIT says, as an image's build does; else as the sdist has it; else of the checkout."""
    told = os.environ.get("TURNSTILE_COMMIT", "")
    when_s = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    recorded = ROOT / OWNER / RECORD
    if told not in ("", "unknown"):
        return Commit(told, when_s)
    if recorded.exists():
        name, time_s = recorded.read_text().split()
        return Commit(name, int(time_s))
    if not (ROOT / ".git").exists():  # the checkout of something else may lie around this folder
        return Commit("", 0)
    try:
        name, time_s = _git("log", "-1", "--format=%H %ct").split()
        return Commit(name + ("+changes" if _git("status", "--porcelain") else ""), int(time_s))
    except (OSError, subprocess.CalledProcessError):
        return Commit("", 0)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def moved(source: bytes, file: str) -> bytes:
    """A module's source with imports of MOVED from below OWNER. Raises ValueError for one that can't be written so."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and not node.level:
            if (node.module or "").split(".")[0] in MOVED:
                lines[node.lineno - 1] = _put(
                    lines[node.lineno - 1], node.col_offset, b"from ", f"from {OWNER}.".encode()
                )
        elif isinstance(node, ast.Import):
            names = [each for each in node.names if each.name.split(".")[0] in MOVED]
            if not names:
                continue
            if len(node.names) > 1 or ("." in names[0].name and names[0].asname is None):
                raise ValueError(
                    f"{file}:{node.lineno}: one module, and `from broker import x` instead of `import broker.x`"
                )
            new = f"from {OWNER} import " if "." not in names[0].name else f"import {OWNER}."
            lines[node.lineno - 1] = _put(lines[node.lineno - 1], node.col_offset, b"import ", new.encode())
    return b"".join(lines)


def _put(line: bytes, at: int, old: bytes, new: bytes) -> bytes:
    assert line[at:].startswith(old), line
    return line[:at] + new + line[at + len(old) :]


class BuildPy(build_py):
    """Copies the packages to where they lie in the wheel, with their imports, and the record of the commit."""

    def build_module(self, module: str, module_file: str, package: str) -> tuple[str, bool]:
        target, is_copied = super().build_module(module, module_file, package)
        path = Path(target)
        before = path.stat()
        path.write_bytes(moved(path.read_bytes(), module_file))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return target, is_copied

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        _record(Path(self.build_lib))
        for path in Path(self.build_lib).rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


class Sdist(sdist):
    """Records the commit, as an sdist has no history."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        _record(Path(base_dir))


def description() -> str:
    """README.md without its pictures and with the words of links into the tree: an index has neither."""
    text = re.sub(r"!\[[^]]*\]\((?!https?:)[^)]*\)\n*", "", (ROOT / "README.md").read_text("utf-8"))
    return re.sub(r"\[([^]]*)\]\((?!https?:|#)[^)]*\)", r"\1", text)


def _record(folder: Path) -> None:
    found = commit()
    if found.name:
        (folder / OWNER / RECORD).write_text(f"{found.name} {found.time_s}\n")


if __name__ == "__main__":
    os.umask(0o022)
    if time_s := commit().time_s:
        os.environ.setdefault("SOURCE_DATE_EPOCH", str(time_s))
    below = [f"{OWNER}.{name}" for name in find_packages(str(ROOT)) if name.split(".")[0] in MOVED]
    setup(
        packages=[*find_packages(str(ROOT), include=[OWNER, f"{OWNER}.*"]), *below],
        package_dir={f"{OWNER}.{name}": name for name in MOVED},
        long_description=description(),
        long_description_content_type="text/markdown",
        cmdclass={"build_py": BuildPy, "sdist": Sdist},
    )
