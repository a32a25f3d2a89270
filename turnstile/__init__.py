"""The parts that people use: a cluster for Python programs and tests, the `turnstile` command, the load driver, replay, the Spark
jobs.

    with turnstile.Cluster(limits={"per_ip": 50}, topics={"orders": 6}) as cluster:
        run_my_client(cluster.bootstrap)
        assert not cluster.refusals().total

Names are imported when they are first used, so that `import turnstile` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnstile.admin_client import AdminError
    from turnstile.async_cluster import AsyncCluster
    from turnstile.cluster import Cluster, ClusterError, ClusterWarning, Refusals, Throttled
    from turnstile.container import KafkaContainer

_HOMES = {
    "AdminError": "turnstile.admin_client",
    "AsyncCluster": "turnstile.async_cluster",
    "Cluster": "turnstile.cluster",
    "ClusterError": "turnstile.cluster",
    "ClusterWarning": "turnstile.cluster",
    "KafkaContainer": "turnstile.container",
    "Refusals": "turnstile.cluster",
    "Throttled": "turnstile.cluster",
}
__all__ = [
    "AdminError",
    "AsyncCluster",
    "Cluster",
    "ClusterError",
    "ClusterWarning",
    "KafkaContainer",
    "Refusals",
    "Throttled",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'turnstile' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
