"""A plan in words and pictures: for a terminal, and as one HTML page."""

from typing import Any

from shards.limits.connection_limits import CORE_IP_CAP, CORE_IP_OVERRIDES
from turnstile.pipeline.html_page import document, paragraph, preformatted, section, table
from turnstile.pipeline.pictures import bars
from turnstile.pipeline.plan.peaks_picture import peaks_picture
from turnstile.pipeline.plan.plan import LimitPlan

_TITLES = {"kafka": "Kafka (server.properties or kafka-configs)", "redpanda": "Redpanda (cluster config)"}


def printed(plan: LimitPlan) -> str:
    """For a terminal."""
    answer = plan.as_json()
    parts = [
        _facts(plan),
        *(f"  {count:>9,}  {reason}" for reason, count in _put_aside(plan)),
        "",
        _columns([_headings(plan), *(_row(one) for one in plan.candidates)]),
        *(["", _overridden(plan)] if plan.overrides else []),
    ]
    if plan.talkers:
        parts += ["", "Addresses that stand out:"]
        parts += [
            f"  {each.ip:39} {_looks_like(each.kind)}: {each.peak} open at most, {each.share:.1%} of all"
            for each in plan.talkers
        ]
    recommended, plain = plan.recommended, plan.without_overrides
    parts += ["", f"Smallest cap for all addresses: {plain.per_ip_cap} (refuses {plain.refused_share:.4%})"]
    if recommended.overrides:
        parts.append(
            f"With {_overrides(recommended.overrides)}: {recommended.per_ip_cap} (refuses {recommended.refused_share:.4%})"
        )
    parts += [_left_out(plan)] if plan.left_out else []
    for vocabulary, settings in answer["recommended"]["settings"].items():
        parts += ["", f"{_TITLES[vocabulary]}:", *(f"  {name}={value}" for name, value in settings.items())]
    parts += ["", *plan.notes] if plan.notes else []
    return "\n".join(parts)


def page(plan: LimitPlan, *, name: str) -> str:
    """One HTML file that needs no network."""
    sections = [_advice(plan), _peaks(plan), *_by_cap(plan), _candidates(plan), *_standing_out(plan)]
    if plan.bad_reasons:
        rows = [["reason", "rows"], *([reason, f"{count:,}"] for reason, count in _put_aside(plan))]
        sections.append(
            section("Rows put aside", "They count nowhere above.", table(rows, caption="Why, and how many"))
        )
    return document(f"Plan for {name}", _facts(plan), sections)


def _facts(plan: LimitPlan) -> str:
    return (
        f"{plan.connections:,} connections of {plan.ips:,} addresses, {plan.first:%Y-%m-%d %H:%M} to "
        f"{plan.last:%Y-%m-%d %H:%M} UTC; {plan.bad_rows:,} rows put aside"
    )


def _put_aside(plan: LimitPlan) -> list[tuple[str, int]]:
    return sorted(plan.bad_reasons.items(), key=lambda item: -item[1])


def _advice(plan: LimitPlan) -> str:
    recommended = plan.recommended
    words = f"Refuses {recommended.refused_share:.4%} of this log"
    if recommended.overrides:
        words += (
            f", with {_overrides(recommended.overrides)}; without any, it would be {plan.without_overrides.per_ip_cap}"
        )
    said = [*([_left_out(plan)] if plan.left_out else []), *plan.notes]
    text = "\n\n".join(
        f"# {_TITLES[vocabulary]}\n" + "\n".join(f"{key}={value}" for key, value in settings.items())
        for vocabulary, settings in plan.as_json()["recommended"]["settings"].items()
    )
    title = f"Recommended: {recommended.per_ip_cap} connections per address"
    return section(title, f"{words}.", *map(paragraph, said), preformatted(text))


def _peaks(plan: LimitPlan) -> str:
    """Every plan has this picture; a candidate without a cap for addresses has no place on it."""
    caps = [one["limits"].get(CORE_IP_CAP) for one in plan.candidates]
    others = [_name(one) for one, cap in zip(plan.candidates, caps, strict=True) if cap is None]
    words = "How many addresses had at least so many connections open at once. A line is a cap: what is right of it, it touches."
    if others:
        words += f" Not on it, as they are no cap for each address: {'; '.join(others)}."
    marked = [cap for cap in caps if cap is not None]
    return section("Open at once, by address", words, peaks_picture(plan.peaks, marked, plan.recommended.per_ip_cap))


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
    rows = [_headings(plan), *(_row(one) for one in plan.candidates)]
    words = "Each replayed over the whole log." + (f" {_overridden(plan)}." if plan.overrides else "")
    return section("Candidates", words, table(rows, caption="What each candidate refuses and delays"))


def _standing_out(plan: LimitPlan) -> list[str]:
    if not plan.talkers:
        return []
    rows = [
        [each.ip, _looks_like(each.kind), str(each.peak), f"{each.connections:,}", f"{each.share:.1%}"]
        for each in plan.talkers
    ]
    heading = ["address", "looks like", "open at most", "connections", "of all"]
    words = "Far more open at once than most: NAT gateways may need an override, leaks need mending."
    drawn = table([heading, *rows], caption="Addresses with the most open at once", text=["looks like"])
    return [section("Addresses that stand out", words, drawn)]


def _overrides(overrides: dict[str, int]) -> str:
    return f"{len(overrides)} override{'' if len(overrides) == 1 else 's'}"


def _left_out(plan: LimitPlan) -> str:
    """What the recommendation is not made for."""
    left_out = plan.left_out
    assert left_out is not None
    return (
        f"Left out, as they look like leaks, which want mending and no override: {', '.join(left_out.ips)} "
        f"({left_out.connections:,} connections, {left_out.refused:,} of them refused by this cap). --with-leaks reckons "
        "with them."
    )


def _overridden(plan: LimitPlan) -> str:
    """The overrides that every candidate has, once."""
    return f"Each with {CORE_IP_OVERRIDES}={plan.overrides}"


def _headings(plan: LimitPlan) -> list[str]:
    compared = ["in incident", "in quiet", "others hit"] if any("compare" in one for one in plan.candidates) else []
    return ["limits", "refused", "share", "delayed", "addresses", "networks", "worst minute", "headroom", *compared]


def _row(one: dict[str, Any]) -> list[str]:
    worst = one["worst_minute"]
    cells = [
        _name(one),
        f"{one['refused']:,}",
        f"{one['refused_share']:.4%}",
        f"{one['delayed']:,}",
        f"{one['ips_affected']:,}",
        f"{one['networks_affected']:,}",
        f"{worst['refused']:,} at {worst['at'][11:16]}" if worst else "-",
        f"{one['headroom']:.0%}" if one["headroom"] is not None else "-",
    ]
    compared = one.get("compare")
    if compared:
        cells += [f"{compared[key]:,}" for key in ("incident_refused", "quiet_refused", "others_refused")]
    return cells


def _name(one: dict[str, Any]) -> str:
    """A candidate without the overrides that all have."""
    limits = (f"{name}={value}" for name, value in one["limits"].items() if name != CORE_IP_OVERRIDES)
    return ", ".join(limits) or "overrides alone"


def _columns(rows: list[list[str]]) -> str:
    """Left-aligned names, right-aligned numbers."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def _looks_like(kind: str) -> str:
    return {
        "nat": "many clients behind one address (NAT)",
        "leak": "a client that leaks connections",
        "burst": "a burst",
    }[kind]
