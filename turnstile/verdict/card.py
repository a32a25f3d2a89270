"""The report card in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, VERDICTS, WARN, ApiFinding
from turnstile.verdict.judge import CHECKS
from turnstile.verdict.run import Verdict

COLOURS = {PASS: "green", WARN: "yellow", FAIL: "red", UNJUDGED: "bright_black"}
_WIDTH = 110


def lines(verdict: Verdict) -> list[tuple[str, str, str]]:
    """(verdict, first line, details) of each check."""
    found = []
    for name, finding in verdict.findings.items():
        below = "\n".join(
            fill(line, _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4)
            for line in (finding.evidence, *api_lines(finding.apis))
        )
        if finding.verdict in (WARN, FAIL):
            below += f"\n    {finding.source}\n" + fill(
                finding.advice, _WIDTH, initial_indent="    -> ", subsequent_indent=" " * 7
            )
        found.append((finding.verdict, f"{CHECKS[name].title} ({name})", below))
    return found


def api_lines(apis: Sequence[ApiFinding]) -> list[str]:
    """A line for each API that the client fails or nearly does, the worst first; and one for those of each other verdict."""
    lines = [
        f"{each.verdict} {each.api}: after {each.early} of {each.throttled} throttled responses"
        + (f" ({each.known})" if each.known else "")
        for each in apis
        if each.verdict in (FAIL, WARN)
    ]
    for verdict in (PASS, UNJUDGED):
        names = [f"{each.api} ({each.throttled})" for each in apis if each.verdict == verdict]
        lines += [f"{verdict} {', '.join(names)}"] if names else []
    return lines


def summary(verdict: Verdict) -> str:
    """The number of checks of each verdict."""
    verdicts = [finding.verdict for finding in verdict.findings.values()]
    return ", ".join(f"{verdicts.count(each)} {each}" for each in VERDICTS if each in verdicts)
