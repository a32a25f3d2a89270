"""The screen of `turnstile top`, drawn from one answer of /v1/live: connections, limits and how much of them is used.

The words of the token protocol are on a screen of their own (top_internals.py), one key away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from broker.runtime.printable import printable
from shards.limits.utilisation import Level, level
from turnstile.cli.config import readable
from turnstile.cli.top_internals import decisions, shard_tokens
from turnstile.cli.top_table import packed, table
from turnstile.observed_text import observed_line
from turnstile.quantities import count, duration, per_second
from turnstile.use_text import broker_text, client_text, close_text, limit_text, quota_use_text, use_text

if TYPE_CHECKING:
    from broker.admin.live_answers import LiveAnswer, RefusedAddress

_BARS = " ▁▂▃▄▅▆▇█"
_SPARK = 60
_ROWS = 8
_FEW, _HIGH = 3, 40
"""Rows of a list on a screen of fewer lines than _HIGH."""
_CLIENT, _BESIDE_CLIENT = 40, 62
"""Characters of a client's name at most, and of the columns beside it."""
_WIDE = 110
"""Columns from which on a limit says the setting that it comes from."""
_STYLES = {Level.ROOMY: "green", Level.HIGH: "yellow", Level.NEAR: "dark_orange", Level.FULL: "bold red"}
_SHORT = {
    "producer_byte_rate": "produce",
    "consumer_byte_rate": "fetch",
    "request_percentage": "request",
    "controller_mutation_rate": "mutation",
}


def render(
    live: LiveAnswer,
    console: Console,
    trouble: str = "",
    *,
    internals: bool = False,
    keys: str = "",
    height: int | None = None,
) -> RenderableType:
    """One view for this console; from 80 columns on nothing is cut off.

    `trouble` is said instead of the shards up; `keys` are those that it has; `height`: of a screen that is not to scroll, on
    which lists are shorter and empty ones left out if it is a low one.
    """
    low = height is not None and height < _HIGH
    head = _head(live, console, trouble, keys, low)
    if internals:
        return Group(*head, "", *packed([decisions(live), shard_tokens(live)], console))
    parts: list[RenderableType] = [*_lists(live, console, low), _shards(live), _limits(live)]
    return Group(*head, *(one for part in parts for one in ([part] if low else ["", part])))


def _head(live: LiveAnswer, console: Console, trouble: str, keys: str, low: bool) -> list[RenderableType]:
    bars = max(10, min(_SPARK, console.width - 24))
    over = f"rates: the last second; bars: the last {max(1, len(live['series'][-bars:]))} s"
    note = Text(f"{over}   {keys}".rstrip(), style="dim")
    return [_header(live, trouble), _rates(live, bars, low), note, *_held_up(live), *_close(live), *_observed(live)]


def _lists(live: LiveAnswer, console: Console, low: bool) -> list[Table]:
    """Beside each other where there is room; on a low screen short, and without those that are empty."""
    rows, width = _FEW if low else _ROWS, console.width
    uses, addresses = _uses(live, width, rows), _addresses(live, width, rows)
    clients, refusals = _clients(live, width, rows), _refusals(live, rows)
    if not low:
        return packed([uses, addresses, clients, refusals], console)
    for each in (uses, addresses, clients, refusals):
        each.box = None  # no line below the headings
    refused = bool(live["top_refused"])
    filled = ((uses, bool(live["uses"])), (addresses, refused), (clients, bool(live["throttled"])), (refusals, refused))
    return packed([table for table, is_filled in filled if is_filled], console)


def spark(values: Sequence[float], width: int = _SPARK) -> str:
    """The last `width` values as bars between nothing and their largest."""
    shown = values[-width:]
    most = max(shown, default=0) or 1
    return "".join(_BARS[0 if v <= 0 else max(1, round(v / most * (len(_BARS) - 1)))] for v in shown)


def _header(live: LiveAnswer, trouble: str) -> Text:
    up = [shard for shard in live["shards"] if shard["state"] == "up"]
    all_up = len(up) == len(live["shards"])
    shards = (f"{len(up)} of {len(live['shards'])} shards up", "green" if all_up else "bold red")
    return Text.assemble(
        ("Turnstile", "bold"),
        f"  up {duration(live['uptime_s'] * 1000)}  version {live['version']}  ",
        (trouble, "bold red") if trouble else shards,
        f"  listeners {printable(', '.join(live['listeners']))}",
    )


def _rates(live: LiveAnswer, bars: int, low: bool) -> Table:
    """All rates are over the same second, the last one of the series, as are those of each shard."""
    series = live["series"]
    grid = Table.grid(padding=(0, 2))
    open_now = [point["connections"] for point in series]
    grid.add_row("open", _number(count(live["totals"]["connections"])), Text(spark(open_now, bars), style="cyan"))
    for name, style, values in (
        ("admitted", "green", [point["admitted"] for point in series]),
        ("refused", "red", [sum(point["refused"].values()) for point in series]),
        ("closed", "dim", [point["closed"] for point in series]),
        ("requests", "blue", [point["requests"] for point in series]),
        ("throttled", "magenta", [sum(point["throttled"].values()) for point in series]),
    ):
        if not (low and name == "closed"):
            last = values[-1] if values else 0
            grid.add_row(name, _number(per_second(last)), Text(spark(values, bars), style=style))
    return grid


def _number(text: str) -> Text:
    return Text(text, style="bold", justify="right")


def _held_up(live: LiveAnswer) -> list[Text]:
    """A line about connections that are kept waiting, and why, if there are any."""
    totals = live["totals"]
    kinds = (
        (totals["waiting"], "wait to be admitted"),
        (totals["held"], "are held for their rate"),
        (totals["muted"], "are muted by a quota"),
    )
    counts = [f"{count(number)} {what}" for number, what in kinds if number]
    return [Text(f"connections: {', '.join(counts)}", style="yellow")] if counts else []


