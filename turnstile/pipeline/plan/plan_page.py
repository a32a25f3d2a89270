"""A plan in words and pictures: for a terminal, and as one HTML page."""

from typing import Any

from shards.limits.connection_limits import CORE_IP_OVERRIDES
from turnstile.pipeline.html_page import bars, document, section, table
from turnstile.pipeline.plan.plan import LimitPlan

_TITLES = {"kafka": "Kafka (server.properties or kafka-configs)", "redpanda": "Redpanda (cluster config)"}


def printed(plan: LimitPlan) -> str:
    """For a terminal."""
    answer = plan.as_json()
    parts = [
        f"{plan.connections:,} connections of {plan.ips:,} addresses, {plan.first:%Y-%m-%d %H:%M} to "
        f"{plan.last:%Y-%m-%d %H:%M} UTC; {plan.bad_rows:,} rows put aside",
        *(f"  {count:>9,}  {reason}" for reason, count in sorted(plan.bad_reasons.items(), key=lambda item: -item[1])),
        "",
        _columns([_headings(plan), *(_row(one) for one in plan.candidates)]),
        *(["", _overridden(plan)] if _overridden(plan) else []),
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
            f"With {len(recommended.overrides)} overrides: {recommended.per_ip_cap} (refuses {recommended.refused_share:.4%})"
        )
    for vocabulary, settings in answer["recommended"]["settings"].items():
        parts += ["", f"{_TITLES[vocabulary]}:", *(f"  {name}={value}" for name, value in settings.items())]
    parts += ["", *plan.notes] if plan.notes else []
    return "\n".join(parts)


def page(plan: LimitPlan, *, name: str) -> str:
    """One HTML file that needs no network."""
    answer = plan.as_json()
    by_cap = [one for one in plan.candidates if set(one["limits"]) == {"kafka_connections_max_per_ip"}]
    pictures = []
    if len(by_cap) > 1:
        shares = [(one["limits"]["kafka_connections_max_per_ip"], 100 * one["refused_share"]) for one in by_cap]
        pictures.append(
            section(
                "Refused, by per-IP cap",
                "The share of connections each candidate refuses.",
                bars([(str(cap), share) for cap, share in sorted(shares)], unit="%", label="per-IP cap"),
            )
        )
    candidates = section(
        "Candidates",
        "Each replayed over the whole log.",
        table([_headings(plan), *(_row(one) for one in plan.candidates)]),
    )
    standing_out = []
    if plan.talkers:
        rows = [
            [each.ip, _looks_like(each.kind), str(each.peak), f"{each.connections:,}", f"{each.share:.1%}"]
            for each in plan.talkers
        ]
        standing_out = [
            section(
                "Addresses that stand out",
                "Far more open at once than most: NAT gateways may need an override, leaks need mending.",
                table([["address", "looks like", "open at most", "connections", "of all"], *rows]),
            )
        ]
    recommended = plan.recommended
    text = "\n\n".join(
        f"# {_TITLES[vocabulary]}\n" + "\n".join(f"{key}={value}" for key, value in settings.items())
        for vocabulary, settings in answer["recommended"]["settings"].items()
    )
    advice = section(
        f"Recommended: {recommended.per_ip_cap} connections per address",
        f"Refuses {recommended.refused_share:.4%} of this log"
        + (f", with {len(recommended.overrides)} overrides. " if recommended.overrides else ". ")
        + f"Without overrides it would be {plan.without_overrides.per_ip_cap}.",
        f"<pre>{text}</pre>",
    )
    facts = f"{plan.connections:,} connections of {plan.ips:,} addresses, {plan.bad_rows:,} rows put aside"
    return document(f"Plan for {name}", facts, [advice, *pictures, candidates, *standing_out])


def _overridden(plan: LimitPlan) -> str:
    """The overrides that every candidate has, once."""
    given = next(
        (one["limits"][CORE_IP_OVERRIDES] for one in plan.candidates if CORE_IP_OVERRIDES in one["limits"]), ""
    )
    return f"Each with {CORE_IP_OVERRIDES}={given}" if given else ""


def _headings(plan: LimitPlan) -> list[str]:
    compared = ["in incident", "in quiet", "others hit"] if any("compare" in one for one in plan.candidates) else []
    return ["limits", "refused", "share", "delayed", "addresses", "networks", "worst minute", "headroom", *compared]


def _row(one: dict[str, Any]) -> list[str]:
    worst = one["worst_minute"]
    cells = [
        ", ".join(f"{name}={value}" for name, value in one["limits"].items() if name != CORE_IP_OVERRIDES)
        or "overrides alone",
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
