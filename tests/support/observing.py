"""Limits of a cluster under test that are observed instead of enforced."""

from __future__ import annotations

from typing import Any

from harness import Cluster


def observe(cluster: Cluster, **values: Any) -> None:
    """Observes these values, by the names of their settings; None: no more."""
    remove = [name for name, value in values.items() if value is None]
    upsert = {name: value for name, value in values.items() if value is not None}
    cluster.client.put("/v1/cluster_config", {"upsert": upsert, "remove": remove}, observe=True)
