"""The result of a run: a table for people, and the JSON object that other programs rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from turnstile.load.driver import LoadResult
from turnstile.load.drivers import summary
from turnstile.load.probes import CLOSE
from turnstile.load.spec import LoadScenario
from turnstile.load.tally import Tally
from turnstile.load.throttles import sentence
from turnstile.load.watch import Watch

PIPED_S = 2.0
WORTH_SAYING_S = 0.2
"""Starts that are late by more than this are mentioned: the storm was then not the one that was asked for."""


Milliseconds = dict[str, float | None]
"""p50, p99 and max; None where nothing was measured."""


class TallyJson(TypedDict):
    """The connections by how they ended, and the times that they took. `refused_as`: the refused ones by how they ended."""

    attempted: int
    admitted: int
    refused: int
    refused_as: dict[str, int]
    broken: int
    connect_errors: int
    closed_by_broker: int
    unanswered: int
    connect_ms: Milliseconds
    refuse_ms: Milliseconds


class GroupJson(TallyJson):
    """The result of one group of clients. `per_second`: admitted and refused, from the start on."""

    per_second: list[tuple[int, int]]


class ClusterCounts(TypedDict):
    """The cluster's own counts of the same time; `refused` by reason."""

    admitted: int
    refused: Mapping[str, int]


class RunJson(TallyJson):
    """A run as docs/load.md lists it. `cluster` and `reconciled` are None where the cluster has no counters."""

    scenario: str
    seconds: float
    late_s: float
    interrupted: bool
    groups: dict[str, GroupJson]
    traffic: dict[str, object] | None
    cluster: ClusterCounts | None
    reconciled: bool | None
    reconciliation: str
    others: dict[str, int]
    drivers: list[dict[str, object]]


def as_json(result: LoadResult) -> RunJson:
    """The result as other programs read it."""
    cluster = result.cluster
    return {
        "scenario": result.scenario.name,
        **_numbers(result.total),
        "seconds": round(result.seconds, 3),
        "late_s": round(result.total.late_s, 3),
        "interrupted": result.interrupted,
        "groups": {
            group.name: {**_numbers(tally), "per_second": tally.per_second}
            for group, tally in zip(result.scenario.groups, result.groups, strict=True)
        },
        "traffic": vars(result.traffic) if result.traffic else None,
        "cluster": {"admitted": cluster.admitted, "refused": cluster.refused} if cluster else None,
        "reconciled": result.reconciliation.agree,
        "reconciliation": result.reconciliation.sentence,
        "others": dict(result.reconciliation.others),
        "drivers": [driver.as_json() for driver in result.drivers],
    }


def _numbers(tally: Tally) -> TallyJson:
    return {
        "attempted": tally.attempted,
        "admitted": tally.admitted,
        "refused": tally.refused,
        "refused_as": dict(sorted(tally.refused_as.items())),
        "broken": tally.broken,
        "connect_errors": tally.connect_errors,
        "closed_by_broker": tally.closed_by_broker,
        "unanswered": tally.unanswered,
        "connect_ms": tally.admitted_us.percentiles_ms(),
        "refuse_ms": tally.refused_us.percentiles_ms(),
    }


