"""What a check found: its verdict, the evidence, the document that says so, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

PASS, WARN, FAIL, UNJUDGED = VERDICTS = ("pass", "warn", "fail", "unjudged")


class Finding(NamedTuple):
    """`evidence` is a sentence about what was seen; `source` a KIP or a document; `advice` is for what did not pass."""

    verdict: str
    evidence: str
    source: str
    advice: str = ""


class Judgement(NamedTuple):
    """`evidence`: a sentence about what was seen."""

    verdict: str
    evidence: str


def worst(findings: list[Judgement]) -> Judgement:
    """The worst verdict of all, and all evidence, the worst first. Unjudged parts do not count beside
    judged ones."""
    order = (FAIL, WARN, PASS, UNJUDGED)
    ranked = sorted(findings, key=lambda each: order.index(each[0]))
    return Judgement(ranked[0][0], "; ".join(evidence for _, evidence in ranked))
