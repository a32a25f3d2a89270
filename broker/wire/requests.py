"""The requests of every API that is served, as handlers see them. Written by scripts/make_requests.py: do not edit.

A request is an instance of a class that broker/wire/wire.py compiles for its version; these classes state the
fields of all versions together, and are never instantiated. A field that a version lacks has its default there.
"""

from datetime import timedelta
from uuid import UUID

from broker.wire.codec import Message


class PartitionProduceData(Message):
    index: int
    records: bytes | None


class TopicProduceData(Message):
    topic_id: UUID | None
    partition_data: tuple[PartitionProduceData, ...]
    name: str


class ProduceRequest(Message):
    transactional_id: str | None
    acks: int
    timeout: timedelta
    topic_data: tuple[TopicProduceData, ...]


class ReplicaState(Message):
    replica_id: int
    replica_epoch: int


class FetchPartition(Message):
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int
    replica_directory_id: UUID | None
    high_watermark: int


class FetchTopic(Message):
    topic_id: UUID | None
    partitions: tuple[FetchPartition, ...]
    topic: str


class ForgottenTopic(Message):
    topic_id: UUID | None
    partitions: tuple[int, ...]
    topic: str


class FetchRequest(Message):
    cluster_id: str | None
    replica_state: ReplicaState
    max_wait: timedelta
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...]
    rack_id: str
    replica_id: int


class ListOffsetsPartition(Message):
    partition_index: int
    current_leader_epoch: int
    timestamp: int


class ListOffsetsTopic(Message):
    name: str
    partitions: tuple[ListOffsetsPartition, ...]


class ListOffsetsRequest(Message):
    replica_id: int
    isolation_level: int
    topics: tuple[ListOffsetsTopic, ...]
    timeout: timedelta


class MetadataRequestTopic(Message):
    topic_id: UUID | None
    name: str | None


class MetadataRequest(Message):
    topics: tuple[MetadataRequestTopic, ...] | None
    allow_auto_topic_creation: bool
    include_topic_authorized_operations: bool
    include_cluster_authorized_operations: bool


class OffsetCommitRequestPartition(Message):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class OffsetCommitRequestTopic(Message):
    name: str
    partitions: tuple[OffsetCommitRequestPartition, ...]


class OffsetCommitRequest(Message):
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    topics: tuple[OffsetCommitRequestTopic, ...]
    retention_time: timedelta


class OffsetFetchRequestTopics(Message):
    name: str
    partition_indexes: tuple[int, ...]


class OffsetFetchRequestGroup(Message):
    group_id: str
    member_id: str | None
    member_epoch: int
    topics: tuple[OffsetFetchRequestTopics, ...] | None


class OffsetFetchRequestTopic(Message):
    name: str
    partition_indexes: tuple[int, ...]


class OffsetFetchRequest(Message):
    groups: tuple[OffsetFetchRequestGroup, ...]
    require_stable: bool
    group_id: str
    topics: tuple[OffsetFetchRequestTopic, ...] | None


class FindCoordinatorRequest(Message):
    key_type: int
    coordinator_keys: tuple[str, ...]
    key: str


class JoinGroupRequestProtocol(Message):
    name: str
    metadata: bytes


class JoinGroupRequest(Message):
    group_id: str
    session_timeout: timedelta
    rebalance_timeout: timedelta
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...]
    reason: str | None


class HeartbeatRequest(Message):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class MemberIdentity(Message):
    member_id: str
    group_instance_id: str | None
    reason: str | None


class LeaveGroupRequest(Message):
    group_id: str
    members: tuple[MemberIdentity, ...]
    member_id: str


class SyncGroupRequestAssignment(Message):
    member_id: str
    assignment: bytes


class SyncGroupRequest(Message):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: tuple[SyncGroupRequestAssignment, ...]


class DescribeGroupsRequest(Message):
    groups: tuple[str, ...]
    include_authorized_operations: bool


class ListGroupsRequest(Message):
    states_filter: tuple[str, ...]
    types_filter: tuple[str, ...]


class SaslHandshakeRequest(Message):
    mechanism: str


