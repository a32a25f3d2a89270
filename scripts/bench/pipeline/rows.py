"""The rows of the pipeline's table: what is measured at which sizes, beside which peer, against which goal."""

from collections.abc import Mapping
from typing import NamedTuple

from scripts.bench.pipeline.measures import CAPS
from scripts.bench.pipeline.runs import Measured

COLUMNS = ("what", "connections", "measured", "CPU", "memory", "peer in the same run", "goal", "", "on")
MILLION = 1_000_000
SMALL_REPORT, LARGE_REPORT = 40_754, 5 * MILLION
"""Connections whose journals have 81,527 and some 10 million events."""


class Row(NamedTuple):
    """`what`: one of MEASURES. `sizes`: connections. `peer`: another row; its ratios are of seconds, and of CPU time per event
    at the peer's nearest size in the run.

    Goals by size: `goal_s` of its seconds, `goal_gib` of all its processes together, `goal_cpu` of its CPU time per event beside
    the peer's; the last is a row of its own.
    """

    group: str
    what: str
    sizes: tuple[int, ...]
    peer: str | None = None
    goal_s: Mapping[int, float] = {}
    goal_gib: Mapping[int, float] = {}
    goal_cpu: Mapping[int, float] = {}
    is_same: bool = True
    """True if the peer's answer has to be the same."""


Found = dict[tuple[str, int], Measured | str]
"""(measure, connections) -> its figures, or why there are none."""

_PLAN, _TEN, _DUCK = (f"{what}, {len(CAPS)} caps" for what in ("plan", "ten lines of Python", "DuckDB and a loop"))
_CAPS, _TOKENS = "audit, caps", "audit, caps, grants and rates"
_SPARK_CAPS, _SPARK_TOKENS = "audit on Spark, caps", "audit on Spark, caps, grants and rates"
ROWS = (
    Row("audit", _CAPS, (MILLION, 10 * MILLION), "pandas, counting only", is_same=False),
    Row("audit", "pandas, counting only", (MILLION, 10 * MILLION)),
    Row("audit", _SPARK_CAPS, (MILLION, 10 * MILLION), _CAPS, {MILLION: 15, 10 * MILLION: 60}, goal_cpu={MILLION: 2}),
    Row("tokens", _TOKENS, (MILLION,)),
    Row(
        "tokens", _SPARK_TOKENS, (MILLION, 10 * MILLION), _TOKENS, {10 * MILLION: 300}, {10 * MILLION: 6}, {MILLION: 2}
    ),
    Row("plan", _TEN, (MILLION, 10 * MILLION)),
    Row("plan", _DUCK, (MILLION, 10 * MILLION)),
    Row("plan", _PLAN, (MILLION, 10 * MILLION), _TEN, {MILLION: 4, 10 * MILLION: 22}),
    Row("plan", f"plan on Spark, {len(CAPS)} caps", (10 * MILLION,), _DUCK),
    Row("report", "report on Spark", (SMALL_REPORT, LARGE_REPORT)),
    Row("report", "report", (SMALL_REPORT, LARGE_REPORT), "report on Spark", {SMALL_REPORT: 3, LARGE_REPORT: 30}),
    Row("quotas", "json.loads of each request", (200_000,)),
    Row("quotas", "plan --quotas", (200_000,), "json.loads of each request", is_same=False),
    Row("growth", _CAPS, (2 * MILLION,)),
    Row("growth", _SPARK_CAPS, (100 * MILLION,), _CAPS),
)
LOAD, GROWTH = "load", "growth"
GROUPS = (*dict.fromkeys(row.group for row in ROWS), LOAD)


def lines(row: Row, connections: int, found: Found, day: str) -> list[tuple[str, ...]]:
    """A row as COLUMNS has it, and behind it the one of CPU time per event, where that has a goal."""
    mine, key = found[row.what, connections], f"{connections:,}"
    if isinstance(mine, str):
        return [(row.what, key, f"not measured: {mine}", *[""] * (len(COLUMNS) - 4), day)]
    peers = {size: each for (what, size), each in found.items() if what == row.peer and not isinstance(each, str)}
    nearest = min(peers, key=lambda size: abs(size - connections), default=None)
    told, wrong = _beside(row, mine, connections, peers, nearest)
    goal, is_met = _goal(row, mine, connections)
    memory = f"{mine.peak_bytes / 2**30:.1f} GiB, largest {mine.largest_bytes / 2**30:.1f}"
    cpu = f"{mine.cpu_s:,.1f} s, {mine.cpu_us:.2f} us an event"
    made = [(row.what, key, f"{mine.seconds:,.1f} s", cpu, memory, told, goal, wrong or _verdict(is_met), day)]
    if connections in row.goal_cpu and nearest is not None:
        ratio, at_most = mine.cpu_us / peers[nearest].cpu_us, row.goal_cpu[connections]
        name = f"- {row.what}: CPU per event beside one process"
        made.append((name, key, f"{ratio:.2f} x", "", "", "", f"{at_most} x", _verdict(ratio <= at_most), day))
    return made


def _beside(
    row: Row, mine: Measured, connections: int, peers: Mapping[int, Measured], nearest: int | None
) -> tuple[str, str]:
    """The peer's figures and the ratio to them; and what is wrong where the two answers should be the same and differ."""
    if nearest is None:
        return "", ""
    peer = peers[nearest]
    if nearest != connections:
        return f"{row.peer}, {nearest:,}: CPU {peer.cpu_us:.2f} us an event: {mine.cpu_us / peer.cpu_us:.2f} x", ""
    wrong = "" if mine.answer == peer.answer or not row.is_same else f"**answers differ**: {mine.answer}, {peer.answer}"
    return (
        f"{row.peer} {peer.seconds:,.1f} s: {mine.seconds / peer.seconds:.2f} x, CPU {mine.cpu_s / peer.cpu_s:.2f} x",
        wrong,
    )


def _goal(row: Row, mine: Measured, connections: int) -> tuple[str, bool | None]:
    seconds, gib = row.goal_s.get(connections), row.goal_gib.get(connections)
    if seconds is None:
        return "", None
    is_met = mine.seconds <= seconds and (gib is None or mine.peak_bytes <= gib * 2**30)
    return f"{seconds} s" + (f", {gib} GiB" if gib is not None else ""), is_met


def _verdict(is_met: bool | None) -> str:
    return {True: "met", False: "**missed**", None: ""}[is_met]


def merged(kept: list[tuple[str, ...]], fresh: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """`kept`, with each line of `fresh` in the place of the one of the same what and connections, or where ROWS have it."""
    by_key = {line[:2]: line for line in (*kept, *fresh)}
    order = [row.what for row in ROWS]

    def place(line: tuple[str, ...]) -> tuple[int, int, int]:
        what = line[0].removeprefix("- ").partition(":")[0]
        return (
            order.index(what) if what in order else len(order),
            int(line[1].replace(",", "")),
            line[0].startswith("- "),
        )

    return sorted(by_key.values(), key=place)
