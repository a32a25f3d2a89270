"""`make demo`: a cluster, a storm from behind a NAT, a cap changed in its middle, and who was refused and why.

Everything is done with the commands a user has; they are printed as they run.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from turnstile.admin_client import AdminClient
from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.jvm import check_java

ROOT = Path(__file__).resolve().parent.parent
TURNSTILE = str(Path(sys.executable).parent / "turnstile")
OUT = ROOT / "out" / "demo"
CHANGE_AFTER_S = 3.0

console = Console(highlight=False)


def main() -> int:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    shards = max(2, len(os.sched_getaffinity(0)))
    step("A broker with one process per core. An address may have 50 connections.")
    cluster = start(["up", "--shards", str(shards), "--port", "0", "--admin-port", "0", "--data-dir", str(OUT / "data"),
                     "--set", "kafka_connections_max_per_ip=50"])  # fmt: skip
    try:
        show(cluster)
    except KeyboardInterrupt:
        console.print("\nStopped.")
        return 130
    finally:
        cluster["process"].send_signal(signal.SIGINT)
        cluster["process"].wait()
    return prove()


def show(cluster: dict[str, Any]) -> None:
    os.environ["TURNSTILE_ADMIN"] = cluster["admin"]
    admin = AdminClient(cluster["admin"])
    bootstrap = cluster["listeners"][0]["address"]
    step("300 clients behind one NAT address, 100 with an address each, and a real producer and consumer.")
    storm(admin, ["load", "--scenario", "scripts/demo.toml", "--bootstrap", bootstrap])
    step(
        "KIP-612: clients that open a connection for every request. No cap helps; a creation rate for each address does."
    )
    run(["quota", "set", "ip=<default>", "connection_creation_rate=20"])
    run(["load", "--scenario", "per-request", "--bootstrap", bootstrap])
    tell_who_was_refused(admin)


def tell_who_was_refused(admin: AdminClient) -> None:
    step("Who was refused, and why.")
    show_refusals(admin)
    step("What holds for one of the hosts that open a connection for every request, and how much of it is used.")
    run(["explain", "ip=127.9.0.1"])


def prove() -> int:
    """The audit's verdict and the report, from the journal that the cluster left. Without a JDK: says so."""
    try:
        check_java()
    except PipelineError as missing:
        step(f"Left out: the audit of the journal, and a report of it. {missing}")
        return 0
    journal = str((OUT / "data" / "journal").relative_to(ROOT))
    report = str((OUT / "report.html").relative_to(ROOT))
    step(f"Every decision is in the journal, {journal}. Was a limit ever exceeded?")
    verdict = run(["audit", journal])
    step("And the same as a report.")
    return verdict or run(["report", journal, "--html", report])


def step(text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]")


def say_command(arguments: list[str]) -> None:
    console.print(f"[cyan]$ turnstile {shlex.join(arguments)}[/cyan]")


def start(arguments: list[str]) -> dict[str, Any]:
    """Starts `turnstile up`, shows what it says, and returns what it is."""
    say_command(arguments)
    process = subprocess.Popen([TURNSTILE, *arguments, "--json"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        sys.exit(process.wait() or 1)
    started: dict[str, Any] = json.loads(line)
    for listener in started["listeners"]:
        console.print(f"  {listener['name']:<12} {listener['address']}")
    console.print(f"  {'admin':<12} {started['admin']}   (a live page, while this runs)")
    return {**started, "process": process}


def run(arguments: list[str]) -> int:
    """Runs a command and shows what it prints; returns its exit code."""
    say_command(arguments)
    return subprocess.run([TURNSTILE, *arguments], cwd=ROOT).returncode


def storm(admin: AdminClient, arguments: list[str]) -> None:
    """Runs a load, tells once a second how it goes, and changes a cap in its middle."""
    say_command(arguments)
    load = subprocess.Popen(
        [TURNSTILE, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,  # no terminal: the load draws no progress bar into the lines printed here
        text=True,
        env={**os.environ, "COLUMNS": str(console.width)},
    )
    began = time.monotonic()
    changed = False
    while load.poll() is None:
        elapsed = time.monotonic() - began
        if elapsed >= CHANGE_AFTER_S and not changed:
            changed = True
            console.print("  the office calls; it may have 200, from now on:")
            run(["config", "set", "kafka_connections_max_overrides", "127.1.0.1:200"])
        tell_progress(admin, elapsed)
        try:
            load.wait(1)
        except subprocess.TimeoutExpired:
            continue
    out, err = load.communicate()
    print(out)
    if err:
        print(err, file=sys.stderr)


def tell_progress(admin: AdminClient, elapsed_s: float) -> None:
    by_reason = admin.get("/v1/refusals?by=reason")
    open_now = sum(each["connections"] for each in admin.get("/v1/shards")["shards"])
    console.print(
        f"  {elapsed_s:4.1f} s   {open_now:4} open   {by_reason['admitted']:5} admitted   {by_reason['total']:5} refused"
    )


def show_refusals(admin: AdminClient) -> None:
    table = Table("reason", "refused", title="By reason", title_justify="left")
    for row in admin.get("/v1/refusals?by=reason")["refusals"]:
        if row["count"]:
            table.add_row(row["reason"], f"{row['count']:,}")
    console.print(table)
    table = Table("address", "refused", "why", title="By address", title_justify="left")
    for row in admin.get("/v1/refusals?by=ip")["refusals"][:5]:
        table.add_row(
            row["ip"], f"{row['count']:,}", ", ".join(f"{name} {count:,}" for name, count in row["reasons"].items())
        )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
