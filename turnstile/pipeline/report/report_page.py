"""A report as one HTML page with pictures: in short, then in the order in which one asks."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from broker.journal.schema import OBSERVED_REASONS
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.set_clock import clock_was_set
from turnstile.pipeline.html_page import NOTHING, bullets, contents, document, section, table
from turnstile.pipeline.pictures import bars, histogram, lines
from turnstile.pipeline.report.report import Built
from turnstile.pipeline.report.report_tables import LOGGED_IN
from turnstile.quantities import duration

TableRows = Sequence[TableRow]
MARKS = 12
LEAST_BINS = 8


REASONS = {
    "broker_cap": "the broker's cap",
    "listener_cap": "a listener's cap",
    "ip_cap": "the cap of their address",
    "user_cap": "the cap of their user",
    "user_rate": "the rate of their user",
    "ssl_cap": "the cap of connections over TLS",
    "cluster_cap": "the cap of the whole cluster",
    "cluster_rate": "the rate of the whole cluster",
    "ip_rate": "the rate of their address",
    "core_rate": "Redpanda's connection rate",
    "fd_limit": "want of file descriptors",
    "shard_unavailable": "a shard that did not answer",
    "proxy_header": "a proxy that sent no PROXY header",
}
MOST_NAMED = 3


def page(built: Built, *, name: str) -> str:
    """The whole page: what came of it, what users of a cluster ask, and last what developers of Turnstile ask."""
    rows, step = built.rows, f"per {built.bucket_s:.0f} s"
    doubling = "ms, each bar twice the one before"
    found = {
        "Admitted and refused": _decided(built, step),
        "Refused clients": _refused(rows, built.summary["refused"]),
        **({"Refused logins": _refused_logins(built, step)} if built.summary["refused_logins"] else {}),
        "What refused clients do next": _reconnects(rows["reconnects"]),
        "Open connections against the cap": _open(built),
        **({"Observed limits": _observed(rows["observed"], rows["observed_ips"])} if rows["observed"] else {}),
        **({"Observed quotas": _observed_throttled(rows["observed_throttled"])} if rows["observed_throttled"] else {}),
        "Throttle time": _throttled(rows["throttled"]),
        "How long connections were open": section(
            "How long connections were open", "Of those that closed, in ms.", _distribution(rows["hold_times"], doubling)
        ),
        "How long a decision took": section(
            "How long a decision took", "From accept to decision, of admitted connections, in ms.",
            _distribution(rows["latency"], doubling),
        ),
        "Inside: tokens between shards": section(
            "Inside: tokens between shards", "Tokens granted by their home shard, and those that came back to it.",
            lines(_series(rows["tokens"], "kind", "tokens", fill=built.bucket_s), y=f"tokens {step}"),
        ),
        "Inside: where decisions were taken": section(
            "Inside: where decisions were taken", "At once on the shard that accepted, or after asking the pool's home.",
            lines(_series(rows["paths"], "path", "count", fill=built.bucket_s), y=f"decisions {step}"),
        ),
    }  # fmt: skip
    short = section("In short", "", bullets(_conclusions(built)), contents(list(found)))
    return document(f"Report on {name}", _facts(built), [short, *found.values()])


def _facts(built: Built) -> str:
    summary = built.summary
    first, last = summary["first"], summary["last"]
    when = f"{_when(first)} to {_when(last)}" if first and last else "no time"
    text = f"{summary['events']:,} events, {when} UTC"
    return ". ".join(filter(None, (text, clock_was_set(summary["clock_set_s"]).rstrip("."))))


def _conclusions(built: Built) -> list[str]:
    """The results, a sentence each."""
    summary, rows = built.summary, built.rows
    decided = summary["admitted"] + summary["refused"]
    sentences = [f"{decided:,} connections were decided, and none was refused."]
    if summary["refused"]:
        sentences = [
            f"{summary['refused']:,} of {decided:,} connections were refused ({summary['refused'] / decided:.1%}): "
            f"{_reasons(rows['decisions'], 'admitted')}."
        ]
        most = [
            f"{row['ip']} ({row['refused']:,}, {row['refused_share']:.0%} of its own)" for row in rows["refused_ips"]
        ]
        sentences.append(f"Refused most: {', '.join(most[:MOST_NAMED])}.")
    if summary["refused_logins"]:
        tried = sum(row["count"] for row in rows["logins"])
        users = [f"{row['user']} ({row['refused']:,})" for row in rows["refused_users"]]
        sentences.append(
            f"{summary['refused_logins']:,} of {tried:,} logins were refused for their user, on connections that had been "
            f"admitted: {_reasons(rows['logins'], LOGGED_IN)}. Refused most: {', '.join(users[:MOST_NAMED])}."
        )
    for row in rows["throttled"][:MOST_NAMED]:
        client = f"{row['user']} {row['client_id']}".strip()
        sentences.append(
            f"{client} was throttled {row['throttles']:,} times by {row['limit']}, {duration(row['throttle_s'] * 1000)} in all, "
            f"{duration(row['worst_ms'])} at most."
        )
    if built.marks:
        sentences.append(f"The charts mark each change of a limit and each lost shard, {len(built.marks):,} in all.")
    if built.unreadable:
        sentences.append(
            f"{len(built.unreadable):,} parts of the journal can't be read; their events are missing here."
        )
    return sentences


def _reasons(rows: TableRows, not_refused: str) -> str:
    """The number of refusals by reason, of rows of outcomes."""
    by: Counter[str] = Counter()
    for row in rows:
        by[row["outcome"]] += row["count"]
    return ", ".join(
        f"{count:,} by {REASONS.get(reason, reason)} ({reason})"
        for reason, count in by.most_common()
        if reason != not_refused
    )


def _decided(built: Built, step: str) -> str:
    series = _series(built.rows["decisions"], "outcome", "count", fill=built.bucket_s)
    ordered = {name: series[name] for name in sorted(series, key=lambda name: (name != "admitted", name))}
    words = "Connections by their outcome. Dashed lines: configuration changes and lost shards."
    more = [[f"and {len(built.marks) - MARKS} more", ""]] if len(built.marks) > MARKS else []
    shown = [[text, _when(at)] for at, text in built.marks[:MARKS]]
    marked = (
        table([["change", "at (UTC)"], *shown, *more], caption="What changed", text=["at (UTC)"]) if built.marks else ""
    )
    return section("Admitted and refused", words, lines(ordered, y=f"connections {step}", marks=built.marks), marked)


def _refused(rows: dict[str, list[TableRow]], refused: int) -> str:
    """`refused`: how many connections of all addresses, those that have no row among them."""
    ips, networks = rows["refused_ips"], rows["refused_networks"]
    if not ips:
        return section("Refused clients", "Addresses and networks.", NOTHING)
    return section(
        "Refused clients",
        "The addresses refused most, and their networks.",
        *_refused_most(ips, refused, name="ip", label="address", admitted="admitted", caption="Addresses refused most"),
        table(
            [
                ["network", "addresses", "refused"],
                *([row["network"], row["addresses"], f"{row['refused']:,}"] for row in networks),
            ],
            caption="Their networks",
        ),
    )


def _refused_logins(built: Built, step: str) -> str:
    rows, refused = built.rows, built.summary["refused_logins"]
    series = _series(rows["logins"], "outcome", "count", fill=built.bucket_s)
    of_users = {"name": "user", "label": "user", "admitted": "logged in", "caption": "Users refused most"}
    return section(
        "Refused logins",
        "Connections that were admitted at accept, and refused at their login by a limit of their user.",
        lines({name: series[name] for name in sorted(series)}, y=f"logins {step}", marks=built.marks),
        *_refused_most(rows["refused_users"], refused, **of_users),
    )


def _refused_most(rows: TableRows, refused: int, *, name: str, label: str, admitted: str, caption: str) -> list[str]:
    """A picture and a table of those that were refused most. `refused`: how often all were."""
    heading = [label, "reasons", "refused", admitted, "refused share"]
    cells = [
        [row[name], row["reasons"], f"{row['refused']:,}", f"{row['admitted']:,}", f"{row['refused_share']:.1%}"]
        for row in rows
    ]
    others = refused - sum(row["refused"] for row in rows)
    if others:
        cells.append(["all others", "", f"{others:,}", "", ""])
    picture = bars(
        [(row[name], _by_reason(row["reasons"])) for row in rows[:12]],
        label=label,
        value="refused",
        caption="Refused, by reason",
    )
    return [picture, table([heading, *cells], caption=caption, text=["reasons"])]


def _by_reason(reasons: str) -> dict[str, float]:
    """The counts in a text of the table, such as "ip_cap 3, ip_rate 2"."""
    counted = (each.rpartition(" ") for each in reasons.split(", "))
    return {reason: float(count) for reason, _, count in counted}


def _open(built: Built) -> str:
    series = _levels(built.rows["open_per_ip"], built.bucket_s)
    sharing: dict[frozenset[tuple[float, float | None]], list[str]] = {}
    for ip, steps in built.caps.items():
        sharing.setdefault(frozenset(steps), []).append(ip)
    shared = {_cap_of(ips, of_all=len(sharing) == 1): built.caps[ips[0]] for ips in sharing.values()}
    words = (
        "The most connections open at once in each step of time, beside the cap in force, for the busiest addresses."
    )
    return section(
        "Open connections against the cap", words, lines({**series, **shared}, y="open connections", stepped=True)
    )


def _levels(rows: TableRows, bucket_s: float) -> dict[str, list[tuple[float, float | None]]]:
    """The most open in each step of time, and after it as many as it left, until something happens again."""
    found: dict[str, list[tuple[float, float | None]]] = {}
    for row, after in zip(rows, [*rows, None][1:], strict=True):
        points = found.setdefault(row["ip"] or "-", [])
        points.append((float(row["at"]), float(row["open"])))
        if after is None or after["ip"] != row["ip"] or after["at"] > row["at"] + bucket_s:
            points.append((float(row["at"]) + bucket_s, float(row["left"])))
    return found


def _cap_of(ips: Sequence[str], *, of_all: bool) -> str:
    if of_all:
        return "cap"
    return f"cap of {ips[0]}" if len(ips) == 1 else f"cap of {len(ips)} of them"


OBSERVED = {
    **dict.fromkeys(OBSERVED_REASONS, "would be refused"),
    "broker_wait": "would wait for a slot",
    "listener_wait": "would wait for a slot",
    "shard_unavailable": "not known: no answer",
}


def _observed(rows: TableRows, addresses: TableRows) -> str:
    """Limits of connections that were observed instead of enforced."""
    heading = ["limit", "value", "connections", "they"]
    cells = [
        [row["limit"], f"{row['limit_value']:.15g}", f"{row['count']:,}", OBSERVED.get(row["reason"], row["reason"])]
        for row in rows
    ]
    of = ["address", "limit", "value", "connections"]
    most = [[row["ip"], row["limit"], f"{row['limit_value']:.15g}", f"{row['count']:,}"] for row in addresses]
    return section(
        "Observed limits",
        "Connections that were admitted, and that an observed limit would have refused.",
        table([heading, *cells], caption="By limit", text=["limit", "they"]),
        table([of, *most], caption="Addresses with the most", text=of[:2]),
    )


def _observed_throttled(rows: TableRows) -> str:
    """Client quotas that were observed instead of enforced."""
    heading = ["user", "client id", "quota", "value", "charges", "throttled s"]
    cells = [
        [
            row["user"],
            row["client_id"],
            row["limit"],
            f"{row['limit_value']:.15g}",
            f"{row['charges']:,}",
            f"{row['throttle_s']:,.1f}",
        ]
        for row in rows
    ]
    return section(
        "Observed quotas",
        "Charges that an observed client quota would have answered with a throttle time.",
        table([heading, *cells], caption="Clients with the most", text=heading[:3]),
    )


def _throttled(rows: TableRows) -> str:
    heading = ["user", "client id", "quota", "throttles", "throttled s", "longest ms"]
    cells = [
        [
            row["user"],
            row["client_id"],
            row["limit"],
            f"{row['throttles']:,}",
            f"{row['throttle_s']:,.1f}",
            f"{row['worst_ms']:,}",
        ]
        for row in rows
    ]
    named = [(f"{row['user']} {row['client_id']}".strip(), {row["limit"]: row["throttle_s"]}) for row in rows[:12]]
    return section(
        "Throttle time",
        "By user and client id, in seconds.",
        bars(named, label="user, client id", value="throttled", caption="Throttle time", unit=" s"),
        table([heading, *cells], caption="Throttled clients", text=heading[:3]) if cells else "",
    )


def _reconnects(rows: TableRows) -> str:
    heading = ["address", "refused", "median gap ms", "gaps grow"]
    cells = [
        [
            row["ip"],
            f"{row['refused']:,}",
            "-" if row["median_gap_ms"] is None else f"{row['median_gap_ms']:.3g}",
            f"{row['growth']:.2g}x" if row["growth"] else "-",
        ]
        for row in rows
    ]
    words = (
        "The time between two refusals of one address, and how much longer it is in the second half of them than in the first. A "
        "client that backs off doubles it again and again; without a back-off it stays at 1x."
    )
    return section("What refused clients do next", words, table([heading, *cells], caption="Between refusals"))


def _distribution(rows: TableRows, x: str) -> str:
    """A bin for every doubling between the first and the last, also where there is nothing."""
    if not rows:
        return NOTHING
    bins = [(row["low_ms"], row["high_ms"], row["count"]) for row in rows]
    filled = [bins[0]]
    for each in bins[1:]:
        while filled[-1][1] < each[0] * 0.999:
            filled.append((filled[-1][1], filled[-1][1] * 2, 0))
        filled.append(each)
    while len(filled) < LEAST_BINS:  # a single bar across the page would say nothing
        filled.append((filled[-1][1], filled[-1][1] * 2, 0))
    return histogram(filled, x=x)


def _series(
    rows: TableRows, name: str, value: str, *, fill: float | None = None
) -> dict[str, list[tuple[float, float]]]:
    """Rows with `at` as curves by name; with `fill`, steps of time without a row are zero."""
    found: dict[str, dict[float, float]] = {}
    for row in rows:
        found.setdefault(row[name] or "-", {})[float(row["at"])] = float(row[value])
    if fill:
        instants = sorted({at for points in found.values() for at in points})
        steps = int((instants[-1] - instants[0]) / fill) + 1 if instants else 0
        grid = [instants[0] + number * fill for number in range(steps)]
        return {each: [(at, points.get(at, 0.0)) for at in grid] for each, points in found.items()}
    return {each: sorted(points.items()) for each, points in found.items()}


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
