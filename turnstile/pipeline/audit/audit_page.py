"""What an audit says as one HTML page: the verdict on top, each check, and what was found."""

from collections.abc import Sequence
from typing import Any

from turnstile.pipeline.audit.verdict import FINDINGS, HELD, NOT_JUDGED, UNKNOWN, AuditResult, Check
from turnstile.pipeline.html_page import document, section, table

WORDS = {
    HELD: "No limit was exceeded, and every refusal was right: proved by the journal alone.",
    UNKNOWN: "Nothing was seen to be exceeded, but the journal is not whole or contradicts itself, so nothing is proved.",
}
FOUND = "A limit was exceeded, or connections were refused without cause: the checks below say which and when."


def page(result: AuditResult, *, name: str) -> str:
    """The whole page. `name`: of the journal."""
    checks = [
        ["check", "verdict", "what was seen"],
        *([each.name, each.verdict, each.detail] for each in result.checks),
    ]
    found = [each for each in result.checks if each.verdict not in (HELD, NOT_JUDGED)]
    return document(
        f"{result.verdict}: {name}",
        f"{result.events:,} events. {WORDS.get(result.verdict, FOUND)}",
        [
            section("Checks", "What each is about, and what is not proved: docs/audit.md.",
                    table(checks, caption="The checks and their verdicts", text=checks[0])),
            *(_found(each) for each in found),
        ],
    )  # fmt: skip


def _found(check: Check) -> str:
    """One check that did not hold, with its first instants, and the brokers that are concerned."""
    words = "The first in order of time." if check.verdict in FINDINGS else "What is missing, or does not fit."
    brokers: list[list[object]] = [
        ["broker", "how many"],
        *([broker, f"{count:,}"] for broker, count in sorted(check.brokers.items())),
    ]
    rows = _evidence(check.evidence)
    evidence = table(rows, caption=f"{check.name}: evidence", text=rows[0]) if check.evidence else ""
    counted = table(brokers, caption=f"{check.name}: by broker") if check.brokers else ""
    return section(f"{check.name}: {check.verdict}", words, evidence, counted)


def _evidence(rows: Sequence[dict[str, Any]]) -> list[list[object]]:
    names: list[object] = list(dict.fromkeys(name for row in rows for name in row))
    return [names, *([_plain(row.get(str(name))) for name in names] for row in rows)]


def _plain(value: Any) -> object:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else value
