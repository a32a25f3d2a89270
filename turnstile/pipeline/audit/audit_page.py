"""The result of an audit as one HTML page: the verdict on top, each check, and what was found."""

from collections.abc import Sequence

from turnstile.pipeline.audit.audit_result import (
    EXCEEDED,
    FINDINGS,
    HELD,
    NOT_JUDGED,
    NOT_JUSTIFIED,
    UNKNOWN,
    AuditResult,
    Check,
)
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.html_page import Badge, badge_line, document, paragraph, section, table

COLOURS = {HELD: "#1a7f4b", EXCEEDED: "#d1495b", NOT_JUSTIFIED: "#d1495b", UNKNOWN: "#b0690b", NOT_JUDGED: "#6b7280"}
NONE_SET = paragraph("No limit of connections was set.")

WORDS = {
    HELD: "No limit was exceeded, and every refusal was justified: the journal alone proves it.",
    UNKNOWN: "No limit was seen to be exceeded, but the journal is incomplete or contradicts itself, so nothing is proved.",
}
FOUND = "A limit was exceeded, or connections were refused without cause: the checks below say which and when."


def page(result: AuditResult, *, name: str) -> str:
    """The whole page. `name`: of the journal."""
    checks: list[Sequence[object]] = [("check", "verdict", "findings")]
    checks += [(each.name, Badge(each.verdict, COLOURS[each.verdict]), each.detail) for each in result.checks]
    limits: list[Sequence[object]] = [("limit", "its values, in order")]
    limits += [(name, " -> ".join(values)) for name, values in result.limits.items()]
    found = [each for each in result.checks if each.verdict not in (HELD, NOT_JUDGED)]
    return document(
        f"{result.verdict}: {name}",
        f"{result.facts}.",
        [
            section("Verdict", "", badge_line(result.verdict, COLOURS[result.verdict], WORDS.get(result.verdict, FOUND))),
            *(_found(each) for each in found),
            section("Checks", "The page about the audit in the documentation says what each check proves, and what it does not.",
                    table(checks, caption="The checks and their verdicts", text=("verdict", "findings"))),
            section("Limits in force", "The limits on connections in the journal's configuration.",
                    table(limits, caption="Limits", text=limits[0][1:]) if result.limits else NONE_SET),
        ],
    )  # fmt: skip


def _found(check: Check) -> str:
    """One check that did not hold, with its first instants, and the brokers that are concerned."""
    words = (
        "The first cases, in order of time."
        if check.verdict in FINDINGS
        else "The events that are missing or do not fit."
    )
    brokers: list[list[object]] = [
        ["broker", "how many"],
        *([broker, f"{count:,}"] for broker, count in sorted(check.brokers.items())),
    ]
    rows = _evidence(check.evidence)
    evidence = table(rows, caption=f"{check.name}: evidence", text=rows[0]) if check.evidence else ""
    counted = table(brokers, caption=f"{check.name}: by broker") if check.brokers else ""
    return section(f"{check.name}: {check.verdict}", words, evidence, counted)


def _evidence(rows: Sequence[TableRow]) -> list[list[object]]:
    names: list[object] = list(dict.fromkeys(name for row in rows for name in row))
    return [names, *([_plain(row.get(str(name))) for name in names] for row in rows)]


def _plain(value: object) -> object:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else value