class ApiVersionsRequest(Message):
    client_software_name: str
    client_software_version: str


class CreatableReplicaAssignment(Message):
    partition_index: int
    broker_ids: tuple[int, ...]


class CreatableTopicConfig(Message):
    name: str
    value: str | None


class CreatableTopic(Message):
    name: str
    num_partitions: int
    replication_factor: int
    assignments: tuple[CreatableReplicaAssignment, ...]
    configs: tuple[CreatableTopicConfig, ...]


class CreateTopicsRequest(Message):
    topics: tuple[CreatableTopic, ...]
    timeout: timedelta
    validate_only: bool


class DeleteTopicState(Message):
    name: str | None
    topic_id: UUID | None


class DeleteTopicsRequest(Message):
    topics: tuple[DeleteTopicState, ...]
    timeout: timedelta
    topic_names: tuple[str, ...]


class DeleteRecordsPartition(Message):
    partition_index: int
    offset: int


class DeleteRecordsTopic(Message):
    name: str
    partitions: tuple[DeleteRecordsPartition, ...]


class DeleteRecordsRequest(Message):
    topics: tuple[DeleteRecordsTopic, ...]
    timeout: timedelta


class InitProducerIdRequest(Message):
    transactional_id: str | None
    transaction_timeout: timedelta
    producer_id: int
    producer_epoch: int


class OffsetForLeaderPartition(Message):
    partition: int
    current_leader_epoch: int
    leader_epoch: int


class OffsetForLeaderTopic(Message):
    topic: str
    partitions: tuple[OffsetForLeaderPartition, ...]


class OffsetForLeaderEpochRequest(Message):
    replica_id: int
    topics: tuple[OffsetForLeaderTopic, ...]


class AddPartitionsToTxnTopic(Message):
    name: str
    partitions: tuple[int, ...]


class AddPartitionsToTxnTransaction(Message):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    topics: tuple[AddPartitionsToTxnTopic, ...]


class AddPartitionsToTxnRequest(Message):
    transactions: tuple[AddPartitionsToTxnTransaction, ...]
    v3_and_below_transactional_id: str
    v3_and_below_producer_id: int
    v3_and_below_producer_epoch: int
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...]


class AddOffsetsToTxnRequest(Message):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str


class EndTxnRequest(Message):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool


class WritableTxnMarkerTopic(Message):
    name: str
    partition_indexes: tuple[int, ...]


class WritableTxnMarker(Message):
    producer_id: int
    producer_epoch: int
    transaction_result: bool
    topics: tuple[WritableTxnMarkerTopic, ...]
    coordinator_epoch: int


class WriteTxnMarkersRequest(Message):
    markers: tuple[WritableTxnMarker, ...]


class TxnOffsetCommitRequestPartition(Message):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class TxnOffsetCommitRequestTopic(Message):
    name: str
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


class TxnOffsetCommitRequest(Message):
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int
    member_id: str
    group_instance_id: str | None
    topics: tuple[TxnOffsetCommitRequestTopic, ...]


class DescribeAclsRequest(Message):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


class AclCreation(Message):
    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class CreateAclsRequest(Message):
    creations: tuple[AclCreation, ...]


class DeleteAclsFilter(Message):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


class DeleteAclsRequest(Message):
    filters: tuple[DeleteAclsFilter, ...]


class DescribeConfigsResource(Message):
    resource_type: int
    resource_name: str
    configuration_keys: tuple[str, ...] | None


class DescribeConfigsRequest(Message):
    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: bool
    include_documentation: bool


class AlterableConfig(Message):
    name: str
    value: str | None


class AlterConfigsResource(Message):
    resource_type: int
    resource_name: str
    configs: tuple[AlterableConfig, ...]


class AlterConfigsRequest(Message):
    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool


class AlterReplicaLogDirTopic(Message):
    name: str
    partitions: tuple[int, ...]


class AlterReplicaLogDir(Message):
    path: str
    topics: tuple[AlterReplicaLogDirTopic, ...]


class AlterReplicaLogDirsRequest(Message):
    dirs: tuple[AlterReplicaLogDir, ...]


