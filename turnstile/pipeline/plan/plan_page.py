"""A plan as one HTML page: the recommendation first, then what it is made from."""

from turnstile.pipeline.html_page import copyable, document, paragraph, section, table
from turnstile.pipeline.pictures import bars
from turnstile.pipeline.plan.candidates import settings_of
from turnstile.pipeline.plan.cluster_cap import ClusterCap
from turnstile.pipeline.plan.cluster_rate import ClusterRate
from turnstile.pipeline.plan.peaks_picture import peaks_picture
from turnstile.pipeline.plan.plan import LimitPlan
from turnstile.pipeline.plan.plan_text import (
    TITLES,
    facts,
    headings,
    hits,
    left_out,
    looks_like,
    name,
    of_cluster,
    of_cluster_rate,
    overridden,
    put_aside,
    rates_side_by_side,
    row,
    says,
    side_by_side,
)
from turnstile.pipeline.plan.variants import Variant
from turnstile.quantities import plural


def page(plan: LimitPlan, *, of: str) -> str:
    """One HTML file that needs no network. `of`: the log's name."""
    sections = [
        _advice(plan),
        *map(_settings, plan.recommended),
        *([_of_cluster(plan, plan.cluster)] if plan.cluster else []),
        *([_of_cluster_rate(plan.cluster_rate)] if plan.cluster_rate else []),
        _peaks(plan),
        *_by_cap(plan),
        _candidates(plan),
        *_standing_out(plan),
    ]
    if plan.bad_reasons:
        rows = [["reason", "rows"], *([reason, f"{count:,}"] for reason, count in put_aside(plan))]
        sections.append(
            section("Rows put aside", "These rows are in no number above.", table(rows, caption="Reasons and numbers"))
        )
    return document(f"Plan for {of}", facts(plan), sections)


def _advice(plan: LimitPlan) -> str:
    """The variants side by side, and whom each would have hit."""
    heading, *rows = side_by_side(plan)
    caps = " or ".join(f"{each.cap:,} ({each.name})" for each in plan.recommended)
    said = [f"{each.name}: {says(each)}. " + (f"It would have hit {hits(each)}." if each.hit else f"It hits no {plan.by.noun}.")
            for each in plan.recommended]  # fmt: skip
    said += [*([left_out(plan)] if plan.left_out else []), *plan.notes]
    return section(
        f"Recommended: {caps} connections per {plan.by.noun}",
        f"With {plan.headroom:.0%} headroom above what this log shows: a cap that equals it is an outage on the first day with "
        "one connection more.",
        table([heading, *rows], caption="The variants side by side"),
        *map(paragraph, said),
    )


def _settings(variant: Variant) -> str:
    """The commands of a variant, a block to copy for each vocabulary."""
    blocks = (copyable(TITLES[vocabulary], "\n".join(lines)) for vocabulary, lines in variant.commands.items())
    return section(f"To set it: {variant.name}", "", *blocks)


def _of_cluster(plan: LimitPlan, found: ClusterCap) -> str:
    blocks = (copyable(TITLES[vocabulary], "\n".join(lines)) for vocabulary, lines in found.commands.items())
    return section("The whole cluster", of_cluster(plan, found), *blocks)


def _of_cluster_rate(found: ClusterRate) -> str:
    heading, *rows = rates_side_by_side(found)
    blocks = (
        copyable(f"{variant.name}, {TITLES[vocabulary]}", "\n".join(lines))
        for variant in found.recommended
        for vocabulary, lines in variant.commands.items()
    )
    compared = table([heading, *rows], caption="Rates of the whole cluster side by side")
    return section("The rate of the whole cluster", of_cluster_rate(found), compared, *blocks)


def _peaks(plan: LimitPlan) -> str:
    """Every plan has this picture; a candidate without a cap for each address or user has no place on it."""
    caps = [one["limits"].get(settings_of(plan.by).cap) for one in plan.candidates]
    others = [name(plan, one) for one, cap in zip(plan.candidates, caps, strict=True) if cap is None]
    words = (
        f"How many {plural(plan.by.noun, 2)} had at least so many connections open at once; both scales are logarithmic. "
        "A line is a cap: what is right of it, it touches."
    )
    if others:
        words += f" Not on it, as they are no cap for each {plan.by.noun}: {'; '.join(others)}."
    marked = [cap for cap in caps if isinstance(cap, int)]
    recommended = {each.cap: each.name for each in reversed(plan.recommended)}
    return section(
        f"Open at once, by {plan.by.noun}", words, peaks_picture(plan.peaks, marked, recommended, plan.by.noun)
    )


def _by_cap(plan: LimitPlan) -> list[str]:
    own = settings_of(plan.by)
    shares = [
        (one["limits"][own.cap], 100 * one["refused_share"])
        for one in plan.candidates
        if set(one["limits"]) - {own.overrides} == {own.cap}
    ]
    if len(shares) < 2:
        return []
    items = [(str(cap), {f"{plan.by.name}_cap": share}) for cap, share in sorted(shares)]
    label = "per-IP cap" if plan.by.has_networks else f"cap per {plan.by.noun}"
    drawn = bars(
        items, unit="%", label=label, value="refused", caption="The share of connections each candidate refuses"
    )
    return [section(f"Refused, by {label}", "", drawn)]


def _candidates(plan: LimitPlan) -> str:
    rows = [headings(plan), *(row(plan, one) for one in plan.candidates)]
    words = "Each replayed over the whole log." + (f" {overridden(plan)}." if plan.overrides else "")
    return section("Candidates", words, table(rows, caption="What each candidate refuses and delays"))


def _standing_out(plan: LimitPlan) -> list[str]:
    if not plan.talkers:
        return []
    rows = [
        [each.name, looks_like(each.kind, plan.by), "; ".join(each.evidence), str(each.peak), f"{each.share:.1%}"]
        for each in plan.talkers
    ]
    heading = [plan.by.noun, "looks like", "evidence", "open at most", "of all"]
    many = "behind one address" if plan.by.has_networks else f"of one {plan.by.noun}"
    gateways = "NAT gateways may need an override; leaks" if plan.by.has_networks else "Leaks"
    words = (
        f"They have far more connections open at once than most. {gateways} need a fix in the client. Three signs show many "
        f"clients {many}: "
        "many more connections in all, of the usual length, at all hours."
    )
    them = plural(plan.by.noun, 2).capitalize()
    drawn = table([heading, *rows], caption=f"{them} with the most open at once", text=heading[1:3])
    return [section(f"{them} that stand out", words, drawn)]
