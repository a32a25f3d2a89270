"""What was found, kept in results.json, and the section of docs/clients.md made of it.

results.json: {suite: {"version": str, "runs": {peer: {"measured": date, "tests": {name: "pass" | "fail" | "skip"}}}}}.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scripts.suites.peers import PEERS, SETTINGS
from scripts.suites.suite import ROOT, Results, Suite

KEPT = Path(__file__).resolve().parent / "results.json"
PAGE = ROOT / "docs" / "clients.md"
BEGIN, END = "<!-- suites -->", "<!-- end of suites -->"
KAFKA, *OURS = (peer.name for peer in PEERS)

Found = dict[str, Any]


def load() -> Found:
    """The results that are kept."""
    return dict(json.loads(KEPT.read_text())) if KEPT.exists() else {}


def add(found: Found, suite: Suite, peer: str, measured: str, results: Results) -> None:
    """Puts one run in its place; runs of another version of the suite are forgotten."""
    of_suite = found.setdefault(suite.name, {"version": suite.version, "runs": {}})
    if of_suite["version"] != suite.version:
        of_suite.update(version=suite.version, runs={})
    of_suite["runs"][peer] = {"measured": measured, "tests": dict(sorted(results.items()))}


def counts(results: Results) -> str:
    """ "40 of 44", and how many were skipped; a test that skips itself is not counted among those that ran."""
    told = list(results.values())
    skipped = told.count("skip")
    return f"{told.count('pass')} of {len(told) - skipped}" + (f" ({skipped} skipped)" if skipped else "")


def missed(runs: dict[str, Any], peer: str) -> list[str]:
    """The tests that Kafka passes and `peer` does not."""
    if KAFKA not in runs or peer not in runs:
        return []
    ours = runs[peer]["tests"]
    return [name for name, outcome in runs[KAFKA]["tests"].items() if outcome == "pass" and ours.get(name) != "pass"]


def lines(found: Found, suites: Iterable[Suite]) -> list[str]:
    """The table, and below it by name what Kafka passes and Turnstile does not."""
    table = ["| suite | version | " + " | ".join(peer.shown for peer in PEERS) + " | measured |"]
    table.append("|---" * (3 + len(PEERS)) + "|")
    below = []
    for suite in suites:
        if suite.name not in found:
            continue
        runs = found[suite.name]["runs"]
        cells = [counts(runs[peer.name]["tests"]) if peer.name in runs else "–" for peer in PEERS]
        dates = sorted({run["measured"] for run in runs.values()})
        table.append(f"| {suite.shown} | {found[suite.name]['version']} | {' | '.join(cells)} | {', '.join(dates)} |")
        for peer in PEERS[1:]:
            names = missed(runs, peer.name)
            if names:
                below.append(f"- {suite.shown}, {peer.shown}: " + ", ".join(f"`{name}`" for name in names))
    if below:
        table += ["", "Kafka passes, Turnstile does not:", "", *below]
    return table


def write(found: Found, suites: Iterable[Suite]) -> None:
    """Keeps the results, and puts the section between its markers in docs/clients.md."""
    KEPT.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    settings = ", ".join(f"`{name}={value}`" for name, value in SETTINGS.items())
    section = [BEGIN, HEAD.format(settings=settings), *lines(found, suites), END]
    text = PAGE.read_text()
    before, begun, rest = text.partition(BEGIN)
    after = rest.partition(END)[2] if begun else "\n"
    PAGE.write_text((before if begun else text + "\n") + "\n".join(section) + after)


HEAD = """
## The clients' own integration suites

Made by `make suites` (`python scripts/suites/run.py --write`), which takes each suite from its package, builds it, and runs it
against Apache Kafka and Turnstile with the same settings: {settings}.
"""
