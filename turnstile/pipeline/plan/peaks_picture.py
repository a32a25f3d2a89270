"""Addresses or users by the most they had open at once, and where each candidate cap cuts."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnstile.pipeline.pictures import BOTTOM, COLOUR_OF, COLOURS, HEIGHT, LEFT, RIGHT, WIDTH, short, svg
from turnstile.quantities import plural

TOP = 50
"""Above the curve, for the names of marks in LINES lines."""
LINES = 3
CHARACTER = 7.0


class _Scales(NamedTuple):
    """Both logarithmic. `greatest`: to the right of it is nothing; `entities`: how many there are."""

    greatest: int
    entities: int

    @property
    def powers(self) -> int:
        """The powers of ten up to which entities are counted."""
        return math.ceil(math.log10(max(self.entities, 2)))

    def x(self, count: float) -> float:
        """The x of so many open at once."""
        return LEFT + math.log10(count) / math.log10(self.greatest * 1.15) * (WIDTH - LEFT - RIGHT)

    def y(self, entities: float) -> float:
        """The y of so many entities: one is a little above the axis, so that it shows."""
        if not entities:
            return HEIGHT - BOTTOM
        return HEIGHT - BOTTOM - (math.log10(entities) + 0.15) / (self.powers + 0.15) * (HEIGHT - TOP - BOTTOM)


def peaks_picture(peaks: Mapping[int, int], caps: Sequence[int], recommended: Mapping[int, str], noun: str) -> str:
    """A curve of how many entities had at least so many open at once; `noun`: of one of them.

    `peaks`: the most open at once -> how many entities. `caps`: marked by dashed lines, the recommended ones (cap -> its name) by
    full lines.
    """
    them = plural(noun, 2)
    marked = sorted({*(cap for cap in caps if cap), *recommended})
    scales = _Scales(max(*peaks, *marked, 2), sum(peaks.values()))
    counts = _at_least(peaks)
    places = [(float(LEFT), scales.y(scales.entities))]
    for (peak, count), (_, after) in zip(counts, [*counts[1:], (0, 0)], strict=True):
        places += [(scales.x(peak), scales.y(count)), (scales.x(peak), scales.y(after))]
    curve = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    drawn = [
        _axes(scales, them),
        f'<polygon points="{LEFT},{HEIGHT - BOTTOM} {curve}" fill="{COLOURS[0]}" fill-opacity="0.15"/>',
        f'<polyline points="{curve}" fill="none" stroke="{COLOURS[0]}" stroke-width="1.8"/>',
        *_marks(scales, counts, marked, recommended, noun),
    ]
    name = f"{scales.entities} {them} by the most they had open at once, which is {max(peaks)} at most. Caps marked: "
    return svg(drawn, HEIGHT, name + ", ".join(map(str, marked)))


def _at_least(peaks: Mapping[int, int]) -> list[tuple[int, int]]:
    """(peak, how many entities had at least that), in order of peak."""
    found = []
    rest = sum(peaks.values())
    for peak in sorted(peaks):
        found.append((peak, rest))
        rest -= peaks[peak]
    return found


def _marks(
    scales: _Scales, counts: Sequence[tuple[int, int]], caps: Sequence[int], recommended: Mapping[int, str], noun: str
) -> list[str]:
    """A line for each cap, with its name in the lowest line above the picture that has room; without one where none has."""
    parts = []
    free_from = [0.0] * LINES
    for cap in sorted(caps, key=lambda cap: cap not in recommended):
        x = scales.x(cap)
        touched = next((count for peak, count in counts if peak > cap), 0)
        dashes = "" if cap in recommended else ' stroke-dasharray="4 3"'
        ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"'
        title = f"<title>a cap of {cap}: {touched:,} {plural(noun, touched)} had more open</title>"
        parts.append(f'<line class="cap" {ends} stroke="{COLOUR_OF["ip_cap"]}"{dashes}>{title}</line>')
        text = f"{cap:,} {recommended.get(cap, '')}".rstrip()
        half = len(text) * CHARACTER / 2
        middle = min(max(x, LEFT + half), WIDTH - RIGHT - half)
        line = next((each for each in range(LINES) if free_from[each] <= middle - half), None)
        if line is not None:
            free_from[line] = middle + half + 4
            parts.append(
                f'<text class="ink" x="{middle:.1f}" y="{TOP - 6 - 14 * line}" text-anchor="middle">{text}</text>'
            )
    return parts


def _axes(scales: _Scales, them: str) -> str:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts = [f'<text text-anchor="middle" transform="translate(14 {middle}) rotate(-90)">{them} (log scale)</text>']
    for power in range(scales.powers + 1):
        y = scales.y(10**power)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(10**power)}</text>')
    steps = (1,) if scales.greatest > 20_000 else (1, 2, 5)
    for count in (step * 10**power for power in range(len(str(scales.greatest))) for step in steps):
        if count <= scales.greatest:
            x = scales.x(count)
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{short(count)}</text>')
    words = "had at least so many open at once (log scale)"
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{words}</text>')
    return "".join(parts)
