"""`turnstile restart`: ends a running cluster and starts it again, as its own process does (broker/process/cluster_restart.py)."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from broker.process.data_dir import holder
from shards.supervisor.progress import is_alive
from turnstile.admin_client import AdminClient, AdminError, AdminUnreachable
from turnstile.cli.cluster_command import with_cluster
from turnstile.cli.logs import last_words
from turnstile.cli.output import CommandFailed, show_json
from turnstile.cli.waiting import until

if TYPE_CHECKING:
    from broker.admin.cluster_answers import ClusterAnswer

_WITHIN_S = 60.0
_ENDED_S = 1.0
"""A cluster is gone when no process of it was alive for so long."""


@click.command()
@with_cluster
def restart(cluster: AdminClient, as_json: bool) -> None:
    """End a running cluster, start it again, and wait until it answers.

    The new run has the same options, ports and data, and reads its --config file again. Clients lose their connections, and
    find the ports closed for a while, as when a broker restarts.
    """
    about = cluster.get("/v1/cluster")
    data_dir = Path(about["data_dir"])
    if holder(data_dir) != about["pid"]:
        raise CommandFailed(
            f"the cluster at {cluster.url} is not this user's on this machine: restart it where it runs"
        )
    os.kill(about["pid"], signal.SIGUSR2)
    again = _Again(cluster, about)
    if not until(again.is_up_or_gone, within_s=_WITHIN_S, what="the cluster starts again"):
        raise CommandFailed(f"the cluster did not answer within {_WITHIN_S:.0f} s")
    if again.about is None:
        words = last_words(data_dir)
        raise CommandFailed(f"the cluster has ended, and did not start again{f': {words}' if words else ''}")
    if as_json:
        show_json({"restarted": True, "pid": again.about["pid"]})
    else:
        click.echo(f"Restarted the cluster at {cluster.url} (pid {again.about['pid']}).")


class _Again:
    """Looks at a cluster that is to start again. `about`: of the new run, once it is up."""

    def __init__(self, cluster: AdminClient, before: ClusterAnswer) -> None:
        self._cluster = cluster
        self._before = before
        self._gone_s: float | None = None
        self.about: ClusterAnswer | None = None

    def is_up_or_gone(self) -> bool:
        try:
            self._cluster.get("/healthz")
            about = self._cluster.get("/v1/cluster")
        except AdminUnreachable:
            return self._is_gone()
        except AdminError:  # some processes do not answer yet
            return False
        if about["coordinator_pid"] == self._before["coordinator_pid"]:
            return False
        self.about = about
        return True

    def _is_gone(self) -> bool:
        """A detached cluster's process hands over to another one, which then answers."""
        if is_alive(self._before["pid"]) or holder(Path(self._before["data_dir"])) is not None:
            self._gone_s = None
            return False
        self._gone_s = self._gone_s or time.monotonic()
        return time.monotonic() - self._gone_s > _ENDED_S