class DescribableLogDirTopic(Message):
    topic: str
    partitions: tuple[int, ...]


class DescribeLogDirsRequest(Message):
    topics: tuple[DescribableLogDirTopic, ...] | None


class SaslAuthenticateRequest(Message):
    auth_bytes: bytes


class CreatePartitionsAssignment(Message):
    broker_ids: tuple[int, ...]


class CreatePartitionsTopic(Message):
    name: str
    count: int
    assignments: tuple[CreatePartitionsAssignment, ...] | None


class CreatePartitionsRequest(Message):
    topics: tuple[CreatePartitionsTopic, ...]
    timeout: timedelta
    validate_only: bool


class CreatableRenewers(Message):
    principal_type: str
    principal_name: str


class CreateDelegationTokenRequest(Message):
    owner_principal_type: str | None
    owner_principal_name: str | None
    renewers: tuple[CreatableRenewers, ...]
    max_lifetime: timedelta


class RenewDelegationTokenRequest(Message):
    hmac: bytes
    renew_period: timedelta


class ExpireDelegationTokenRequest(Message):
    hmac: bytes
    expiry_time_period: timedelta


class DescribeDelegationTokenOwner(Message):
    principal_type: str
    principal_name: str


class DescribeDelegationTokenRequest(Message):
    owners: tuple[DescribeDelegationTokenOwner, ...] | None


class DeleteGroupsRequest(Message):
    groups_names: tuple[str, ...]


class TopicPartitions(Message):
    topic: str
    partitions: tuple[int, ...]


class ElectLeadersRequest(Message):
    election_type: int
    topic_partitions: tuple[TopicPartitions, ...] | None
    timeout: timedelta


class IncrementalAlterableConfig(Message):
    name: str
    config_operation: int
    value: str | None


class IncrementalAlterConfigsResource(Message):
    resource_type: int
    resource_name: str
    configs: tuple[IncrementalAlterableConfig, ...]


class IncrementalAlterConfigsRequest(Message):
    resources: tuple[IncrementalAlterConfigsResource, ...]
    validate_only: bool


class ReassignablePartition(Message):
    partition_index: int
    replicas: tuple[int, ...] | None


class ReassignableTopic(Message):
    name: str
    partitions: tuple[ReassignablePartition, ...]


class AlterPartitionReassignmentsRequest(Message):
    timeout: timedelta
    allow_replication_factor_change: bool
    topics: tuple[ReassignableTopic, ...]


class ListPartitionReassignmentsTopics(Message):
    name: str
    partition_indexes: tuple[int, ...]


class ListPartitionReassignmentsRequest(Message):
    timeout: timedelta
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None


class OffsetDeleteRequestPartition(Message):
    partition_index: int


class OffsetDeleteRequestTopic(Message):
    name: str
    partitions: tuple[OffsetDeleteRequestPartition, ...]


class OffsetDeleteRequest(Message):
    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...]


class ComponentData(Message):
    entity_type: str
    match_type: int
    match: str | None


class DescribeClientQuotasRequest(Message):
    components: tuple[ComponentData, ...]
    strict: bool


class EntityData(Message):
    entity_type: str
    entity_name: str | None


class OpData(Message):
    key: str
    value: float
    remove: bool


class EntryData(Message):
    entity: tuple[EntityData, ...]
    ops: tuple[OpData, ...]


class AlterClientQuotasRequest(Message):
    entries: tuple[EntryData, ...]
    validate_only: bool


class UserName(Message):
    name: str


class DescribeUserScramCredentialsRequest(Message):
    users: tuple[UserName, ...] | None


class ScramCredentialDeletion(Message):
    name: str
    mechanism: int


class ScramCredentialUpsertion(Message):
    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


class AlterUserScramCredentialsRequest(Message):
    deletions: tuple[ScramCredentialDeletion, ...]
    upsertions: tuple[ScramCredentialUpsertion, ...]


class PartitionData(Message):
    partition_index: int


class TopicData(Message):
    topic_name: str
    partitions: tuple[PartitionData, ...]


