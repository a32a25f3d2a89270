"""A plan in words: for a terminal, and what its page says as well."""

from turnstile.pipeline.inputs.entities import EntityType
from turnstile.pipeline.plan.candidates import CandidateOutcome, settings_of
from turnstile.pipeline.plan.cluster_cap import ClusterCap
from turnstile.pipeline.plan.cluster_rate import ClusterRate
from turnstile.pipeline.plan.plan import LimitPlan
from turnstile.pipeline.plan.talkers import BURST, LEAK, NAT, UNKNOWN
from turnstile.pipeline.plan.variants import Variant
from turnstile.quantities import plural

TITLES = {
    "redpanda": "Redpanda",
    "kafka": "Kafka",
    "turnstile": "Turnstile",
    "rehearsal": "Turnstile, rehearsed first: observed, no client is refused",
}
LOOKS_LIKE = {
    NAT: "many clients behind one address (NAT, a proxy)",
    LEAK: "a client that leaks connections",
    BURST: "a burst",
    UNKNOWN: "many open; the log does not say why",
}


def looks_like(kind: str, by: EntityType) -> str:
    """A kind of talker in words."""
    if kind == NAT and not by.has_networks:
        return f"many clients of one {by.noun}"
    return LOOKS_LIKE[kind]


def says(variant: Variant) -> str:
    """A variant in words."""
    if variant.overrides:
        return "a lower cap, and overrides for those that need more"
    return f"one cap for every {variant.by.noun}"


def printed(plan: LimitPlan) -> str:
    """The plan as text for a terminal."""
    them = plural(plan.by.noun, 2)
    parts = [
        facts(plan),
        *(f"  {count:>9,}  {reason}" for reason, count in put_aside(plan)),
        "",
        columns([headings(plan), *(row(plan, one) for one in plan.candidates)]),
        *(["", overridden(plan)] if plan.overrides else []),
    ]
    if plan.talkers:
        parts += ["", f"{them.capitalize()} that stand out, and the evidence:"]
        for each in plan.talkers:
            parts += [
                f"  {each.name:39} {looks_like(each.kind, plan.by)}: {each.peak} open at most, {each.share:.1%} of all",
                f"  {'':39}   {'; '.join(each.evidence)}",
            ]
    parts += ["", f"Recommended, with {plan.headroom:.0%} headroom above what this log shows:", ""]
    parts.append(columns(side_by_side(plan)))
    parts += [f"{each.name} would have hit {hits(each)}" for each in plan.recommended if each.entities_hit]
    parts += [left_out(plan)] if plan.left_out else []
    for variant in plan.recommended:
        for vocabulary, commands in variant.commands.items():
            parts += ["", f"# {variant.name}, {TITLES[vocabulary]}", *commands]
    if plan.cluster:
        parts += ["", of_cluster(plan, plan.cluster)]
        for vocabulary, commands in plan.cluster.commands.items():
            parts += ["", f"# the whole cluster, {TITLES[vocabulary]}", *commands]
    if plan.cluster_rate:
        parts += ["", of_cluster_rate(plan.cluster_rate), "", columns(rates_side_by_side(plan.cluster_rate))]
        for rate in plan.cluster_rate.recommended:
            for vocabulary, commands in rate.commands.items():
                parts += ["", f"# the rate of the whole cluster, {rate.name}, {TITLES[vocabulary]}", *commands]
    parts += ["", *plan.notes] if plan.notes else []
    return "\n".join(parts)


def of_cluster(plan: LimitPlan, found: ClusterCap) -> str:
    """The cap of the whole cluster."""
    return (
        f"Of the whole cluster, at most {counted(found.without_headroom, 'connection')} were open at one time, on all brokers "
        f"together: a cap of {found.cap:,}, with {plan.headroom:.0%} headroom."
    )


def of_cluster_rate(found: ClusterRate) -> str:
    """The arrivals that the rate of the whole cluster is made from."""
    window = found.window
    then = f", of which {found.refused_then:,} were refused then" if found.refused_then else ""
    return (
        f"All brokers together had {counted(found.arrivals, 'new connection')}{then}. The rate that they need, and what it would "
        f"have refused, by one window of {window.samples} times {window.size_ms // 1000} s:"
    )


