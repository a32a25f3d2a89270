"""The page of real clients says what their reports say."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_is_made_of_the_reports():
    spec = importlib.util.spec_from_file_location("scoreboard", ROOT / "scripts" / "scoreboard.py")
    assert spec is not None and spec.loader is not None
    scoreboard = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scoreboard)
    assert (ROOT / "docs" / "clients.md").read_text() == scoreboard.page()
