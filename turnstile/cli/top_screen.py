"""The screen of `turnstile top`, drawn from one answer of /v1/live."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from broker.runtime.printable import printable
from turnstile.cli.config import readable

_BARS = " ▁▂▃▄▅▆▇█"
_SPARK = 60
_GAP = 3
_CLIENT = 40  # characters of a client's name
_SHORT = {
    "producer_byte_rate": "produce",
    "consumer_byte_rate": "fetch",
    "request_percentage": "request",
    "controller_mutation_rate": "mutation",
}


def render(live: dict[str, Any], console: Console, trouble: str = "") -> RenderableType:
    """One view for this console; from 80 columns on nothing is cut off. `trouble` is said instead of the shards up."""
    bars = max(10, min(_SPARK, console.width - 24))
    tables = [_refusals(live), _top_ips(live), _throttled(live), _tokens(live)]
    return Group(_header(live, trouble), _rates(live, bars), *_packed(tables, console), _shards(live), _limits(live))


def spark(values: list[float], width: int = _SPARK) -> str:
    """The last `width` values as bars between nothing and their largest."""
    shown = values[-width:]
    most = max(shown, default=0) or 1
    return "".join(_BARS[0 if v <= 0 else max(1, round(v / most * (len(_BARS) - 1)))] for v in shown)


def amount(value: float) -> str:
    """A count or rate in at most six characters: 950, 12.3k, 4.56M."""
    for limit, divisor, unit in ((1e4, 1, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M")):
        if abs(value) < limit:
            scaled = value / divisor
            return f"{scaled:.0f}" if not unit else f"{scaled:.1f}{unit}"
    return f"{value / 1e9:.1f}G"


def _header(live: dict[str, Any], trouble: str) -> Text:
    up = [shard for shard in live["shards"] if shard["state"] == "up"]
    minutes, seconds = divmod(int(live["uptime_s"]), 60)
    text = Text.assemble(
        ("Turnstile", "bold"),
        f"  up {minutes}m{seconds:02}s  version {live['version']}  ",
        (trouble, "bold red")
        if trouble
        else (
            f"{len(up)} of {len(live['shards'])} shards up",
            "green" if len(up) == len(live["shards"]) else "bold red",
        ),
        f"  listeners {printable(', '.join(live['listeners']))}",
    )
    return text


def _rates(live: dict[str, Any], bars: int) -> Table:
    series = live["series"]
    nothing: dict[str, Any] = {"admitted": 0, "refused": {}, "closed": 0, "requests": 0, "throttled": {}}
    last = series[-1] if series else nothing
    grid = Table.grid(padding=(0, 2))
    rows = (
        ("open", [point["connections"] for point in series], live["totals"]["connections"], "cyan", ""),
        ("admitted", [point["admitted"] for point in series], last["admitted"], "green", "/s"),
        ("refused", [sum(p["refused"].values()) for p in series], sum(last["refused"].values()), "red", "/s"),
        ("closed", [point["closed"] for point in series], last["closed"], "dim", "/s"),
        ("requests", [point["requests"] for point in series], last["requests"], "blue", "/s"),
        ("throttled", [sum(p["throttled"].values()) for p in series], sum(last["throttled"].values()), "magenta", "/s"),
    )
    for name, values, now, style, unit in rows:
        grid.add_row(
            name, Text(f"{amount(now)}{unit}", style="bold", justify="right"), Text(spark(values, bars), style=style)
        )
    return grid


def _refusals(live: dict[str, Any]) -> Table:
    last = live["series"][-1]["refused"] if live["series"] else {}
    table = _table("refused by reason", ("reason", ""), ("/s", "r"), ("in all", "r"))
    shown = {reason: count for reason, count in live["totals"]["refused"].items() if count}
    for reason, count in sorted(shown.items(), key=lambda item: -item[1]):
        table.add_row(Text(reason, style="red"), amount(last.get(reason, 0)), amount(count))
    if not shown:
        table.add_row(Text("nothing refused", style="dim"), "", "")
    return table


def _top_ips(live: dict[str, Any]) -> Table:
    table = _table("most refused", ("ip", ""), ("refused", "r"), ("why", ""))
    for row in live["top_refused"][:8]:
        why = ", ".join(sorted(row["reasons"], key=lambda reason: -row["reasons"][reason])[:2])
        table.add_row(row["ip"], amount(row["count"]), why)
    if not live["top_refused"]:
        table.add_row(Text("none", style="dim"), "", "")
    return table


def _throttled(live: dict[str, Any]) -> Table:
    table = _table("throttled clients", ("client", ""), ("quota", ""), ("throttle", "r"))
    for row in live["throttled"][:8]:
        client = printable(client_text(row["user"], row["client_id"]))
        table.add_row(
            Text(client[:_CLIENT]), _SHORT.get(row["quota"], row["quota"]), f"{amount(row['throttle_ms'])} ms"
        )
    if not live["throttled"]:
        table.add_row(Text("none", style="dim"), "", "")
    return table


def client_text(user: str, client_id: str) -> str:
    """A client as its quota tells it apart: by user, by client id, by both."""
    return " ".join(text for text in (user and f"user {user}", client_id and f"client {client_id}") if text) or "any"


def _tokens(live: dict[str, Any]) -> Table:
    totals = live["totals"]
    table = _table("tokens and decisions", ("", ""), ("", "r"), ("", "r"))
    tokens, decisions = totals["tokens"], totals["decisions"]
    for what, count in (
        ("tokens in use", tokens["in_use"]),
        ("tokens cached", tokens["cached"]),
        ("pools", tokens["pools"]),
    ):
        table.add_row(what, amount(count), "")
    every = sum(decisions.values()) or 1
    for path in ("home", "cached", "rpc"):
        table.add_row(f"decided {path}", amount(decisions[path]), f"{100 * decisions[path] / every:.0f}%")
    for name in ("waiting", "held", "muted"):
        if totals[name]:
            table.add_row(name, amount(totals[name]), "")
    return table


def _shards(live: dict[str, Any]) -> Table:
    table = _table("shards", ("shard", ""), ("state", ""), ("pid", "r"), ("open", "r"), ("adm/s", "r"),
                   ("ref/s", "r"), ("in use", "r"), ("cached", "r"), ("ver", "r"))  # fmt: skip
    for row in live["shards"]:
        style = "green" if row["state"] == "up" else "bold red"
        table.add_row(
            f"{row['broker']}/{row['shard']}", Text(row["state"], style=style), str(row["pid"]), amount(row["connections"]),
            amount(row["admitted_per_s"]), amount(row["refused_per_s"]), amount(row["tokens"]["in_use"]),
            amount(row["tokens"]["cached"]), str(row["config_version"]),
        )  # fmt: skip
    return table


def _limits(live: dict[str, Any]) -> Panel:
    shown = [
        f"{row['name']} = {readable(row['value'])}" + ("" if row["broker"] is None else f" (broker {row['broker']})")
        for row in live["limits"]
        if row["set"]
    ]
    text = "   ".join(shown) if shown else "none set: turnstile config set kafka_connections_max_per_ip 50"
    return Panel(Text(text), title="limits in force", title_align="left", box=box.ROUNDED, border_style="dim")


def _table(title: str, *columns: tuple[str, str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.show_header = any(name for name, _ in columns)
    for name, side in columns:
        table.add_column(name, justify="right" if side else "left", header_style="dim", no_wrap=True)
    return table


def _packed(tables: list[Table], console: Console) -> list[Table]:
    """Tables beside each other, as many in a row as fit."""
    rows: list[list[Table]] = []
    left = 0
    for table in tables:
        needs = console.measure(table).maximum + _GAP
        if needs > left or not rows:
            rows.append([])
            left = console.width
        rows[-1].append(table)
        left -= needs
    grids = []
    for row in rows:
        grid = Table.grid(padding=(0, _GAP))
        grid.add_row(*row)
        grids.append(grid)
    return grids


def show_once(live: dict[str, Any]) -> None:
    """One view on stdout."""
    console = Console()
    console.print(render(live, console))
