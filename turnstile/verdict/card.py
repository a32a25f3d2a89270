"""The report card in the terminal."""

from __future__ import annotations

from textwrap import fill

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, VERDICTS, WARN
from turnstile.verdict.judge import CHECKS
from turnstile.verdict.run import Verdict

COLOURS = {PASS: "green", WARN: "yellow", FAIL: "red", UNJUDGED: "bright_black"}
_WIDTH = 110


def lines(verdict: Verdict) -> list[tuple[str, str, str]]:
    """(verdict, first line, details) of each check."""
    found = []
    for name, finding in verdict.findings.items():
        below = fill(finding.evidence, _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4)
        if finding.verdict in (WARN, FAIL):
            below += f"\n    {finding.source}\n" + fill(
                finding.advice, _WIDTH, initial_indent="    -> ", subsequent_indent=" " * 7
            )
        found.append((finding.verdict, f"{CHECKS[name].title} ({name})", below))
    return found


def summary(verdict: Verdict) -> str:
    """The number of checks of each verdict."""
    verdicts = [finding.verdict for finding in verdict.findings.values()]
    return ", ".join(f"{verdicts.count(each)} {each}" for each in VERDICTS if each in verdicts)
