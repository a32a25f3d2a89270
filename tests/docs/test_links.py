"""Each page is in the index, and each link leads somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import PAGES, ROOT, anchors, links

INDEX = ROOT / "docs" / "README.md"
OUTSIDE = ("http://", "https://", "mailto:")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_its_anchor_is_there(page: Path) -> None:
    dead = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if link.startswith(OUTSIDE):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


def test_every_page_of_docs_is_in_the_index() -> None:
    listed = {(INDEX.parent / link.partition("#")[0]).resolve() for link in links(INDEX)}
    assert [
        str(page.relative_to(ROOT)) for page in PAGES if ROOT / "docs" in page.parents and page not in listed | {INDEX}
    ] == []