def rates_side_by_side(found: ClusterRate) -> list[list[str]]:
    """The variants of a rate as columns, each row with a name."""
    chosen, tried = found.recommended, found.tried
    every = [*((each.rate, each.refused, each.refused_share) for each in chosen), *tried]
    return [
        ["", *(each.name for each in chosen), *("tried" for _ in tried)],
        ["new connections a second", *(f"{rate:,}" for rate, _, _ in every)],
        ["refused of these", *(f"{refused:,} ({share:.4%})" for _, refused, share in every)],
        ["rate without headroom", *(f"{each.without_headroom:,}" for each in chosen), *("-" for _ in tried)],
    ]


def facts(plan: LimitPlan) -> str:
    """The contents of the log."""
    return (
        f"{counted(plan.connections, 'connection')} of {counted(plan.entities, plan.by.noun)}, {plan.first:%Y-%m-%d %H:%M} to "
        f"{plan.last:%Y-%m-%d %H:%M} UTC; {counted(plan.bad_rows, 'row')} put aside"
    )


def counted(number: int, noun: str) -> str:
    """`1 user`, `1,234,567 connections`: exact, as a plan is."""
    return f"{number:,} {plural(noun, number)}"


def put_aside(plan: LimitPlan) -> list[tuple[str, int]]:
    """(reason, rows), the most first."""
    return sorted(plan.bad_reasons.items(), key=lambda item: -item[1])


def side_by_side(plan: LimitPlan) -> list[list[str]]:
    """The variants as columns, each row with a name."""
    chosen = plan.recommended
    one, them = plan.by.noun, plural(plan.by.noun, 2)
    return [
        ["", *(each.name for each in chosen)],
        [f"cap for each {one}", *(f"{each.cap:,}" for each in chosen)],
        ["overrides", *(f"{len(each.overrides):,}" if each.overrides else "-" for each in chosen)],
        ["refused of this log", *(f"{each.refused:,} ({each.refused_share:.4%})" for each in chosen)],
        [f"{them} hit", *(f"{each.entities_hit:,}" for each in chosen)],
        [f"{them} with less than {plan.headroom:.0%} left", *(f"{each.entities_close:,}" for each in chosen)],
        ["cap without headroom", *(f"{each.without_headroom:,}" for each in chosen)],
    ]


def hits(variant: Variant) -> str:
    """Whom it hits: those with most open at once by name."""
    named = ", ".join(f"{entity} ({peak:,} open at most)" for entity, peak in variant.hit.items())
    rest = variant.entities_hit - len(variant.hit)
    return named + (f" and {rest:,} more" if rest > 0 else "")


def left_out(plan: LimitPlan) -> str:
    """The traffic that the recommendation is not made for."""
    found = plan.left_out
    assert found is not None
    refused = ", ".join(f"{each.leaks_refused:,} of them refused by {each.name}" for each in plan.recommended)
    return (
        f"Left out, as they look like leaks, which need a fix and no override: {', '.join(found.entities)} "
        f"({found.connections:,} connections, {refused}). --with-leaks includes them."
    )


def overridden(plan: LimitPlan) -> str:
    """The overrides that every candidate has, once."""
    return f"Each with {settings_of(plan.by).overrides}={plan.overrides}"


def headings(plan: LimitPlan) -> list[str]:
    """The headings of the table of candidates."""
    compared = ["in incident", "in quiet", "others hit"] if any("compare" in one for one in plan.candidates) else []
    networks = ["networks"] if plan.by.has_networks else []
    them = plural(plan.by.noun, 2)
    return ["limits", "refused", "share", "delayed", them, *networks, "worst minute", "headroom", *compared]


def row(plan: LimitPlan, one: CandidateOutcome) -> list[str]:
    """A candidate's."""
    worst = one["worst_minute"]
    cells = [
        name(plan, one),
        f"{one['refused']:,}",
        f"{one['refused_share']:.4%}",
        f"{one['delayed']:,}",
        f"{one['entities_affected']:,}",
        *([f"{one['networks_affected']:,}"] if plan.by.has_networks else []),
        f"{worst['refused']:,} at {worst['at'][11:16]}" if worst else "-",
        f"{one['headroom']:.0%}" if one["headroom"] is not None else "-",
    ]
    if compared := one.get("compare"):
        counts = (compared["incident_refused"], compared["quiet_refused"], compared["others_refused"])
        cells += [f"{count:,}" for count in counts]
    return cells


def name(plan: LimitPlan, one: CandidateOutcome) -> str:
    """A candidate without the overrides that all have."""
    overrides = settings_of(plan.by).overrides
    limits = (f"{name}={value}" for name, value in one["limits"].items() if name != overrides)
    return ", ".join(limits) or "overrides alone"


def columns(rows: list[list[str]]) -> str:
    """Left-aligned names, right-aligned numbers."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