def show(result: LoadResult, console: Console) -> None:
    """The table, one row per group, and what goes with it."""
    table = Table(title=result.scenario.title or result.scenario.name, title_justify="left")
    table.add_column("", no_wrap=True)
    for heading in ("attempted", "admitted", "refused", "broken", "p50 ms", "p99 ms", "max ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    if len(result.groups) > 1:
        for group, tally in zip(result.scenario.groups, result.groups, strict=True):
            _row(table, group.name, tally)
        table.add_section()
    _row(
        table,
        "all" if len(result.groups) > 1 else result.scenario.groups[0].name if result.groups else "",
        result.total,
    )
    if result.groups:
        console.print(table)
    console.print(_summary(result), highlight=False, soft_wrap=True)


def _row(table: Table, name: str, tally: Tally) -> None:
    latency = tally.admitted_us.percentiles_ms()
    numbers = (tally.attempted, tally.admitted, tally.refused, tally.broken)
    times = ("-" if latency[key] is None else f"{latency[key]:.2f}" for key in ("p50", "p99", "max"))
    table.add_row(name, *(f"{number:,}" for number in numbers), *times)


def _summary(result: LoadResult) -> str:
    total = result.total
    lines = [f"{total.attempted:,} connections in {result.seconds:.1f} s ({total.attempted / result.seconds:,.0f}/s)"]
    if result.interrupted:
        lines[0] += ", interrupted"
    if result.drivers:
        lines.append(summary(result.drivers))
    if total.refused:
        refuse = total.refused_us.percentiles_ms()
        lines.append(
            f"Refusals took p50 {refuse['p50']:.2f} ms, p99 {refuse['p99']:.2f} ms, max {refuse['max']:.2f} ms"
        )
    if total.refused_as.keys() - {CLOSE}:
        ends = ", ".join(f"{end} {n:,}" for end, n in sorted(total.refused_as.items()))
        lines.append(f"Refused connections ended by: {ends}")
    if total.unanswered:
        lines.append(f"{total.unanswered:,} connections had no answer when the driver gave up on them")
    if total.late_s > WORTH_SAYING_S:
        lines.append(f"Connections started up to {total.late_s:.1f} s late: this machine could not keep the rate")
    if total.port_waits or total.file_waits:
        lines.append(
            f"This machine was short of source ports {total.port_waits:,} times, of open files {total.file_waits:,} times; "
            "those attempts were put off (more --sources, or --close rst, leave more ports)"
        )
    if result.traffic is not None:
        t = result.traffic
        lines.append(
            f"Real clients: {t.produced:,} records produced, {t.failed:,} failed, {t.consumed:,} consumed, "
            f"over {t.connections} connections"
            + (f"; {t.created:,} topics created, {t.rejected:,} refused" if t.created or t.rejected else "")
            + (f"; {t.lost_clients} clients ended without a word" if t.lost_clients else "")
        )
        lines += [f"  {sentence(label, totals)}" for label, totals in t.throttled.items()]
    if result.cluster is not None and result.cluster.refused:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in sorted(result.cluster.refused.items()))
        lines.append(f"Refused by reason: {reasons}")
    colour = {True: "green", False: "red", None: "yellow"}[result.reconciliation.agree]
    lines.append(f"[{colour}]Reconciliation: {result.reconciliation.sentence}[/]")
    return "\n".join(lines)


def list_of(scenarios: list[LoadScenario]) -> Table:
    """The shipped scenarios, for --list."""
    table = Table(show_header=True)
    table.add_column("scenario")
    table.add_column("story")
    for scenario in scenarios:
        table.add_row(scenario.name, f"{scenario.title}. {scenario.story}".strip())
    return table


class Bar:
    """A progress bar that moves when it is told to, so that no thread runs beside the fork of the workers. Elsewhere than on a
    terminal it is a line each PIPED_S."""

    def __init__(self, scenario: LoadScenario, console: Console) -> None:
        self._length_s = scenario.length_s()
        self._clients = scenario.clients
        self._console = console
        self._said_s = 0.0
        self._progress = Progress(
            TextColumn("{task.fields[says]}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task("", total=1.0, says="connecting")

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, now: Watch) -> None:
        """Show this moment."""
        if not self._console.is_terminal:
            if now.seconds >= self._said_s + PIPED_S:
                self._said_s = now.seconds
                self._console.print(f"load: {now} ({now.seconds:.0f} s)", highlight=False, soft_wrap=True)
            return
        counts = now.counts
        answered = counts["admitted"] + counts["refused"] + counts["connect_errors"]
        done = now.seconds / self._length_s if self._length_s else answered / max(1, self._clients)
        self._progress.update(self._task, completed=min(1.0, done), says=str(now))
        self._progress.refresh()
