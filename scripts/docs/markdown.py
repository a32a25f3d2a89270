"""Markdown, written: text that stays text, tables, and the anchors that headings get."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

_ACTIVE = re.compile(r"([\\*_\[\]<>|])")
_NAMES = r"--[a-z][\w-]*|[A-Za-z]+(?:_[A-Za-z]+)+|[a-z]{3,}(?:\.[a-z]+)+"
_CODE = re.compile(rf"(`[^`]+`|(?<![\w./:-])(?:{_NAMES})(?:=[\w:.,]*\w)?(?![\w/]|\.\w))")
"""What is code: what is written as such; and options, words with underscores, and words with dots."""
_NOWHERE: Mapping[str, str] = MappingProxyType({})


def plain(text: str, targets: Mapping[str, str] = _NOWHERE) -> str:
    """Text in which code alone has a meaning: one line, fit for a cell of a table. Names in `targets` become links to there."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(_code(part, targets) if n % 2 else _ACTIVE.sub(r"\\\1", part) for n, part in enumerate(parts))


def _code(part: str, targets: Mapping[str, str]) -> str:
    name = part.strip("`")
    return f"[{code(name)}]({targets[name]})" if name in targets else code(name)


def code(text: str) -> str:
    """Text as code, fit for a cell of a table."""
    return f"`{text}`".replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def fence(text: str, language: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def slug(heading: str) -> str:
    """The anchor of a heading, by GitHub's rule, which MyST follows."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")
