"""`turnstile demo`: a cluster, a storm from behind a NAT, a cap changed in its middle, and who was refused and why.

Everything is done with the commands a user has; they are printed as they run. It needs no checkout, no Spark and no JDK.

demo_ends_its_cluster  However the demo ends, its cluster and its commands have ended, and a temporary folder is gone.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from turnstile.admin_client import AdminClient, AdminError
from turnstile.cli.output import CommandFailed
from turnstile.cli.up_params import DataDir
from turnstile.cluster_process import ClusterError, ClusterProcess

TURNSTILE = (sys.executable, "-P", "-m", "turnstile.entry")
_CHANGE_AFTER_S = 2.0
_SAYS_EACH_S = 1.0
_FOR_AUDITS = ("numpy", "pandas", "pyarrow", "pyspark")


@click.command()
@click.option(
    "--data-dir",
    type=DataDir(),
    help="The folder for the journal and the report, empty or new.  [default: a temporary folder, removed at the end]",
)
def demo(data_dir: Path | None) -> None:
    """Launch a cluster, drive a load, and show which clients were refused and why. Takes half a minute, on free ports.

    \b
    turnstile demo
    turnstile demo --data-dir demo      keeps the journal, and writes a report of it

    With turnstile-kafka[pipeline] installed, the demo also audits the journal.
    """
    if data_dir is not None and data_dir.is_dir() and any(data_dir.iterdir()):
        raise click.UsageError(f"--data-dir {data_dir} is not empty: the demo needs a folder of its own")
    console = Console(highlight=False)
    try:
        with _folder(data_dir) as folder:
            _demonstrate(console, folder, keeps=data_dir is not None)
    except (ClusterError, AdminError) as fault:
        raise CommandFailed(f"the demo could not go on: {fault}") from None


@contextmanager
def _folder(chosen: Path | None) -> Iterator[Path]:
    """A folder that is there for the demo, or for ever."""
    if chosen is not None:
        yield chosen.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="turnstile-demo-", ignore_cleanup_errors=True) as made:
        yield Path(made)


def _demonstrate(console: Console, folder: Path, *, keeps: bool) -> None:
    shards = max(2, len(os.sched_getaffinity(0)))
    _step(console, "A broker with one process per core. An address may have 50 connections.")
    options = ["--shards", str(shards), "--port", "0", "--admin-port", "0", "--set", "kafka_connections_max_per_ip=50"]
    _say_command(console, ["up", *options])
    cluster = ClusterProcess([*options, "--data-dir", str(folder)], keeps_data=True)
    try:
        _say_addresses(console, cluster.told)
        stage = Stage(console, cluster.told["admin"])
        bootstrap = cluster.told["listeners"][0]["address"]
        _step(console, "300 clients behind one NAT address, 100 with an address each, a real producer and consumer.")
        stage.storm(["load", "--scenario", "office", "--bootstrap", bootstrap])
        _step(console, "KIP-612: clients that open a connection for every request. No cap helps; a creation rate does.")
        stage.run(["quota", "set", "ip=<default>", "connection_creation_rate=20"])
        stage.run(["load", "--scenario", "per-request", "--bootstrap", bootstrap])
        stage.tell_who_was_refused()
    finally:
        cluster.stop()
    _prove(console, folder, keeps=keeps)


class Stage:
    """The commands of the demo, run on its cluster and shown."""

    def __init__(self, console: Console, admin_url: str, *, change_after_s: float = _CHANGE_AFTER_S) -> None:
        """`change_after_s`: how long after the first refusal of a storm its cap is changed."""
        self._console = console
        self._admin = AdminClient(admin_url)
        self._change_after_s = change_after_s
        self._environment = _environment(admin_url, console.width)

    def run(self, arguments: Sequence[str]) -> None:
        """Runs a command and shows what it prints. Raises ClusterError when it fails."""
        _run(self._console, arguments, self._environment)

    def storm(self, arguments: Sequence[str]) -> None:
        """Runs a load, tells once a second how it goes, and changes a cap in its middle."""
        _say_command(self._console, arguments)
        # No terminal: the load draws no progress bar into the lines that are printed here.
        load = subprocess.Popen(
            [*TURNSTILE, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        try:
            self._tell_progress(load)
            out, err = load.communicate()
        finally:
            load.kill()
            load.wait()
        self._console.out(out.rstrip("\n"))
        if load.returncode:
            raise ClusterError(f"turnstile {shlex.join(arguments)} ended with {load.returncode}: {err.strip()}")

    def _tell_progress(self, load: subprocess.Popen[str]) -> None:
        began_s = time.monotonic()
        change_s: float | None = None
        is_changed = False
        while load.poll() is None:
            elapsed_s = time.monotonic() - began_s
            refused = self._tell_counts(elapsed_s)
            if refused and change_s is None:
                change_s = elapsed_s + self._change_after_s
            if change_s is not None and elapsed_s >= change_s and not is_changed:
                is_changed = True
                self._console.print("  the office calls; it may have 200, from now on:")
                self.run(["config", "set", "kafka_connections_max_overrides", "127.1.0.1:200"])
            try:
                load.wait(_SAYS_EACH_S)
            except subprocess.TimeoutExpired:
                continue

    def _tell_counts(self, elapsed_s: float) -> int:
        """Returns how many were refused."""
        by_reason = self._admin.get("/v1/refusals?by=reason")
        open_now = sum(each["connections"] for each in self._admin.get("/v1/shards")["shards"])
        why = ", ".join(f"{row['reason']} {row['count']:,}" for row in by_reason["refusals"] if row["count"])
        self._console.print(
            f"  {elapsed_s:4.1f} s   {open_now:4} open   {by_reason['admitted']:5} admitted   "
            f"{by_reason['total']:5} refused{f': {why}' if why else ''}"
        )
        return int(by_reason["total"])

    def tell_who_was_refused(self) -> None:
        """The refusals by reason and by address, and what holds for one of the addresses."""
        _step(self._console, "The clients that were refused, and why.")
        by_reason, by_ip = (self._admin.get(f"/v1/refusals?by={what}")["refusals"] for what in ("reason", "ip"))
        _show_table(
            self._console, "By reason", ("reason", "refused"), [(row["reason"], row["count"]) for row in by_reason]
        )
        rows = [(row["ip"], row["count"], ", ".join(f"{n} {c:,}" for n, c in row["reasons"].items())) for row in by_ip]
        _show_table(self._console, "By address", ("address", "refused", "why"), rows[:5])
        _step(
            self._console,
            "What holds for a host that opens a connection for every request, and how much of it is used.",
        )
        self.run(["explain", "ip=127.9.0.1"])


def _prove(console: Console, folder: Path, *, keeps: bool) -> None:
    """The audit's verdict from the journal that the cluster left, and the report where that stays."""
    if not all(find_spec(name) for name in _FOR_AUDITS):
        _step(console, "Every decision is in the journal. To audit it: pip install 'turnstile-kafka[pipeline]'.")
        return
    environment = _environment(None, console.width)
    _step(console, "Every decision is in the journal. Was a limit ever exceeded?")
    _run(console, ["audit", str(folder / "journal")], environment)
    if keeps:
        _step(console, "And the same as a report.")
        _run(console, ["report", str(folder / "journal"), "--html", str(folder / "report.html")], environment)


