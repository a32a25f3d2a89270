"""A cluster that was running before, of which one client is judged."""

from __future__ import annotations

from pathlib import Path

from turnstile.admin_client import AdminClient
from turnstile.cluster_changes import ClusterChanges
from turnstile.verdict.judged import CannotJudge


class RunningCluster(ClusterChanges):
    """The cluster at an admin API on this machine, whose journal is read. Raises AdminError, CannotJudge."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin
        about = admin.get("/v1/cluster")
        self.journal = Path(about["data_dir"]) / "journal"
        if not self.journal.is_dir():
            raise CannotJudge(f"the cluster's journal {self.journal} can't be read from here")
        self.bootstrap: str = about["listeners"][0]["address"]

    @property
    def admin(self) -> AdminClient:
        return self._admin

    def kill_shard(self, shard: int = 0, broker: int = 0) -> None:
        """Never: others use it, too."""
        raise NotImplementedError
