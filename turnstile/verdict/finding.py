"""The finding of a check: its verdict, the evidence, the document that says so, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

PASS, WARN, FAIL, UNJUDGED = VERDICTS = ("pass", "warn", "fail", "unjudged")


class ApiFinding(NamedTuple):
    """The observations of one API. `throttled`: its throttled responses; `early`: after how many of these the client sent too
    early.

    `known`: the ticket of a published client that does so; empty for a verdict other than warn and fail.
    """

    api: str
    verdict: str
    throttled: int
    early: int
    known: str = ""


class Finding(NamedTuple):
    """`evidence` is a sentence about what was seen; `source` a KIP or a document; `advice` is for what did not pass.

    `apis`: of a check that judges each API by itself, the worst first.
    """

    verdict: str
    evidence: str
    source: str
    advice: str = ""
    apis: tuple[ApiFinding, ...] = ()


class Judgement(NamedTuple):
    """`evidence`: a sentence about what was seen."""

    verdict: str
    evidence: str


_WORST_FIRST = (FAIL, WARN, PASS, UNJUDGED)


def worst_first(apis: Iterable[ApiFinding]) -> tuple[ApiFinding, ...]:
    """The findings by verdict, the worst first; among the same verdict those with the largest share of early requests first."""
    return tuple(
        sorted(
            apis, key=lambda each: (_WORST_FIRST.index(each.verdict), -each.early / max(each.throttled, 1), each.api)
        )
    )


def worst(findings: list[Judgement]) -> Judgement:
    """The worst verdict of all, and all evidence, the worst first. Unjudged parts do not count beside
    judged ones."""
    ranked = sorted(findings, key=lambda each: _WORST_FIRST.index(each[0]))
    return Judgement(ranked[0][0], "; ".join(evidence for _, evidence in ranked))
