"""A plan as one HTML page: the recommendation first, then what it is made from."""

from shards.limits.connection_limits import CORE_IP_CAP, CORE_IP_OVERRIDES
from turnstile.pipeline.html_page import copied, document, paragraph, section, table
from turnstile.pipeline.pictures import bars
from turnstile.pipeline.plan.peaks_picture import peaks_picture
from turnstile.pipeline.plan.plan import LimitPlan
from turnstile.pipeline.plan.plan_text import (
    LOOKS_LIKE,
    SAYS,
    TITLES,
    facts,
    headings,
    hits,
    left_out,
    name,
    overridden,
    put_aside,
    row,
    side_by_side,
)
from turnstile.pipeline.plan.variants import Variant


def page(plan: LimitPlan, *, of: str) -> str:
    """One HTML file that needs no network. `of`: the log's name."""
    sections = [
        _advice(plan),
        *map(_settings, plan.recommended),
        _peaks(plan),
        *_by_cap(plan),
        _candidates(plan),
        *_standing_out(plan),
    ]
    if plan.bad_reasons:
        rows = [["reason", "rows"], *([reason, f"{count:,}"] for reason, count in put_aside(plan))]
        sections.append(
            section("Rows put aside", "They count nowhere above.", table(rows, caption="Why, and how many"))
        )
    return document(f"Plan for {of}", facts(plan), sections)


def _advice(plan: LimitPlan) -> str:
    """The variants side by side, and whom each would have hit."""
    heading, *rows = side_by_side(plan)
    caps = " or ".join(f"{each.per_ip_cap:,} ({each.name})" for each in plan.recommended)
    said = [f"{each.name}: {SAYS[each.name]}. " + (f"It would have hit {hits(each)}." if each.hit else "It hits no address.")
            for each in plan.recommended]  # fmt: skip
    said += [*([left_out(plan)] if plan.left_out else []), *plan.notes]
    return section(
        f"Recommended: {caps} connections per address",
        f"With {plan.headroom:.0%} headroom above what this log shows: a cap that equals it is an outage on the first day with "
        "one connection more.",
        table([heading, *rows], caption="The variants side by side"),
        *map(paragraph, said),
    )


def _settings(variant: Variant) -> str:
    """Its commands, a block to copy for each vocabulary."""
    blocks = (copied(TITLES[vocabulary], "\n".join(lines)) for vocabulary, lines in variant.commands.items())
    return section(f"To set it: {variant.name}", "", *blocks)


def _peaks(plan: LimitPlan) -> str:
    """Every plan has this picture; a candidate without a cap for addresses has no place on it."""
    caps = [one["limits"].get(CORE_IP_CAP) for one in plan.candidates]
    others = [name(one) for one, cap in zip(plan.candidates, caps, strict=True) if cap is None]
    words = (
        "How many addresses had at least so many connections open at once; both scales are logarithmic. A line is a cap: what is "
        "right of it, it touches."
    )
    if others:
        words += f" Not on it, as they are no cap for each address: {'; '.join(others)}."
    marked = [cap for cap in caps if isinstance(cap, int)]
    recommended = {each.per_ip_cap: each.name for each in reversed(plan.recommended)}
    return section("Open at once, by address", words, peaks_picture(plan.peaks, marked, recommended))


def _by_cap(plan: LimitPlan) -> list[str]:
    shares = [
        (one["limits"][CORE_IP_CAP], 100 * one["refused_share"])
        for one in plan.candidates
        if set(one["limits"]) - {CORE_IP_OVERRIDES} == {CORE_IP_CAP}
    ]
    if len(shares) < 2:
        return []
    items = [(str(cap), {"ip_cap": share}) for cap, share in sorted(shares)]
    drawn = bars(
        items, unit="%", label="per-IP cap", value="refused", caption="The share of connections each candidate refuses"
    )
    return [section("Refused, by per-IP cap", "", drawn)]


def _candidates(plan: LimitPlan) -> str:
    rows = [headings(plan), *(row(one) for one in plan.candidates)]
    words = "Each replayed over the whole log." + (f" {overridden(plan)}." if plan.overrides else "")
    return section("Candidates", words, table(rows, caption="What each candidate refuses and delays"))


def _standing_out(plan: LimitPlan) -> list[str]:
    if not plan.talkers:
        return []
    rows = [
        [each.ip, LOOKS_LIKE[each.kind], "; ".join(each.evidence), str(each.peak), f"{each.share:.1%}"]
        for each in plan.talkers
    ]
    heading = ["address", "looks like", "evidence", "open at most", "of all"]
    words = (
        "Far more open at once than most. NAT gateways may need an override, leaks need mending. Many clients behind one address "
        "show by three signs: many more connections in all, as long as others', at all hours."
    )
    drawn = table([heading, *rows], caption="Addresses with the most open at once", text=heading[1:3])
    return [section("Addresses that stand out", words, drawn)]
