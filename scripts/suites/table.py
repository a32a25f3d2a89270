"""The results of suites, kept in results.json, and the section of docs/clients.md made of it.

results.json: {suite: {"version": str, "runs": {peer: {"measured": date, "tests": {name: outcome}}}}}.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scripts.suites.peers import LIMITS, PEERS, QUOTAS, SETTINGS
from scripts.suites.suite import ROOT, Results, Suite

KEPT = Path(__file__).resolve().parent / "results.json"
PAGE = ROOT / "docs" / "clients.md"
BEGIN, END = "<!-- suites -->", "<!-- end of suites -->"
PROGRAMS = "<!-- programs -->"
"""Begins the section before BEGIN, which people write."""
PASSED = ("pass", "again")
ORACLES = {peer.name: peer.oracle for peer in PEERS if peer.oracle}

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
    """ "40 of 44", and how many of them at the second try, and how many skipped themselves, which are not of the 44."""
    told = list(results.values())
    notes = {"again": "at the second try", "skip": "skipped"}
    said = [f"{told.count(outcome)} {shown}" for outcome, shown in notes.items() if outcome in told]
    passed = sum(outcome in PASSED for outcome in told)
    return f"{passed} of {len(told) - told.count('skip')}" + (f" ({', '.join(said)})" if said else "")


def missed(runs: dict[str, Any], peer: str) -> list[str]:
    """The tests that Kafka passes and `peer` does not; none of Kafka itself."""
    oracle = ORACLES.get(peer)
    if oracle not in runs or peer not in runs:
        return []
    ours = runs[peer]["tests"]
    return [
        name for name, outcome in runs[oracle]["tests"].items() if outcome in PASSED and ours.get(name) not in PASSED
    ]


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
        for peer in PEERS:
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
    limits = ", ".join(f"`{name}={value}`" for name, value in LIMITS.items())
    quotas = ", ".join(
        f"`{kind}={value:.15g}` of `{entity}`"
        for entity, of_entity in QUOTAS.items()
        for kind, value in of_entity.items()
    )
    section = [BEGIN, HEAD.format(settings=settings, limits=limits, quotas=quotas), *lines(found, suites), END]
    text = PAGE.read_text()
    before, begun, rest = text.partition(BEGIN)
    after = rest.partition(END)[2] if begun else "\n"
    PAGE.write_text((before if begun else text + "\n") + "\n".join(section) + after)


HEAD = """
## The clients' own integration suites

Made by `make suites` (`python scripts/suites/run.py --write`), which takes each suite from its package, builds it, and runs it
against Apache Kafka and Turnstile with the same settings: {settings}. *12 of 13* is 12 passed of the 13 that ran; a test that
failed was run once more. *Limits on*: {limits}, and the quotas {quotas}; Kafka, which it is held against, had none.
"""
