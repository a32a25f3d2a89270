"""The page of real clients says what their reports say, and a report of several runs what most of them said."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def scoreboard() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scoreboard", ROOT / "scripts" / "scoreboard.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(*verdicts: str, measured: str = "2026-11-28") -> dict[str, Any]:
    checks = [
        {"id": f"check-{at}", "verdict": verdict, "evidence": f"{verdict} on {measured}"}
        for at, verdict in enumerate(verdicts)
    ]
    return {"client": "a", "measured": measured, "checks": checks}


def test_the_page_is_made_of_the_reports(scoreboard):
    assert (ROOT / "docs" / "clients.md").read_text() == scoreboard.page()


def test_of_several_runs_most_decide_and_of_as_many_the_worse(scoreboard):
    runs = [
        report("pass", "warn", "unjudged"),
        report("fail", "pass", "pass"),
        report("pass", "fail", "unjudged", measured="later"),
    ]
    merged = scoreboard.merged(runs)
    assert [each["verdict"] for each in merged["checks"]] == ["pass", "fail", "unjudged"]
    assert [each["evidence"] for each in merged["checks"]] == [
        "pass on 2026-11-28",
        "fail on later",
        "unjudged on 2026-11-28",
    ]
    assert merged["checks"][1]["runs"] == ["warn", "pass", "fail"]
    assert [scoreboard._mark(merged, f"check-{at}") for at in range(3)] == ["pass 2/3", "**fail** 1/3", "– 2/3"]
    assert scoreboard._mark(scoreboard.merged([report("warn")]), "check-0") == "*warn*"
