"""A quota plan as one HTML page: the recommendation first, then what it is made from."""

from collections.abc import Mapping

from turnstile.pipeline.html_page import bullets, copyable, document, paragraph, section, table
from turnstile.pipeline.pictures import bars, lines
from turnstile.pipeline.quota_plan.demand import Demand
from turnstile.pipeline.quota_plan.quota_plan import Judged, QuotaPlan, Variant, value
from turnstile.pipeline.quota_plan.quota_text import (
    HEADINGS,
    SAYS,
    TITLES,
    UNITS,
    advised,
    effect,
    facts,
    kinds_of,
    minute,
    row,
    who,
)
from turnstile.quantities import duration

SHOWN = 12
DRAWN = 6
"""Curves on one picture: more can't be told apart."""


def page(plan: QuotaPlan, *, of: str) -> str:
    """One HTML file that needs no network. `of`: the log's name."""
    sections = [_advice(plan), *map(_settings, plan.recommended)]
    for each in plan.demands:
        sections += [_needed(each, plan), *_over_time(each, plan)]
    sections += [_candidates(plan), *_throttled_minutes(plan), *_clients(plan)]
    if plan.usage.put_aside:
        rows = [["reason", "lines"], *([reason, f"{count:,}"] for reason, count in plan.usage.put_aside.most_common())]
        sections.append(
            section(
                "Lines put aside", "These lines are in no number above.", table(rows, caption="Reasons and numbers")
            )
        )
    return document(f"Quotas for {of}", facts(plan), sections)


def _advice(plan: QuotaPlan) -> str:
    heading, *rows = advised(plan)
    words = (
        f"With {plan.headroom:.0%} headroom above what this log shows, for each {plan.by}. A quota that equals what was seen "
        "throttles clients on the first day with a little more."
    )
    spoken = [
        f"{each.name}: {SAYS[each.name]}. It would have throttled {effect(each.judged)}." for each in plan.recommended
    ]
    return section(
        "Recommended",
        words,
        table([heading, *rows], caption="The variants side by side"),
        *map(paragraph, spoken),
        bullets(plan.notes),
    )


def _settings(variant: Variant) -> str:
    blocks = (copyable(TITLES[vocabulary], "\n".join(each)) for vocabulary, each in variant.commands.items())
    return section(f"To set it: {variant.name}", "", *blocks)


def _needed(each: Demand, plan: QuotaPlan) -> str:
    """The highest rates, with the recommended quotas among them."""
    peaks = sorted(each.levels.peaks.items(), key=lambda item: (-item[1], item[0]))
    items = [(name, {"needed": value(each.kind, level)}) for name, level in peaks[:SHOWN]]
    for variant in plan.recommended:
        default = next(one.default for one in variant.advice if one.kind == each.kind)
        items.append((f"default quota, {variant.name}", {"cap": default}))
    items.sort(key=lambda item: -sum(item[1].values()))
    hidden = sum(each.levels.all_peaks.values()) - min(len(peaks), SHOWN)
    words = (
        "The smallest quota under which nothing of a client's traffic would have been throttled; a red bar is a recommended "
        "default."
    )
    words += f" {hidden:,} with less are not drawn." if hidden > 0 else ""
    drawn = bars(items, label=plan.by, value=UNITS[each.kind], caption=f"{each.kind} that each {plan.by} needed")
    return section(f"Needed: {each.kind}", words, drawn)


def _over_time(each: Demand, plan: QuotaPlan) -> list[str]:
    """The rates of the clients that need most, by minute."""
    top = [name for name in each.minutes if each.minutes[name]][:DRAWN]
    if not top:
        return []
    drawn: dict[str, list[tuple[float, float | None]]] = {
        name: [(at_ms / 1000, rate) for at_ms, rate in sorted(each.minutes[name].items())] for name in top
    }
    first, last = (at.timestamp() for at in plan.usage.span)
    for variant in plan.recommended:
        default = next(one.default for one in variant.advice if one.kind == each.kind)
        drawn[f"cap of {variant.name}"] = [(first, default), (last, default)]
    words = (
        f"The highest rate in each minute, as the quota's window has it, of the {len(top)} that need most; and the recommended "
        "defaults."
    )
    return [section(f"Over time: {each.kind}", words, lines(drawn, y=UNITS[each.kind]))]


def _candidates(plan: QuotaPlan) -> str:
    rows = [HEADINGS, *(row(one, kind) for one in plan.candidates for kind in kinds_of(one))]
    words = "Each replayed over the whole log, charge by charge, by the emulator's own arithmetic."
    return section("Candidates", words, table(rows, caption="What each candidate throttles"))


def _throttled_minutes(plan: QuotaPlan) -> list[str]:
    """Throttle time over time, of each candidate that throttles."""
    drawn = {
        one.name: [(at_ms / 1000, ms / 1000) for at_ms, ms in sorted(_filled(_minutes(one)).items())]
        for one in plan.candidates
        if one.outcome.clients
    }
    if not drawn:
        return []
    chosen = dict(list(drawn.items())[:DRAWN])
    words = "Seconds of throttle time that answers told in each minute, of all clients together."
    return [section("Throttle time, by minute", words, lines(chosen, y="seconds a minute"))]


def _minutes(one: Judged) -> dict[int, int]:
    total: dict[int, int] = {}
    for each in one.outcome.minutes.values():
        for at_ms, ms in each.items():
            total[at_ms] = total.get(at_ms, 0) + ms
    return total


def _filled(minutes: Mapping[int, int]) -> dict[int, int]:
    """The minutes, with zeros beside those above zero, so that a curve falls where nothing is throttled."""
    beside = {at_ms + step for at_ms in minutes for step in (-60_000, 60_000)}
    return {**dict.fromkeys(beside, 0), **minutes}


def _clients(plan: QuotaPlan) -> list[str]:
    """The clients that each candidate would have throttled."""
    heading = ["client", "quota", "charges", "throttled", "refused", "in all", "longest", "longest in the minute of"]
    made = []
    for one in plan.candidates:
        rows = [
            [
                who(each), each.kind, f"{each.charges:,}", f"{each.throttles:,}", f"{each.refusals:,}", duration(each.throttle_ms),
                duration(each.longest_ms), minute(each.worst_minute_ms),
            ]
            for each in one.outcome.clients[:SHOWN]
        ]  # fmt: skip
        if rows:
            rest = len(one.outcome.clients) - len(rows)
            caption = f"{one.name}: throttled clients" + (f", and {rest:,} more" if rest > 0 else "")
            made.append(table([heading, *rows], caption=caption, text=("quota",)))
    return [section("Clients that would have been throttled", "", *made)] if made else []
