"""The verdict as one HTML page: for each check what the broker did, above, and what the client did, below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from turnstile.pipeline.html_page import Badge, badge_line, document, paragraph, section, table
from turnstile.verdict.card import summary
from turnstile.verdict.checks.groups import FETCHES, HEARTBEATS
from turnstile.verdict.checks.kip599 import MUTATIONS
from turnstile.verdict.checks.kip714 import ASKED, PUSHED
from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, WARN, Finding
from turnstile.verdict.judge import CHECKS
from turnstile.verdict.run import Verdict
from turnstile.verdict.timeline import SECOND, Event, Step, Timeline, is_work

_WIDTH, _LEFT = 860, 124
_READABLE = 760
_BAND, _LANE = 22, 20
COLOURS = {PASS: "#1a7f4b", WARN: "#e08a1e", FAIL: "#d1495b", UNJUDGED: "#6b7280"}
_BLOCKS = {
    "baseline": "#8fa3b8",
    "settle": "#8fa3b8",
    "telemetry": "#8fa3b8",
    "throttle": "#e08a1e",
    "overlap": "#e08a1e",
    "mutation": "#e08a1e",
}
_REFUSED = "#d1495b"
_FREE = "#8fa3b8"
_LABEL = "#14181d"  # readable on each of these, also where a dark page makes them brighter
_LEGEND = (
    "Each chart shows what the broker did (orange: throttle the client; red: refuse it or end its connections; grey: nothing), and "
    "below that what the client did."
)
_INK, _BAD = "#2563a8", "#d1495b"

Lane = tuple[str, str, Callable[[Event], bool]]
_REQUESTS: Lane = ("requests", _INK, is_work)
_EARLY: Lane = ("while muted", _BAD, lambda event: event.kind == "early")
_ATTEMPTS: Lane = ("admitted", _INK, lambda event: event.kind == "admitted")
_TURNED_AWAY: Lane = ("refused", _BAD, lambda event: event.kind == "refused")
_CLOSED: Lane = ("closed by the client", _BAD, lambda event: event.kind == "closed" and event.reason == "client")


def _api(*names: str, shown: str = "") -> Lane:
    return (shown or names[0], _INK, lambda event: event.kind == "request" and event.api in names)


_LANES: dict[str, tuple[Lane, ...]] = {
    "kip219": (_REQUESTS, _EARLY),
    "deadline": (_REQUESTS,),
    "not-failure": (_REQUESTS, _ATTEMPTS, _CLOSED),
    "backoff": (_ATTEMPTS, _TURNED_AWAY, _REQUESTS),
    "herd": (_ATTEMPTS, _TURNED_AWAY),
    "footprint": (_ATTEMPTS, _CLOSED),
    "groups": (_api(*HEARTBEATS, shown="heartbeats"), _api(*FETCHES, shown="fetches"), _api("JoinGroup")),
    "kip599": (_api(*MUTATIONS), _EARLY),
    "kip714": (_api(PUSHED, shown="pushes"), _api(ASKED, shown="subscription requests")),
    "delivery": (_api("Produce"),),
    "recovery": (_REQUESTS,),
    "shutdown": (_ATTEMPTS, _TURNED_AWAY),
}


def page(verdict: Verdict) -> str:
    """The whole page; it needs no network."""
    rows: list[tuple[object, ...]] = [("the client ...", "verdict", "evidence", "check")]
    rows += [
        (CHECKS[name].title, Badge(each.verdict, COLOURS[each.verdict]), each.evidence, name)
        for name, each in verdict.findings.items()
    ]
    card = table(rows, caption="The checks and their evidence", text=("verdict", "evidence", "check"))
    sections = [section("Report card", summary(verdict), card, paragraph(_LEGEND))]
    for name, finding in verdict.findings.items():
        sections.append(_section(name, finding, verdict.timeline))
    return document("Will this client survive?", verdict.client, sections)


def _section(name: str, finding: Finding, timeline: Timeline) -> str:
    words = badge_line(finding.verdict, COLOURS[finding.verdict], finding.evidence) + f"<p>{escape(finding.source)}</p>"
    if finding.advice:
        words += f"<p><b>{escape(finding.advice)}</b></p>"
    if finding.apis:
        rows: list[tuple[object, ...]] = [("API", "verdict", "throttled", "sent too early after", "known")]
        rows += [
            (each.api, Badge(each.verdict, COLOURS[each.verdict]), each.throttled, each.early, each.known)
            for each in finding.apis
        ]
        words += table(rows, caption="Each API by itself, the worst first", text=("verdict", "known"))
    return section(f"{CHECKS[name].title} ({name})", "", words, _picture(name, timeline))


def _picture(name: str, timeline: Timeline) -> str:
    """The steps that the check looks at, and marks for what the client did in them."""
    kinds = CHECKS[name].steps
    steps = [step for step in timeline.steps if step.kind in kinds]
    if not steps or name not in _LANES:
        return ""
    began_ns, ended_ns = steps[0].began_ns, steps[-1].ended_ns
    shown = [step for step in timeline.steps if step.began_ns >= began_ns and step.ended_ns <= ended_ns]
    scale = (_WIDTH - _LEFT - 10) / max(ended_ns - began_ns, 1)

    def at(time_ns: int) -> float:
        return _LEFT + (time_ns - began_ns) * scale

    parts = [f'<text x="{_LEFT - 8}" y="15" text-anchor="end">broker</text>']
    for step in shown:
        parts += _block(step, at)
    events = [event for event in timeline.events if began_ns <= event.at_ns < ended_ns]
    height = _BAND + 8
    for label, colour, wanted in _LANES[name]:
        marks = [event for event in events if wanted(event)]
        parts += _lane(f"{label} ({len(marks)})", colour, {round(at(event.at_ns), 1) for event in marks}, height)
        height += _LANE
    parts += _axis(began_ns, ended_ns, at, height)
    height += 18
    title = f"{name}: what the broker did, and below what the client did"
    frame = f'viewBox="0 0 {_WIDTH} {height}" style="min-width: {_READABLE}px"'  # a narrow page scrolls it
    return f'<div class="scroll"><svg {frame} role="img" aria-label="{title}">{"".join(parts)}</svg></div>'


def _block(step: Step, at: Callable[[int], float]) -> list[str]:
    """A step as a bar: what is done to the client, and after it was lifted in a paler colour."""
    x, end = at(step.began_ns), at(step.ended_ns)
    cut = at(step.detail["cut_ns"]) if "cut_ns" in step.detail else x
    lifted = at(step.detail["lifted_ns"]) if "lifted_ns" in step.detail else end
    colour = _BLOCKS.get(step.kind, _REFUSED)
    parts = []
    for begin, until, fill in ((x, cut, _FREE), (cut, lifted, colour), (lifted, end, _FREE)):
        if until - begin > 0.5:
            tip = f"<title>{escape(step.name)}, {step.seconds:.1f} s</title>"
            place = f'x="{begin:.1f}" y="2" width="{until - begin - 0.5:.1f}" height="{_BAND - 4}" rx="2"'
            parts.append(f'<rect {place} fill="{fill}">{tip}</rect>')
    room = int((end - x - 8) / 7)
    if room >= 3:
        shown = step.name if len(step.name) <= room else step.name[: room - 1] + "…"
        parts.append(f'<text x="{x + 4:.1f}" y="16" style="fill:{_LABEL}">{escape(shown)}</text>')
    return parts


def _lane(label: str, colour: str, places: Sequence[float] | set[float], y: int) -> list[str]:
    parts = [f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(label)}</text>']
    parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y + _LANE - 2}" y2="{y + _LANE - 2}"/>')
    drawn = "".join(f"M{x:.1f} {y + 2}v{_LANE - 5}" for x in sorted(places))
    if drawn:
        parts.append(f'<path d="{drawn}" stroke="{colour}" stroke-width="1.2" fill="none"/>')
    return parts


def _axis(began_ns: int, ended_ns: int, at: Callable[[int], float], y: int) -> list[str]:
    seconds = (ended_ns - began_ns) / SECOND
    every = next(each for each in (0.5, 1, 2, 5, 10, 20, 60, 600) if seconds / each <= 12 or each == 600)
    ticks = [n * every for n in range(int(seconds / every) + 1)]
    return [
        f'<text x="{at(began_ns + int(tick * SECOND)):.1f}" y="{y + 13}" text-anchor="middle">{tick:g} s</text>'
        for tick in ticks
    ]
