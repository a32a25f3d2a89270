"""Each client that fails a check has its page of commands, made of its report as it is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from scripts import reproductions  # noqa: E402 - importable only from here on


@pytest.mark.parametrize("name", reproductions.failing())
def test_the_page_is_made_of_the_report(name: str) -> None:
    assert (reproductions.REPORTS / f"{name}.md").read_text() == reproductions.page(name)


def test_no_page_is_of_a_client_that_fails_nothing() -> None:
    assert sorted(path.stem for path in reproductions.REPORTS.glob("*.md")) == reproductions.failing()


@pytest.mark.parametrize("name", reproductions.failing())
def test_the_program_is_there(name: str) -> None:
    assert (ROOT / reproductions.REPRODUCTIONS[name].program).is_file()
