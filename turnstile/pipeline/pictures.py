"""The few pictures that pages need, drawn as inline SVG.

They are drawn here rather than by matplotlib: few shapes of picture, text that stays text, some kilobytes a page, and
no dependency of eighty megabytes on a machine that runs audits. Everything that comes from a journal is escaped.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import NamedTuple

from turnstile.pipeline.html_page import NOTHING

COLOUR_OF = {
    "admitted": "#2563a8",
    "cap": "#d1495b",
    "ip_cap": "#d1495b",
    "user_cap": "#a3346f",
    "user_rate": "#7a3fa8",
    "ssl_cap": "#b0621f",
    "cluster_cap": "#8c2f12",
    "cluster_rate": "#5b4fc4",
    "broker_cap": "#8f2436",
    "listener_cap": "#e08a1e",
    "ip_rate": "#7b4fa3",
    "core_rate": "#c2418f",
    "fd_limit": "#8a5a44",
    "shard_unavailable": "#6b7280",
    "proxy_header": "#a33b20",
}
"""The things that have a colour of their own on every page: connections that got in, and the reasons of refusals."""
COLOURS = ("#0e7fa8", "#5b4be0", "#b58a1b", "#34495e", "#7aa7d9", "#b39ddb", "#c7a98b", "#5d6f80")
"""The colours of all else. None here or above is green, which would say that all is well, and none here is one of a reason."""
WIDTH, HEIGHT = 860, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 12, 40
TIME_STEPS_S = (
    1,
    2,
    5,
    10,
    15,
    30,
    *(60 * n for n in (1, 2, 5, 10, 15, 30)),
    *(3600 * n for n in (1, 2, 3, 6, 12, 24, 48)),
)

Points = Sequence[tuple[float, float | None]]
"""(x, value) in order of x; None: nothing from there to the next."""


class _Point(NamedTuple):
    """A place on a picture."""

    x: float
    y: float


def lines(
    series: Mapping[str, Points], *, y: str, marks: Sequence[tuple[float, str]] = (), stepped: bool = False
) -> str:
    """Curves over time (x: epoch seconds, UTC). `marks`: vertical lines with a name each."""
    drawn = {name: points for name, points in series.items() if any(value is not None for _, value in points)}
    if not drawn:
        return NOTHING
    xs = [x for points in drawn.values() for x, _ in points]
    low, high = min(xs), max(xs)
    if high == low:
        low, high = low - 30, high + 30
    top = _nice(max(value for points in drawn.values() for _, value in points if value is not None))

    def at(x: float, value: float) -> _Point:
        return _Point(LEFT + (x - low) / (high - low) * (WIDTH - LEFT - RIGHT), _height(value, top))

    parts = [_y_axis(top, y), _time_axis(low, high)]
    for x, name in _spaced([mark for mark in marks if low <= mark[0] <= high], low, high):
        place = at(x, 0)[0]
        ends = f'x1="{place:.1f}" x2="{place:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"'
        parts.append(f'<line class="mark" {ends}><title>{escape(name)}</title></line>')
    for number, (name, points) in enumerate(drawn.items()):
        for run, until in _runs(points):
            places = [at(x, value) for x, value in run]
            places += [_Point(at(until, 0).x, places[-1].y)] if stepped and until is not None else []
            parts.append(_curve(places, _colour(name, number), stepped))
    return _legend(list(drawn)) + svg(parts, HEIGHT, f"{y} over time: {', '.join(drawn)}")


def bars(
    items: Sequence[tuple[str, Mapping[str, float]]], *, label: str, value: str, caption: str, unit: str = ""
) -> str:
    """Horizontal bars as a table that fits any width: a row per name, in the order given, each bar of named parts.

    `label` says what the names are, `value` what the bars are.
    """
    if not items:
        return NOTHING
    parts = list(dict.fromkeys(part for _, of in items for part in of))
    top = max(sum(of.values()) for _, of in items) or 1
    rows = []
    for name, of in items:
        drawn = "".join(
            f'<i style="width:calc((100% - 6em)*{each / top:.4f});background:{_colour(part, parts.index(part))}" '
            f'title="{escape(part)}: {short(each)}{escape(unit)}"></i>'
            for part, each in of.items()
        )
        total = f"{short(sum(of.values()))}{escape(unit)}"
        rows.append(f'<tr><th scope="row">{escape(name)}</th><td>{drawn}<span>{total}</span></td></tr>')
    head = f'<tr><th scope="col">{escape(label)}</th><th scope="col">{escape(value)}</th></tr>'
    whole = f"<caption>{escape(caption)}</caption><thead>{head}</thead><tbody>{''.join(rows)}</tbody>"
    return (_legend(parts) if len(parts) > 1 else "") + f'<table class="bars">{whole}</table>'


def histogram(bins: Sequence[tuple[float, float, float]], *, x: str, y: str = "connections") -> str:
    """Counts per bin (low, high, count) of equal width on the page; bounds are written as they are."""
    if not bins or not any(count for _, _, count in bins):
        return NOTHING
    top = _nice(max(count for _, _, count in bins))
    width = (WIDTH - LEFT - RIGHT) / len(bins)
    parts = [_y_axis(top, y)]
    every = max(1, math.ceil(len(bins) / 12))
    for number, (low, _, count) in enumerate(bins):
        place, level = LEFT + number * width, _height(count, top)
        title = f"<title>{short(low)} to {short(bins[number][1])}: {short(count)}</title>"
        parts.append(
            f'<rect x="{place + 1:.1f}" y="{level:.1f}" width="{max(1.0, width - 2):.1f}" height="{HEIGHT - BOTTOM - level:.1f}" '
            f'fill="{COLOURS[0]}">{title}</rect>'
        )
        if number % every == 0:
            parts.append(f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{short(low)}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x)}</text>')
    return svg(parts, HEIGHT, f"{y} by {x}")


def svg(parts: Sequence[str], height: float, name: str) -> str:
    """A picture with a name for readers who can't see it; on a narrow screen it scrolls."""
    drawn = f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(name)}">{"".join(parts)}</svg>'
    return f'<div class="scroll">{drawn}</div>'