def _environment(admin_url: str | None, width: int) -> dict[str, str]:
    """The environment of the demo's commands, without the user's TURNSTILE_ variables, which would change their settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TURNSTILE_")}
    return {**kept, "COLUMNS": str(width), **({"TURNSTILE_ADMIN": admin_url} if admin_url else {})}


def _run(console: Console, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Runs a command, whose words go where ours go. Raises ClusterError when it fails."""
    _say_command(console, arguments)
    sys.stdout.flush()
    code = subprocess.run([*TURNSTILE, *arguments], env=environment).returncode
    if code:
        raise ClusterError(f"turnstile {shlex.join(arguments)} ended with {code}")


def _step(console: Console, text: str) -> None:
    console.print(f"\n{text}", style="bold", markup=False, soft_wrap=True)


def _say_command(console: Console, arguments: Sequence[str]) -> None:
    console.print(f"$ turnstile {shlex.join(arguments)}", style="cyan", markup=False, soft_wrap=True)


def _say_addresses(console: Console, started: Mapping[str, Any]) -> None:
    for listener in started["listeners"]:
        console.print(f"  {listener['name']:<12} {listener['address']}")
    console.print(f"  {'admin':<12} {started['admin']}   (a live page, while this runs)", soft_wrap=True)


def _show_table(
    console: Console, title: str, headings: Sequence[str], rows: Sequence[tuple[str, int] | tuple[str, int, str]]
) -> None:
    table = Table(*headings, title=title, title_justify="left")
    for name, count, *why in rows:
        if count:
            table.add_row(name, f"{count:,}", *why)
    console.print(table)
