"""The site of the documents: which pages it has and where, that they keep their text, and that dead links are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pages import PAGES, ROOT, anchors, blocks

sys.path.insert(0, str(ROOT))

from scripts.docs import settings_page, stage  # importable only from here on
from scripts.docs.navigation import INDEX, KINDS, navigation, place

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def test_every_page_is_once_in_the_navigation_which_has_the_four_kinds() -> None:
    listed = [entry.page for kind in KINDS for entry in navigation()[kind]]
    assert sorted([*listed, stage.HOME, INDEX]) == sorted(NAMES)
    assert len({place(page) for page in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_keeps_its_blocks_and_its_anchors(name: str, tmp_path: Path) -> None:
    staged = tmp_path / "page.md"
    staged.write_text(stage.Staged(name).text())
    assert [block.text for block in blocks(staged)] == [block.text for block in blocks(ROOT / name)]
    assert anchors(staged) == anchors(ROOT / name)


def test_the_first_mention_of_a_setting_leads_to_it_and_no_other() -> None:
    staged = stage.Staged("docs/configuration.md")
    name = "kafka_connections_max_per_ip"
    assert staged.text().count(f"[`{name}`](reference/settings.md#{name})") == 1
    assert name in staged.named


def test_a_link_leads_to_where_its_page_stands_in_the_site() -> None:
    assert "](../modules.md)" in stage.Staged("docs/how-to/test-a-client.md").text()
    assert "](../files/docs/clients/sarama.json)" not in stage.Staged("docs/clients.md").text()
    assert "](files/docs/clients/sarama.json)" in stage.Staged("docs/clients.md").text()
    assert "](files/docs/live.png)" in stage.Staged(stage.HOME).text()


def follow(site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "docs" / "links.py"), str(site)]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.html").write_text('<h1 id="top">There</h1>')
    index = tmp_path / "index.html"
    index.write_text('<a href="there.html#top">a</a><a href="#me" id="me">b</a><a href="https://example.com/">c</a>')
    good = follow(tmp_path)
    assert (good.returncode, good.stdout) == (0, "2 pages, 2 links in the site, 0 dead; 1 lead out of it\n")
    index.write_text('<a href="there.html#bottom">a</a><img src="gone.png">')
    bad = follow(tmp_path)
    assert bad.returncode == 1
    assert bad.stderr.splitlines() == [
        "index.html: gone.png leads nowhere",
        "index.html: there.html#bottom leads nowhere",
    ]


def test_a_site_without_pages_is_none(tmp_path: Path) -> None:
    assert follow(tmp_path).returncode == 1


def test_the_reference_has_a_place_of_its_own() -> None:
    assert settings_page.PLACE not in {place(page) for page in NAMES}
