"""`turnstile status` and `turnstile down`: a running cluster, found by its admin API."""

from __future__ import annotations

import json
import os
import time

import click

from broker.commands.admin import admin_options, call


@click.command()
@admin_options
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def status(admin: str, token: str | None, as_json: bool) -> None:
    """Show the processes of a running cluster, and how many connections each has open."""
    cluster = call(admin, token, "GET", "/v1/cluster")
    shards = call(admin, token, "GET", "/v1/shards")["shards"]
    if as_json:
        click.echo(json.dumps({**cluster, "admin": admin, "members": shards}))
        return
    click.echo(f"Turnstile at {admin} (pid {cluster['pid']}, coordinator {cluster['coordinator_pid']})")
    for listener in cluster["listeners"]:
        click.echo(f"  {listener['name']:<12} {listener['address']}   broker {listener['broker']}")
    click.echo(f"  {'data':<12} {cluster['data_dir']}")
    click.echo(f"  {'broker':>6} {'shard':>6} {'pid':>8} {'epoch':>6} {'state':<9} {'connections':>11} {'version':>8}")
    for each in shards:
        click.echo(
            f"  {each['broker']:>6} {each['shard']:>6} {each['pid']:>8} {each['epoch']:>6} {each['state']:<9} "
            f"{each['connections']:>11} {each['config_version']:>8}"
        )


@click.command()
@admin_options
def down(admin: str, token: str | None) -> None:
    """End a running cluster, and wait until it has ended."""
    pid = call(admin, token, "GET", "/v1/cluster")["pid"]
    call(admin, token, "POST", "/v1/shutdown")
    deadline = time.monotonic() + 30
    while _alive(pid):
        if time.monotonic() > deadline:
            raise click.ClickException(f"the cluster (pid {pid}) did not end within 30 s")
        time.sleep(0.02)  # not our child: nothing tells when it ends
    click.echo(f"The cluster at {admin} has ended.")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] != "Z"
