"""Follows every link of the built site: to a file of it, and to the place in that file where it names one.

    python scripts/docs/links.py site

Links that lead out of the site are counted and not followed. Exit code 1 where one leads nowhere; each is said.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_TARGETS = ("href", "src")


class SitePage(HTMLParser):
    """The targets of a page's links, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects what the tag links to, and its id."""
        for name, value in attrs:
            if value and name in _TARGETS:
                self.links.add(value)
            elif value and name == "id":
                self.anchors.add(value)


@cache
def read(path: Path) -> SitePage:
    """A page of the site."""
    return SitePage(path.read_text())


def leads_somewhere(page: Path, link: str) -> bool:
    """True if the target of a page's link exists."""
    parts = urlsplit(link)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_file():
        return False
    anchor = unquote(parts.fragment)
    return not anchor or target.suffix != ".html" or anchor in read(target).anchors


def is_outside(link: str) -> bool:
    """True if a link leads out of the site."""
    return bool(urlsplit(link).scheme or urlsplit(link).netloc)


def main() -> int:
    """Follows the links of the site in the folder that is named."""
    site = Path(sys.argv[1]).resolve()
    pages = sorted(site.rglob("*.html"))
    links = [(page, link) for page in pages for link in sorted(read(page).links)]
    inside = [(page, link) for page, link in links if not is_outside(link)]
    dead = [(page, link) for page, link in inside if not leads_somewhere(page, link)]
    for page, link in dead:
        print(f"{page.relative_to(site)}: {link} leads nowhere", file=sys.stderr)
    print(
        f"{len(pages)} pages, {len(inside):,} links in the site, {len(dead)} dead; {len(links) - len(inside)} lead out of it"
    )
    return 1 if dead or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
