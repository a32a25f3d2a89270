"""The pool and the rate of the cluster for tests of one shard."""

from __future__ import annotations

from typing import Any, cast

from shards.config.image import ClusterImage
from shards.limits.caps import UNLIMITED
from shards.rates.cluster_rate import ClusterRate
from shards.tokens.cluster_pool import ClusterPool


def uncapped() -> ClusterPool:
    """That of a cluster of one shard, without a cap."""
    return ClusterPool((0, 0), 1, 1, epoch=1, send=cast(Any, None), rule_of=lambda pool: UNLIMITED)


def unrated() -> ClusterRate:
    """That of a cluster of one shard, without a rate."""
    return ClusterRate((0, 0), 1, 1, ClusterImage(), send=cast(Any, None), now_ms=lambda: 0)
