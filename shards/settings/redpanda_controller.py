"""Redpanda's settings of how many operations a second its controller takes; names as Redpanda spells them, `accummulation` too."""

from __future__ import annotations

from shards.settings.config_key import REDPANDA, ConfigKey
from shards.settings.config_types import BOOLEAN, long, whole
from shards.settings.ranges import INT_MAX

ENABLED = "enable_controller_log_rate_limiting"
GROUPS = {
    "topic_operations": "topics that are created, extended, deleted or have configs changed",
    "acls_and_users_operations": "users that are changed, and requests that change ACLs",
    "move_operations": "topics of which partitions are reassigned",
    "configuration_operations": "changes of settings",
}


def rate_of(group: str) -> str:
    """The setting that is the rate of a group."""
    return f"rps_limit_{group}"


def capacity_of(group: str) -> str:
    """The setting of how many operations of a group there may be at once."""
    return f"controller_log_accummulation_rps_capacity_{group}"


CONTROLLER = [
    ConfigKey(ENABLED, BOOLEAN, False, "Whether the controller refuses operations beyond the rps_limit_* below.", REDPANDA, True),
    *(
        ConfigKey(rate_of(group), whole(1, INT_MAX), 1000,
            f"Operations a second: {what}; beyond it they are refused with THROTTLING_QUOTA_EXCEEDED, by the admin API with 429.",
            REDPANDA, True)
        for group, what in GROUPS.items()
    ),
    *(
        ConfigKey(capacity_of(group), long(1), None, f"How many of them there may be at once; unset: {rate_of(group)}.",
            REDPANDA, True)
        for group in GROUPS
    ),
]  # fmt: skip
