"""DescribeConfigs 1-4 (KIP-133, KIP-226), ListConfigResources 0-1 (KIP-714, KIP-1142): brokers, topics, client metrics, groups.

Resource "" of type broker is the default for all brokers. Any name of a client metrics resource or of a group can be
described: what is not set has its default. Codes and messages are Kafka 4.1's
(ConfigHelper).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.configs import guards
from broker.kafka.configs.broker_loggers import logger_entries
from broker.kafka.configs.config_entries import (
    Entry,
    broker_entries,
    client_metrics_entries,
    default_entries,
    group_entries,
    topic_entries,
)
from broker.kafka.configs.config_resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, broker_id
from broker.kafka.remote import RequestRefused
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.config.topic_changes import illegal_name
from shards.loop.deferred import MaybeDeferred, then
from shards.loop.turns import Turns
from shards.settings.config_types import ConfigType

if TYPE_CHECKING:
    from broker.wire.requests import DescribeConfigsRequest, DescribeConfigsResource, ListConfigResourcesRequest
    from broker.wire.responses import DescribeConfigsTypes, ListConfigResourcesTypes


def routes(cluster: ClusterMetadata, image: ClusterImage, turns: Turns) -> list[GuardedRoute]:
    handler = _Configs(cluster, image, turns)
    return [
        GuardedRoute(32, handler.describe, guards.describe_configs),
        GuardedRoute(74, handler.list_resources, guards.list_config_resources),
    ]


class _Configs:
    def __init__(self, cluster: ClusterMetadata, image: ClusterImage, turns: Turns) -> None:
        self._turns = turns
        self._cluster = cluster
        self._image = image

    def describe(self, request: DescribeConfigsRequest, call: Call[DescribeConfigsTypes]) -> MaybeDeferred[Message]:
        """Every resource once, however often it is named: one answer may be ten thousand times as long as its question."""
        distinct = {(each.resource_type, each.resource_name): each for each in request.resources}
        results = self._turns.collect(self._described(each, request, call) for each in distinct.values())
        return then(results, lambda made: call.types.DescribeConfigsResponse(results=tuple(made)))

    def _described(
        self, resource: DescribeConfigsResource, request: DescribeConfigsRequest, call: Call[DescribeConfigsTypes]
    ) -> DescribeConfigsTypes.DescribeConfigsResult:
        types = call.types
        keys = set(resource.configuration_keys or ())
        code, message = codes.NONE, ""
        entries: tuple[DescribeConfigsTypes.DescribeConfigsResourceResult, ...] = ()
        try:
            found = self._entries(resource.resource_type, resource.resource_name)
            entries = tuple(_shown(types, request, entry) for entry in found if not keys or entry.name in keys)
        except RequestRefused as refused:
            code, message = refused.code, refused.message
        return types.DescribeConfigsResult(
            error_code=code, error_message=message, resource_type=resource.resource_type,
            resource_name=resource.resource_name, configs=entries,
        )  # fmt: skip

    def _entries(self, kind: int, name: str) -> Iterable[Entry]:
        if kind == TOPIC:
            topic = self._image.topics.get(name)
            if illegal := illegal_name(name):
                raise RequestRefused(codes.INVALID_TOPIC_EXCEPTION, illegal)
            if topic is None:
                raise RequestRefused(codes.UNKNOWN_TOPIC_OR_PARTITION, "")
            return topic_entries(self._image, topic.configs)
        if kind == BROKER:
            if not name:
                return default_entries(self._image)
            if broker_id(name) != self._cluster.me:
                expected = f"expected {self._cluster.me} or empty string, but received {name}"
                raise RequestRefused(codes.INVALID_REQUEST, f"Unexpected broker id, {expected}")
            return broker_entries(self._image)
        if kind == CLIENT_METRICS:
            if not name:
                raise RequestRefused(codes.INVALID_REQUEST, "Client metrics subscription name must not be empty")
            return client_metrics_entries(self._image, name)
        if kind == GROUP:
            if not name:
                raise RequestRefused(codes.INVALID_REQUEST, "Group name must not be empty")
            return group_entries(self._image, name)
        if kind == BROKER_LOGGER:
            return logger_entries(self._image, name, self._cluster.me)
        raise RequestRefused(codes.INVALID_REQUEST, f"Unknown resource type {kind}")

    def list_resources(self, request: ListConfigResourcesRequest, call: Call[ListConfigResourcesTypes]) -> Message:
        """Everything that has configs; version 0 asks for client metrics only."""
        types, image = call.types, self._image
        brokers = [str(broker) for broker in range(self._cluster.brokers)]
        names = {
            CLIENT_METRICS: [*image.client_metrics],
            GROUP: [*image.group_configs],
            BROKER_LOGGER: brokers,
            BROKER: brokers,
            TOPIC: image.topics.names(),
        }
        kinds = {CLIENT_METRICS} if call.api_version == 0 else set(request.resource_types) or {*names}
        if kinds - names.keys():
            return types.ListConfigResourcesResponse(error_code=codes.UNSUPPORTED_VERSION, config_resources=())
        resources = tuple(
            types.ConfigResource(resource_name=name, resource_type=kind)
            for kind, found in names.items()
            if kind in kinds
            for name in found
        )
        return types.ListConfigResourcesResponse(error_code=codes.NONE, config_resources=resources)


def _shown(
    types: DescribeConfigsTypes, request: DescribeConfigsRequest, entry: Entry
) -> DescribeConfigsTypes.DescribeConfigsResourceResult:
    documented = request.include_documentation
    return types.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.type == ConfigType.PASSWORD,
        synonyms=tuple(
            types.DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (entry.synonyms if request.include_synonyms else ())
        ),
        config_type=entry.type,
        documentation=entry.doc if documented else None,
    )
