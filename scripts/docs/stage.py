"""Lays the Markdown of the site into a folder: the pages of the repository as they are, and those that are made from the code.

    python scripts/docs/stage.py build/docs

A page keeps its text. Its links are turned to where pages stand in the site (navigation.py); the first mention of a setting in
it becomes a link to that setting, whose entry in turn names the pages that say more. The navigation is in the first page, where
Sphinx looks for it.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from broker.admin.openapi import document  # noqa: E402 - importable only from here on
from scripts.docs import admin_api_page, commands_page, limits_page, settings_page  # noqa: E402
from scripts.docs.navigation import INDEX, NavigationEntry, navigation, place, resolve  # noqa: E402

HOME = "README.md"
FILES = "files"
"""Folder of the site with the files that pages link to, pictures for example."""
MADE_KIND = "Reference"
MADE = (
    NavigationEntry("Every setting", settings_page.PLACE),
    NavigationEntry("Every limit", limits_page.PLACE),
    NavigationEntry("Every command", commands_page.PLACE),
    NavigationEntry("Every call of the admin API", admin_api_page.PLACE),
)
"""The pages that are made from the code, first among those of their kind."""
_NOT_NAMED_BY = ("CHANGELOG.md", "CONTRIBUTING.md", HOME, INDEX)
_FENCED = re.compile(r"^(```.*?^```[^\n]*\n?)", re.MULTILINE | re.DOTALL)
_TOKEN = re.compile(
    r"(?P<heading>^\#+[ ][^\n]*$) | \[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\) | (?P<tick>`+)(?P<code>[^`]+)(?P=tick)",
    re.MULTILINE | re.VERBOSE,
)


def main() -> None:
    """Lays the site into the folder that is named; what was there goes."""
    out = Path(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    pages = {HOME: "Turnstile", INDEX: "All pages"}
    pages |= {entry.page: entry.label for entries in navigation().values() for entry in entries}
    mentions: dict[str, list[str]] = defaultdict(list)
    for page, label in pages.items():
        staged = Staged(page)
        text = staged.text() + (toctrees() if page == HOME else "")
        write(out, place(page), text)
        for name in staged.named if page not in _NOT_NAMED_BY else ():
            mentions[name].append(f"[{label}]({relative(settings_page.PLACE, place(page))})")
        for file in staged.files:
            target = out / FILES / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, target)
    write(out, settings_page.PLACE, settings_page.settings_page(mentions))
    write(out, limits_page.PLACE, limits_page.limits_page())
    write(out, commands_page.PLACE, commands_page.commands_page())
    write(out, admin_api_page.PLACE, admin_api_page.admin_api_page(document()))


def write(out: Path, where: str, text: str) -> None:
    """A page of the site."""
    (out / where).parent.mkdir(parents=True, exist_ok=True)
    (out / where).write_text(text)


def relative(page: str, target: str) -> str:
    """The link from one place of the site to another."""
    return posixpath.relpath(target, posixpath.dirname(page))


class Staged:
    """A page of the repository as it stands in the site. `named`: settings that it mentions; `files`: those that it links to."""

    def __init__(self, page: str) -> None:
        self._page = page
        self._place = place(page)
        self._targets: Mapping[str, str] = settings_page.targets()
        self.named: set[str] = set()
        self.files: list[str] = []

    def text(self) -> str:
        """The Markdown; blocks of code are as they were."""
        parts = _FENCED.split((ROOT / self._page).read_text())
        return "".join(part if n % 2 else _TOKEN.sub(self._token, part) for n, part in enumerate(parts))

    def _token(self, found: re.Match[str]) -> str:
        if found["heading"]:
            return found[0]
        if found["target"]:
            return f"[{found['text']}]({self._link(found['target'])})"
        name = found["code"]
        if name not in self._targets or name in self.named:
            return found[0]
        self.named.add(name)
        return f"[{found[0]}]({relative(self._place, settings_page.PLACE)}{self._targets[name]})"

    def _link(self, target: str) -> str:
        """A link of the repository as one of the site."""
        path, hash_, anchor = target.partition("#")
        if not path or "://" in path:
            return target
        there = resolve(self._page, path)
        if not there.endswith(".md"):
            self.files.append(there)
            return relative(self._place, f"{FILES}/{there}")
        return f"{relative(self._place, place(there))}{hash_}{anchor}"


def toctrees() -> str:
    """The navigation, as Sphinx takes it: a list for each kind."""
    parts = ["\n", toctree("", [NavigationEntry("All pages", INDEX)])]
    for kind, entries in navigation().items():
        made = [f"{entry.label} <{entry.page.removesuffix('.md')}>" for entry in MADE if kind == MADE_KIND]
        parts.append(toctree(kind, entries, made))
    return "\n".join(parts)


def toctree(caption: str, entries: list[NavigationEntry], first: list[str] | None = None) -> str:
    """One list of the navigation; `first` stands before the entries."""
    rows = [*(first or ()), *(f"{entry.label} <{place(entry.page).removesuffix('.md')}>" for entry in entries)]
    named = [f":caption: {caption}"] if caption else []
    return "\n".join(["```{toctree}", ":hidden:", *named, "", *rows, "```", ""])


if __name__ == "__main__":
    main()
