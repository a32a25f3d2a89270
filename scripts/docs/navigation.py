"""The pages of the site, the place of each in it, and their order: docs/README.md is the list, its sections the kinds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
INDEX = "docs/README.md"
KINDS = ("Tutorial", "How-to", "Reference", "Explanation")
"""The sections of the index that are the navigation, by the four kinds of Diátaxis."""
_PLACES = {
    "README.md": "index.md",
    INDEX: "documents.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+\.md)\)")


class NavigationEntry(NamedTuple):
    """A page of the navigation: its label, and its path in the repository."""

    label: str
    page: str


def navigation() -> dict[str, list[NavigationEntry]]:
    """{kind: its pages}, in the order of the index. Raises ValueError where a kind has no section."""
    sections = re.split(r"^## (.+)$", (ROOT / INDEX).read_text(), flags=re.MULTILINE)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    if missing := [kind for kind in KINDS if kind not in texts]:
        raise ValueError(f"{INDEX} has no section {', '.join(missing)}")
    return {
        kind: [NavigationEntry(label, resolve(INDEX, target)) for label, target in _LINK.findall(texts[kind])]
        for kind in KINDS
    }


def resolve(page: str, target: str) -> str:
    """The path in the repository that a link of a page leads to."""
    return ((ROOT / page).parent / target).resolve().relative_to(ROOT).as_posix()


def place(page: str) -> str:
    """The place of a page of the repository in the site: docs/planning.md is planning.md, examples/README.md is examples.md."""
    return _PLACES.get(page, page.removeprefix("docs/").replace("/README.md", ".md"))