def _close(live: LiveAnswer) -> list[Text]:
    """A line about limits, also of addresses and clients that are not shown, that are close to being reached."""
    text = close_text(live["close"])
    return [Text(f"limits: {text}", style="yellow")] if text else []


def _observed(live: LiveAnswer) -> list[Text]:
    """A line about limits that are observed instead of enforced, if there are any."""
    observed = live["observed"]
    return [] if observed is None else [Text(f"observed: {printable(observed_line(observed))}", style="magenta")]


def _uses(live: LiveAnswer, width: int, rows: int) -> Table:
    """The limits on connections that are closest to being reached."""
    several, wide = live["brokers"] > 1, width >= _WIDE
    columns = [("broker", "")] * several + [("limit", ""), ("used", "")] + [("set by", "")] * wide
    shown = table("limits and their use, the fullest first", *columns)
    for use in live["uses"][:rows]:
        used = Text(use_text(use), style=_STYLES[level(use["used"], use["limit"])])
        shown.add_row(*[broker_text(use["broker"])] * several, limit_text(use), used, *[use["by"]] * wide)
    if not live["uses"]:
        shown.add_row(*[""] * several, Text("no limit on connections is in use", style="dim"), "")
    return shown


def _refusals(live: LiveAnswer, rows: int) -> Table:
    last = live["series"][-1]["refused"] if live["series"] else {}
    shown = table("refused by reason", ("reason", ""), ("now", "r"), ("since the start", "r"))
    counts = {reason: counted for reason, counted in live["totals"]["refused"].items() if counted}
    for reason, counted in sorted(counts.items(), key=lambda item: -item[1])[:rows]:
        shown.add_row(Text(reason, style="red"), per_second(last.get(reason, 0)), count(counted))
    if not counts:
        shown.add_row(Text("nothing refused", style="dim"), "", "")
    return shown


def _addresses(live: LiveAnswer, width: int, most: int) -> Table:
    """The addresses refused most, and how many others there are."""
    rows, known = live["top_refused"][:most], live["refused_addresses"]
    shown = table("refused addresses", ("address", ""), ("refused", "r"), ("open", "r"), ("why", ""))
    reasons = 2 if width >= _WIDE else 1
    for row in rows:
        why = ", ".join(sorted(row["reasons"], key=lambda reason: -row["reasons"][reason])[:reasons])
        shown.add_row(row["ip"], count(row["count"]), _open_of(row), why)
    others = known["others_refused"] + sum(row["count"] for row in live["top_refused"][most:])
    if known["known"] > len(rows):
        more = "at least " if known["more"] else ""
        shown.add_row(Text(f"{more}{count(known['known'] - len(rows))} others", style="dim"), count(others), "", "")
    if not rows:
        shown.add_row(Text("none", style="dim"), "", "", "")
    return shown


def _open_of(row: RefusedAddress) -> Text:
    """The open connections of a refused address beside its cap, on the broker where it is closest to that."""
    uses = row["uses"]
    if not uses:
        return Text(count(row["open"]))
    fullest = max(uses, key=lambda use: use["used"] / (use["limit"] or 1))
    where = f" on broker {fullest['broker']}" if len(uses) > 1 else ""
    return Text(f"{use_text(fullest)}{where}", style=_STYLES[level(fullest["used"], fullest["limit"])])


def _clients(live: LiveAnswer, width: int, rows: int) -> Table:
    several = live["brokers"] > 1
    columns = [("broker", "")] * several + [("client", ""), ("quota", ""), ("used", ""), ("delay", "r")]
    shown = table("clients with a quota, throttled ones first", *columns)
    room = min(_CLIENT, max(16, width - _BESIDE_CLIENT))
    clients = [*live["throttled"], *live["within_quota"]]
    for row in clients[:rows]:
        client = printable(client_text(row["user"], row["client_id"]))
        client = client if len(client) <= room else f"{client[: room - 2]}.."
        used = Text(quota_use_text(row), style=_STYLES[level(row["value"], row["limit"])] if row["limit"] else "")
        delay = duration(row["throttle_ms"]) if row["throttle_ms"] else "-"
        cells = (Text(client), _SHORT.get(row["quota"], row["quota"]), used, delay)
        shown.add_row(*[str(row["broker"])] * several, *cells)
    if not clients:
        shown.add_row(*[""] * several, Text("none", style="dim"), "", "", "")
    return shown


def _shards(live: LiveAnswer) -> Table:
    shown = table("shards", ("broker/shard", ""), ("state", ""), ("pid", "r"), ("open", "r"), ("admitted", "r"),
                  ("refused", "r"), ("version", "r"))  # fmt: skip
    for row in live["shards"]:
        style = "green" if row["state"] == "up" else "bold red"
        shown.add_row(
            f"{row['broker']}/{row['shard']}", Text(row["state"], style=style), str(row["pid"]), count(row["connections"]),
            per_second(row["admitted_per_s"]), per_second(row["refused_per_s"]), str(row["config_version"]),
        )  # fmt: skip
    return shown


def _limits(live: LiveAnswer) -> Panel:
    shown = [
        f"{row['name']} = {readable(row['value'])}" + ("" if row["broker"] is None else f" (broker {row['broker']})")
        for row in live["limits"]
        if row["set"]
    ]
    text = "   ".join(shown) if shown else "none set: turnstile config set kafka_connections_max_per_ip 50"
    return Panel(Text(text), title="limits set", title_align="left", box=box.ROUNDED, border_style="dim")


def show_once(live: LiveAnswer, *, internals: bool = False) -> None:
    """One view on stdout."""
    console = Console()
    console.print(render(live, console, internals=internals))
