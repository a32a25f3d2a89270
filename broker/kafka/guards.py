"""Which guard stands before which API. While no authorizer is set there is none, and the handlers answer by themselves.

N1  Every API has a guard, or is in OPEN: it asks for nothing but a connection. A test compares that with the routes.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.kafka.cluster import guards as of_cluster
from broker.kafka.cluster.guards import MESSAGE, whole
from broker.kafka.groups import guards as of_groups
from broker.kafka.groups.share import guards as of_share_groups
from broker.kafka.security.access import Access, Guard
from broker.kafka.security.acl import Operation
from broker.kafka.topics import guards as of_topics
from broker.kafka.topics import metadata_guards as of_metadata
from broker.kafka.transactions import guards as of_transactions
from broker.serve.call import Route

OPEN = frozenset({17, 18, 36, 38, 39, 40, 41, 71, 72})
"""SaslHandshake, ApiVersions, SaslAuthenticate, telemetry, and delegation tokens, whose handler guards those of others."""
GUARDS: dict[int, Guard] = {
    0: of_topics.produce,
    1: of_topics.fetch,
    2: of_topics.list_offsets,
    3: of_metadata.metadata,
    8: of_groups.offset_commit,
    9: of_groups.offset_fetch,
    10: of_groups.find_coordinator,
    11: of_groups.join,
    12: of_groups.heartbeat,
    13: of_groups.leave,
    14: of_groups.sync,
    15: of_groups.describe,
    16: of_groups.list_groups,
    19: of_topics.create_topics,
    20: of_topics.delete_topics,
    21: of_topics.delete_records,
    22: of_transactions.init_producer_id,
    23: of_topics.offset_for_leader_epoch,
    24: of_transactions.add_partitions_to_txn,
    25: of_transactions.add_offsets_to_txn,
    26: of_transactions.end_txn,
    27: of_cluster.of_cluster(Operation.CLUSTER_ACTION, lambda types, _: types.WriteTxnMarkersResponse(markers=())),
    28: of_transactions.txn_offset_commit,
    29: of_cluster.of_cluster(Operation.DESCRIBE, whole("DescribeAclsResponse", error_message=MESSAGE, resources=())),
    30: of_cluster.create_acls,
    31: of_cluster.delete_acls,
    32: of_cluster.of_configs(Operation.DESCRIBE_CONFIGS, "DescribeConfigsResult", "results", configs=()),
    33: of_cluster.of_configs(Operation.ALTER_CONFIGS, "AlterConfigsResourceResponse", "responses"),
    34: of_cluster.alter_log_dirs,
    35: of_cluster.of_cluster(Operation.DESCRIBE, whole("DescribeLogDirsResponse", results=())),
    37: of_topics.create_partitions,
    42: of_groups.delete_groups,
    43: of_cluster.of_cluster(Operation.ALTER, whole("ElectLeadersResponse", replica_election_results=())),
    44: of_cluster.of_configs(Operation.ALTER_CONFIGS, "AlterConfigsResourceResponse", "responses"),
    45: of_cluster.of_cluster(
        Operation.ALTER, whole("AlterPartitionReassignmentsResponse", error_message=MESSAGE, responses=())
    ),
    46: of_cluster.of_cluster(
        Operation.DESCRIBE, whole("ListPartitionReassignmentsResponse", error_message=MESSAGE, topics=())
    ),
    47: of_groups.offset_delete,
    48: of_cluster.of_cluster(
        Operation.DESCRIBE_CONFIGS, whole("DescribeClientQuotasResponse", error_message=MESSAGE, entries=None)
    ),
    49: of_cluster.alter_client_quotas,
    50: of_cluster.of_cluster(
        Operation.DESCRIBE, whole("DescribeUserScramCredentialsResponse", error_message=MESSAGE, results=())
    ),
    51: of_cluster.alter_scram,
    55: of_cluster.of_cluster(
        Operation.DESCRIBE, whole("DescribeQuorumResponse", error_message=MESSAGE, topics=(), nodes=())
    ),
    57: of_cluster.of_cluster(Operation.ALTER, whole("UpdateFeaturesResponse", error_message=MESSAGE, results=())),
    60: of_metadata.describe_cluster,
    61: of_topics.describe_producers,
    64: of_cluster.of_cluster(Operation.ALTER, whole("UnregisterBrokerResponse", error_message=MESSAGE)),
    65: of_transactions.describe_transactions,
    66: of_transactions.list_transactions,
    68: of_groups.consumer_heartbeat,
    69: of_groups.describe_consumer_groups,
    74: of_cluster.of_cluster(Operation.DESCRIBE_CONFIGS, whole("ListConfigResourcesResponse", config_resources=())),
    75: of_metadata.describe_topic_partitions,
    76: of_groups.share_heartbeat,
    77: of_groups.describe_share_groups,
    78: of_groups.share_fetch,
    79: of_groups.share_acknowledge,
    90: of_share_groups.describe_offsets,
    91: of_share_groups.alter_offsets,
    92: of_share_groups.delete_offsets,
}


def guarded(routes: Iterable[Route], access: Access) -> list[Route]:
    """The routes, each behind its guard. No answer is prepared: what it says depends on the client."""
    made = []
    for route in routes:
        if route.api_key in OPEN:
            made.append(route)
        else:
            guard = GUARDS[route.api_key]
            made.append(route._replace(function=guard(access, route.function), prepared=False))
    return made
