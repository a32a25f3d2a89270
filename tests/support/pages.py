"""The documents as their readers meet them: the fenced blocks of a page, its links, its anchors.

docs/README.md tells readers what the language of a block means; `Block.needs`, `.why_not`, `.file` and `.commands` are that rule.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").glob("*.md"),
        *(ROOT / "modules").glob("*.md"),
    ]
)
PASTED = ("sh", "console")
LANGUAGES = (*PASTED, "python", "toml", "json", "properties", "text", "sql")
_FENCE = re.compile(r"^```(.*)$")
_NEEDS = re.compile(r"# Needs ([\w.-]+)\b")
_LONG = re.compile(r"# (Takes .+)")
_NOT_HERE = re.compile(r"# Not run by the tests: (.+)")
_FILE = re.compile(r"# ([\w.-]+\.\w+)\b")
_EXIT_CODE = re.compile(r"# (?:.*\b)?exit code (\d+)\s*$")
_HEADING = re.compile(r"^#+ (.+?)\s*$")
_LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")


class Command(NamedTuple):
    """A command of a block, its exit code, and the lines that are shown as its output (None: no output is shown)."""

    text: str
    exit_code: int
    shown: list[str] | None


class Block(NamedTuple):
    """A fenced block: its page, the number of its first line, the language after its fence, and its lines."""

    page: Path
    line: int
    language: str
    lines: list[str]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def has_condition(self) -> bool:
        """Whether its first line says that it is not run everywhere."""
        return bool(self.lines) and any(each.match(self.lines[0]) for each in (_NEEDS, _LONG, _NOT_HERE))

    @property
    def why_not(self) -> str | None:
        """Why the tests don't run this block on this machine, by its first line; None if they do."""
        first = self.lines[0] if self.lines else ""
        if match := _NOT_HERE.match(first):
            return match[1]
        if (match := _LONG.match(first)) and "TURNSTILE_ALL_BLOCKS" not in os.environ:
            return f"{match[1]}; `make test-docs` does it"
        if (match := _NEEDS.match(first)) and shutil.which(match[1]) is None:
            return f"{match[1]} is not installed"
        return None

    @property
    def file(self) -> str | None:
        """The name of the file that this block is, by its first line; shells and text are none."""
        match = _FILE.match(self.lines[0]) if self.lines and self.language not in (*PASTED, "text", "sql") else None
        return None if match is None else match[1]

    @property
    def commands(self) -> list[Command]:
        """Of `sh`: each line; of `console`: each line after `$ `, with what is shown below it. `\\` continues a line."""
        found: list[Command] = []
        lines = iter(self.lines)
        for line in lines:
            if self.language == "console" and not line.startswith("$ "):
                if not found:
                    continue
                found[-1].shown.append(line)  # type: ignore[union-attr]
                continue
            text = line.removeprefix("$ ") if self.language == "console" else line
            while text.endswith("\\") or _open_quote(text):
                text += "\n" + next(lines)
            if text.strip() and not text.startswith("#"):
                code = _EXIT_CODE.search(text)
                found.append(Command(text, int(code[1]) if code else 0, [] if self.language == "console" else None))
        return found


def _open_quote(text: str) -> bool:
    return re.split(r"(?:^|\s)#", text)[0].count("'") % 2 == 1


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page."""
    found: list[Block] = []
    language: str | None = None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and language is None:
            language = fence[1].strip()
            found.append(Block(page, number, language, []))
        elif fence:
            language = None
        elif language is not None:
            found[-1].lines.append(line)
    return found


def prose(page: Path) -> list[str]:
    """The lines outside of blocks."""
    lines: list[str] = []
    inside = False
    for line in page.read_text().splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            lines.append(line)
    return lines


def links(page: Path) -> list[str]:
    """The targets of a page's links and pictures."""
    return [target for line in prose(page) for target in _LINK.findall(line)]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    found: set[str] = set()
    for line in prose(page):
        if heading := _HEADING.match(line):
            kept = re.sub(r"[^\w\- ]", "", heading[1].replace("`", "").lower())
            found.add(kept.replace(" ", "-"))
    return found
