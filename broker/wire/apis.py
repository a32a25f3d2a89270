"""The APIs of Kafka 4.3 and their versions."""

from functools import cache
from typing import NamedTuple


class Api(NamedTuple):
    """An API: the versions that kio and Kafka 4.3 have."""

    name: str  # kio's package
    min_version: int
    max_version: int
    flexible_from: int  # the first version with tagged fields, in header and body; 99 if none


METADATA = 3
API_VERSIONS = 18
ALTER_USER_SCRAM_CREDENTIALS = 51
APIS = {
    0: Api("produce", 3, 13, 9),
    1: Api("fetch", 4, 18, 12),
    2: Api("list_offsets", 1, 11, 6),
    3: Api("metadata", 0, 13, 9),
    8: Api("offset_commit", 2, 10, 8),
    9: Api("offset_fetch", 1, 10, 6),
    10: Api("find_coordinator", 0, 6, 3),
    11: Api("join_group", 0, 9, 6),
    12: Api("heartbeat", 0, 4, 4),
    13: Api("leave_group", 0, 5, 4),
    14: Api("sync_group", 0, 5, 4),
    15: Api("describe_groups", 0, 6, 5),
    16: Api("list_groups", 0, 5, 3),
    17: Api("sasl_handshake", 0, 1, 99),
    18: Api("api_versions", 0, 4, 3),
    19: Api("create_topics", 2, 7, 5),
    20: Api("delete_topics", 1, 6, 4),
    21: Api("delete_records", 0, 2, 2),
    22: Api("init_producer_id", 0, 5, 2),
    23: Api("offset_for_leader_epoch", 2, 4, 4),
    24: Api("add_partitions_to_txn", 0, 5, 3),
    25: Api("add_offsets_to_txn", 0, 4, 3),
    26: Api("end_txn", 0, 5, 3),
    27: Api("write_txn_markers", 1, 2, 1),
    28: Api("txn_offset_commit", 0, 5, 3),
    29: Api("describe_acls", 1, 3, 2),
    30: Api("create_acls", 1, 3, 2),
    31: Api("delete_acls", 1, 3, 2),
    32: Api("describe_configs", 1, 4, 4),
    33: Api("alter_configs", 0, 2, 2),
    34: Api("alter_replica_log_dirs", 1, 2, 2),
    35: Api("describe_log_dirs", 1, 5, 2),
    36: Api("sasl_authenticate", 0, 2, 2),
    37: Api("create_partitions", 0, 3, 2),
    38: Api("create_delegation_token", 1, 3, 2),
    39: Api("renew_delegation_token", 1, 2, 2),
    40: Api("expire_delegation_token", 1, 2, 2),
    41: Api("describe_delegation_token", 1, 3, 2),
    42: Api("delete_groups", 0, 2, 2),
    43: Api("elect_leaders", 0, 2, 2),
    44: Api("incremental_alter_configs", 0, 1, 1),
    45: Api("alter_partition_reassignments", 0, 1, 0),
    46: Api("list_partition_reassignments", 0, 0, 0),
    47: Api("offset_delete", 0, 0, 99),
    48: Api("describe_client_quotas", 0, 1, 1),
    49: Api("alter_client_quotas", 0, 1, 1),
    50: Api("describe_user_scram_credentials", 0, 0, 0),
    51: Api("alter_user_scram_credentials", 0, 0, 0),
    55: Api("describe_quorum", 0, 2, 0),
    57: Api("update_features", 0, 2, 0),
    60: Api("describe_cluster", 0, 2, 0),
    61: Api("describe_producers", 0, 0, 0),
    64: Api("unregister_broker", 0, 0, 0),
    65: Api("describe_transactions", 0, 0, 0),
    66: Api("list_transactions", 0, 2, 0),
    68: Api("consumer_group_heartbeat", 0, 1, 0),
    69: Api("consumer_group_describe", 0, 1, 0),
    71: Api("get_telemetry_subscriptions", 0, 0, 0),
    72: Api("push_telemetry", 0, 0, 0),
    74: Api("list_config_resources", 0, 1, 0),
    75: Api("describe_topic_partitions", 0, 0, 0),
    76: Api("share_group_heartbeat", 1, 1, 0),
    77: Api("share_group_describe", 1, 1, 0),
    78: Api("share_fetch", 1, 2, 0),
    79: Api("share_acknowledge", 1, 2, 0),
    88: Api("streams_group_heartbeat", 0, 0, 0),
    89: Api("streams_group_describe", 0, 0, 0),
    90: Api("describe_share_group_offsets", 0, 1, 0),
    91: Api("alter_share_group_offsets", 0, 0, 0),
    92: Api("delete_share_group_offsets", 0, 0, 0),
}
"""API key -> the APIs that Apache Kafka 4.3 lists and of which kio has the schemas.

A response has a flexible header if its request has one, except for ApiVersions, whose response header is never flexible."""


@cache
def api_name(api_key: int) -> str:
    """Kafka's name of an API, e.g. "ListOffsets"."""
    return "".join(word.capitalize() for word in APIS[api_key].name.split("_"))
