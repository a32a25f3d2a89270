"""`turnstile logs`: the messages of a detached cluster, which go to a file of its data directory."""

from __future__ import annotations

import os
import select
from collections import deque
from pathlib import Path
from typing import IO

import click

from broker.process.data_dir import holder
from broker.runtime.printable import printable
from turnstile.admin_client import AdminClient, AdminError
from turnstile.cli.cluster_command import admin_option, sentence, token_option
from turnstile.cli.output import CommandFailed
from turnstile.cli.up_params import DataDir

FILE = "turnstile.log"
"""The log in the data directory of a cluster that was started with --detach (broker/process/launch.py)."""
_AGAIN_MS = 200


@click.command()
@click.option(
    "--data-dir",
    type=DataDir(),
    help="The data directory of a cluster that has ended.  [default: that of the running cluster]",
)
@click.option(
    "-n", "--lines", type=click.IntRange(0), default=100, show_default=True, help="The number of last lines to show."
)
@click.option("-f", "--follow", is_flag=True, help="Also show new lines, until the cluster ends or Ctrl-C.")
@admin_option
@token_option
def logs(data_dir: Path | None, lines: int, follow: bool, admin: str, token: str | None) -> None:
    """Show the messages of a cluster that was started with `turnstile up --detach`.

    Any other cluster prints its messages on the terminal where it was started.

    \b
    turnstile logs
    turnstile logs --follow --name orders
    turnstile logs --data-dir data
    """
    if data_dir is None:
        data_dir = _data_dir_of(AdminClient(admin, token))
    try:
        with (data_dir / FILE).open(errors="replace") as file:
            shown = deque(file, lines)
            for line in shown:
                _show(line)
            if not shown and lines:
                click.echo(f"the cluster has no messages since its start ({data_dir / FILE})", err=True)
            if follow:
                _follow(file, data_dir)
    except FileNotFoundError:
        raise CommandFailed(
            f"there is no {data_dir / FILE}: only a cluster that was started with --detach writes one"
        ) from None
    except OSError as fault:
        raise CommandFailed(f"{data_dir / FILE} can't be read: {fault.strerror}") from None
    except KeyboardInterrupt:
        if not follow:
            raise


def _data_dir_of(cluster: AdminClient) -> Path:
    try:
        return Path(cluster.get("/v1/cluster")["data_dir"])
    except AdminError as fault:
        raise CommandFailed(sentence(fault, cluster.url)) from None


def _follow(file: IO[str], data_dir: Path) -> None:
    """Ends when the cluster has, and when our output is not read any more."""
    reader = select.poll()
    reader.register(1, 0)
    begun = ""
    while True:
        is_running = holder(data_dir) is not None
        while line := file.readline():
            begun += line
            if begun.endswith("\n"):
                _show(begun)
                begun = ""
        if not is_running:
            return
        if any(event & (select.POLLERR | select.POLLHUP) for _, event in reader.poll(_AGAIN_MS)):
            return


def _show(line: str) -> None:
    click.echo(printable(line.rstrip("\n")))


def last_words(data_dir: Path) -> str:
    """The last line with words that a detached cluster has said; "" where there is none."""
    try:
        with (data_dir / FILE).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            lines = file.read().decode(errors="replace").splitlines()
            return next((printable(line.strip()) for line in reversed(lines) if any(map(str.isalpha, line))), "")
    except OSError:
        return ""