class DescribeQuorumRequest(Message):
    topics: tuple[TopicData, ...]


class FeatureUpdateKey(Message):
    feature: str
    max_version_level: int
    upgrade_type: int
    allow_downgrade: bool


class UpdateFeaturesRequest(Message):
    timeout: timedelta
    feature_updates: tuple[FeatureUpdateKey, ...]
    validate_only: bool


class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool
    endpoint_type: int
    include_fenced_brokers: bool


class ProducersTopicRequest(Message):
    name: str
    partition_indexes: tuple[int, ...]


class DescribeProducersRequest(Message):
    topics: tuple[ProducersTopicRequest, ...]


class DescribeTransactionsRequest(Message):
    transactional_ids: tuple[str, ...]


class ListTransactionsRequest(Message):
    state_filters: tuple[str, ...]
    producer_id_filters: tuple[int, ...]
    duration_filter: int
    transactional_id_pattern: str | None


class OwnedTopicPartitions(Message):
    topic_id: UUID | None
    partitions: tuple[int, ...]


class ConsumerGroupHeartbeatRequest(Message):
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout: timedelta
    subscribed_topic_names: tuple[str, ...] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    topic_partitions: tuple[OwnedTopicPartitions, ...] | None


class ConsumerGroupDescribeRequest(Message):
    group_ids: tuple[str, ...]
    include_authorized_operations: bool


class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: UUID | None


class PushTelemetryRequest(Message):
    client_instance_id: UUID | None
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes


class ListConfigResourcesRequest(Message):
    resource_types: tuple[int, ...]


class TopicRequest(Message):
    name: str


class Cursor(Message):
    topic_name: str
    partition_index: int


class DescribeTopicPartitionsRequest(Message):
    topics: tuple[TopicRequest, ...]
    response_partition_limit: int
    cursor: Cursor | None


class ShareGroupHeartbeatRequest(Message):
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: tuple[str, ...] | None


class ShareGroupDescribeRequest(Message):
    group_ids: tuple[str, ...]
    include_authorized_operations: bool


class ShareAcknowledgementBatch(Message):
    first_offset: int
    last_offset: int
    acknowledge_types: tuple[int, ...]


class ShareFetchPartition(Message):
    partition_index: int
    acknowledgement_batches: tuple[ShareAcknowledgementBatch, ...]


class ShareFetchTopic(Message):
    topic_id: UUID | None
    partitions: tuple[ShareFetchPartition, ...]


class ShareForgottenTopic(Message):
    topic_id: UUID | None
    partitions: tuple[int, ...]


class ShareFetchRequest(Message):
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait: timedelta
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    topics: tuple[ShareFetchTopic, ...]
    forgotten_topics_data: tuple[ShareForgottenTopic, ...]


class ShareAcknowledgeAcknowledgementBatch(Message):
    first_offset: int
    last_offset: int
    acknowledge_types: tuple[int, ...]


class AcknowledgePartition(Message):
    partition_index: int
    acknowledgement_batches: tuple[ShareAcknowledgeAcknowledgementBatch, ...]


class AcknowledgeTopic(Message):
    topic_id: UUID | None
    partitions: tuple[AcknowledgePartition, ...]


class ShareAcknowledgeRequest(Message):
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    topics: tuple[AcknowledgeTopic, ...]


class DescribeShareGroupOffsetsRequestTopic(Message):
    topic_name: str
    partitions: tuple[int, ...]


class DescribeShareGroupOffsetsRequestGroup(Message):
    group_id: str
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None


class DescribeShareGroupOffsetsRequest(Message):
    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...]


class AlterShareGroupOffsetsRequestPartition(Message):
    partition_index: int
    start_offset: int


class AlterShareGroupOffsetsRequestTopic(Message):
    topic_name: str
    partitions: tuple[AlterShareGroupOffsetsRequestPartition, ...]


class AlterShareGroupOffsetsRequest(Message):
    group_id: str
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...]


class DeleteShareGroupOffsetsRequestTopic(Message):
    topic_name: str


class DeleteShareGroupOffsetsRequest(Message):
    group_id: str
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...]
