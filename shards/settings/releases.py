"""Releases whose place a cluster can take (`turnstile.as.version`), and the features that each has. Pure.

Levels are those of the jars of each release: `MetadataVersion.LATEST_PRODUCTION`, `Feature.latestProduction` and
`Feature.defaultLevel`.
Brokers with ZooKeeper, here before 3.3, and Redpanda have no features.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Feature(NamedTuple):
    """`least`, `most`: the levels that are supported; `default`: the level of a new cluster."""

    least: int
    most: int
    default: int


AS_VERSION = "turnstile.as.version"
OWN_VERSION = "turnstile"
"""No other release: all that Turnstile serves."""
METADATA_VERSION, KRAFT_VERSION = "metadata.version", "kraft.version"
TRANSACTION_VERSION, GROUP_VERSION = "transaction.version", "group.version"
ELIGIBLE_LEADER_REPLICAS_VERSION, SHARE_VERSION = "eligible.leader.replicas.version", "share.version"
STREAMS_VERSION = "streams.version"


def _metadata(least: int, most: int) -> Mapping[str, Feature]:
    return {METADATA_VERSION: Feature(least, most, most)}


_OF_4_0 = {
    **_metadata(7, 25),
    KRAFT_VERSION: Feature(0, 1, 1),
    TRANSACTION_VERSION: Feature(0, 2, 2),
    GROUP_VERSION: Feature(0, 1, 1),
    ELIGIBLE_LEADER_REPLICAS_VERSION: Feature(0, 1, 0),
}
_OF_4_1 = {
    **_OF_4_0,
    **_metadata(7, 27),
    ELIGIBLE_LEADER_REPLICAS_VERSION: Feature(0, 1, 1),
    SHARE_VERSION: Feature(0, 1, 0),
}
_OF_4_2 = {**_OF_4_1, **_metadata(7, 29), SHARE_VERSION: Feature(0, 1, 1), STREAMS_VERSION: Feature(0, 1, 1)}
RELEASES: Mapping[str, Mapping[str, Feature]] = {
    "2.8": {},
    "3.0": {},
    "3.1": {},
    "3.2": {},
    "3.3": _metadata(1, 7),
    "3.4": _metadata(1, 8),
    "3.5": _metadata(1, 11),
    "3.6": _metadata(1, 14),
    "3.7": _metadata(1, 19),
    "3.8": _metadata(1, 20),
    "3.9": {**_metadata(1, 21), KRAFT_VERSION: Feature(0, 1, 1)},
    "4.0": _OF_4_0,
    "4.1": _OF_4_1,
    "4.2": _OF_4_2,
    "4.3": {**_OF_4_2, **_metadata(7, 30)},
    "redpanda-24.3": {},
}
"""Features by name, of each release in the order of their age."""
