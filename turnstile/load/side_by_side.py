"""The results of two runs, side by side: a table for people, and the JSON object other programs rely on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from rich.console import Console
from rich.table import Table

from turnstile.load import output
from turnstile.load.comparison import Comparison
from turnstile.load.driver import LoadResult
from turnstile.load.tally import Tally
from turnstile.load.throttles import sentence

_COUNTS = ("attempted", "admitted", "refused", "broken", "unanswered")
_CLIENTS = {"produced": "records produced", "failed": "records failed", "consumed": "records consumed",
            "created": "topics created", "rejected": "topics refused"}  # fmt: skip


def as_json(both: Comparison) -> dict[str, object]:
    """`applied`, and each run as output.as_json has it; `with` is null where the first was interrupted."""
    return {
        "scenario": both.scenario.name,
        "applied": both.scenario.suggested.as_json(),
        "without": output.as_json(both.plain),
        "with": output.as_json(both.limited) if both.limited is not None else None,
    }


def show(both: Comparison, console: Console) -> None:
    """The table, and whether driver and cluster agree."""
    if both.limited is None:
        output.show(both.plain, console)
        return
    table = Table("")
    for heading in ("without", "with"):
        table.add_column(heading, justify="right")
    for section in _sections(both.plain, both.limited):
        for row in section:
            table.add_row(*row)
        table.add_section()
    console.print(table)
    for name, run in (("without", both.plain), ("with", both.limited)):
        console.print(f"{name}: {run.reconciliation.sentence}", highlight=False, markup=False)


Section = list[tuple[str, str, str]]


def _sections(plain: LoadResult, limited: LoadResult) -> Iterator[Section]:
    names = [group.name for group in plain.scenario.groups]
    for name, one, other in zip(names, plain.groups, limited.groups, strict=True):
        yield list(_group(name, one, other))
    if plain.traffic is not None and limited.traffic is not None:
        totals = [vars(run.traffic) for run in (plain, limited)]
        yield [
            (label, f"{totals[0][key]:,}", f"{totals[1][key]:,}")
            for key, label in _CLIENTS.items()
            if totals[0][key] or totals[1][key]
        ]
        labels = list(dict.fromkeys([*plain.traffic.throttled, *limited.traffic.throttled]))
        yield [(label, *(_throttled(run, label) for run in (plain, limited))) for label in labels]  # type: ignore[misc]
    reasons = [sorted(run.cluster.refused.items()) if run.cluster is not None else [] for run in (plain, limited)]
    said = [[f"{reason} {count:,}" for reason, count in each] for each in reasons]
    yield [("refused by" if row == 0 else "", *both) for row, both in enumerate(zip_longest(*said, fillvalue=""))]  # type: ignore[misc]


def _group(name: str, one: Tally, other: Tally) -> Iterator[tuple[str, str, str]]:
    yield name, "", ""
    for count in _COUNTS:
        values = getattr(one, count), getattr(other, count)
        if any(values) or count in ("admitted", "refused"):
            yield f"  {count}", f"{values[0]:,}", f"{values[1]:,}"
    times = [tally.admitted_us.percentiles_ms() for tally in (one, other)]
    for key in ("p50", "p99", "max"):
        found = ["-" if each[key] is None else f"{each[key]:.2f}" for each in times]
        yield f"  {key} ms", found[0], found[1]


def _throttled(run: LoadResult, label: str) -> str:
    totals = run.traffic.throttled.get(label) if run.traffic is not None else None
    return sentence("", totals).removeprefix(": ") if totals is not None else ""