def _colour(name: str, number: int) -> str:
    kind = "cap" if name.startswith("cap of ") else name
    return COLOUR_OF.get(kind, COLOURS[number % len(COLOURS)])


def _runs(points: Points) -> list[tuple[list[tuple[float, float]], float | None]]:
    """Runs of points without a None between, each with where it ends, None for the last."""
    runs: list[tuple[list[tuple[float, float]], float | None]] = []
    run: list[tuple[float, float]] = []
    for x, value in points:
        if value is not None:
            run.append((x, value))
        elif run:
            runs.append((run, x))
            run = []
    return [*runs, (run, None)] if run else runs


def _legend(names: Sequence[str]) -> str:
    items = (
        f'<span><i style="background:{_colour(name, number)}"></i>{escape(name)}</span>'
        for number, name in enumerate(names)
    )
    return f'<div class="legend">{"".join(items)}</div>'


def _curve(points: Sequence[tuple[float, float]], colour: str, stepped: bool) -> str:
    if len(points) == 1:
        return f'<circle cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="3" fill="{colour}"/>'
    steps = [f"{points[0][0]:.1f},{points[0][1]:.1f}"]
    for (_, before), (x, value) in pairwise(points):
        if stepped:
            steps.append(f"{x:.1f},{before:.1f}")
        steps.append(f"{x:.1f},{value:.1f}")
    return f'<polyline points="{" ".join(steps)}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-linejoin="round"/>'


def _height(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)


def _y_axis(top: float, label: str) -> str:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts = [f'<text text-anchor="middle" transform="translate(14 {middle}) rotate(-90)">{escape(label)}</text>']
    for number in range(5):
        value = top * number / 4
        y = _height(value, top)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>')
    return "".join(parts)


def _time_axis(low: float, high: float) -> str:
    """Round instants, at most 8 of them."""
    span = high - low
    step = next(
        (each for each in TIME_STEPS_S if span / each <= 7), TIME_STEPS_S[-1] * math.ceil(span / TIME_STEPS_S[-1] / 7)
    )
    form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86_400 else "%b %d"
    parts = []
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        x = LEFT + (number * step - low) / span * (WIDTH - LEFT - RIGHT)
        when = datetime.fromtimestamp(number * step, UTC).strftime(form)
        anchor = "start" if x < LEFT + 20 else "end" if x > WIDTH - RIGHT - 20 else "middle"
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="{anchor}">{when}</text>')
    day = datetime.fromtimestamp(low, UTC).strftime("%Y-%m-%d")
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">UTC, from {day}</text>')
    return "".join(parts)


def _spaced(marks: Sequence[tuple[float, str]], low: float, high: float) -> list[tuple[float, str]]:
    """Marks that would lie on each other as one."""
    spaced: list[tuple[float, str]] = []
    for x, name in sorted(marks):
        if spaced and x - spaced[-1][0] < (high - low) / 200:
            spaced[-1] = spaced[-1][0], f"{spaced[-1][1]}; {name}"
        else:
            spaced.append((x, name))
    return spaced


def _nice(value: float) -> float:
    """A round number, at least `value`, whose quarters are round too."""
    if value <= 0:
        return 1.0
    if value <= 4:
        return 4.0 if value > 1 else _nice(value * 1000) / 1000 if value < 1 else 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if step * power >= value)


def short(value: float) -> str:
    """A number for an axis: 1,200 or 1.2M or 0.25."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g}M"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:.3g}"
