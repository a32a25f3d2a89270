"""AlterConfigs 0-2, IncrementalAlterConfigs 0-1 (KIP-133, KIP-226, KIP-339): brokers, topics, client metrics, groups.

The broker resource with the name "" is the default for all brokers. Of one request, the valid resources of a type are changed
together, by one version of the configuration. A client metrics resource, or a group, exists here while it has a config. The
level of a broker's logger is a setting of the broker (broker_loggers.py).

Error codes and messages are Kafka's wherever Kafka's answer depends on the request alone. A bad value has Kafka's code,
INVALID_REQUEST for a broker and INVALID_CONFIG for a topic, with a message of Turnstile's own, which names the setting, the value
and the rule. An unknown broker setting is INVALID_CONFIG; Kafka stores it, for plugins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from broker.kafka.api_error import code_named
from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.configs import guards
from broker.kafka.configs.broker_loggers import check_node, logger_changes
from broker.kafka.configs.config_edits import APPEND, DELETE, SET, SUBTRACT, ConfigChange, Edit
from broker.kafka.configs.config_resources import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    Resource,
    broker_id,
)
from broker.kafka.remote import (
    ChangeFailed,
    CoordinatorCalls,
    RequestRefused,
    ask_coordinator,
    changed_by,
    spawned,
)
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.config.resource_changes import CLIENT_METRICS_KIND, GROUP_KIND, ROWS, check_resource
from shards.loop.deferred import Spawn
from shards.settings.config_def import broker_setting, canonical_name, topic_setting
from shards.settings.config_key import ConfigKey
from shards.settings.config_types import ConfigType
from shards.settings.errors import ConfigInvalid

if TYPE_CHECKING:
    from broker.wire.requests import AlterConfigsRequest, IncrementalAlterConfigsRequest
    from broker.wire.responses import AlterConfigsTypes, IncrementalAlterConfigsTypes

T = TypeVar("T")
KINDS = {CLIENT_METRICS: CLIENT_METRICS_KIND, GROUP: GROUP_KIND}
"""Resource type -> kind of record, for the types whose resources are records of the configuration."""


def routes(cluster: ClusterMetadata, image: ClusterImage, mesh: CoordinatorCalls, spawn: Spawn) -> list[GuardedRoute]:
    handler = _Configs(cluster, image, mesh)
    return [
        GuardedRoute(33, spawned(spawn, handler.replace), guards.alter_configs),
        GuardedRoute(44, spawned(spawn, handler.alter), guards.alter_configs),
    ]


class _Configs:
    def __init__(self, cluster: ClusterMetadata, image: ClusterImage, mesh: CoordinatorCalls) -> None:
        self._cluster = cluster
        self._image = image
        self._mesh = mesh

    async def alter(self, request: IncrementalAlterConfigsRequest, call: Call[IncrementalAlterConfigsTypes]) -> Message:
        asked = [
            ((r.resource_type, r.resource_name), [Edit(c.name, c.config_operation, c.value) for c in r.configs])
            for r in request.resources
        ]
        faults = await self._change(asked, call, request.validate_only)
        return call.types.IncrementalAlterConfigsResponse(
            responses=_responses(call.types.AlterConfigsResourceResponse, asked, faults)
        )

    async def replace(self, request: AlterConfigsRequest, call: Call[AlterConfigsTypes]) -> Message:
        """AlterConfigs: a setting that the request does not name goes back to its default."""
        asked = []
        for r in request.resources:
            edits = [Edit(config.name, SET, config.value) for config in r.configs]
            named = {canonical_name(edit.name) for edit in edits}
            others = [name for name in self._own(r.resource_type, r.resource_name) if name not in named]
            asked.append(((r.resource_type, r.resource_name), edits + [Edit(name, DELETE, None) for name in others]))
        faults = await self._change(asked, call, request.validate_only, unknown=BROKER_LOGGER)
        return call.types.AlterConfigsResponse(
            responses=_responses(call.types.AlterConfigsResourceResponse, asked, faults)
        )

    def _own(self, kind: int, name: str) -> list[str]:
        """The names of the configs that are set on the resource itself; inherited ones are left out."""
        if kind == TOPIC:
            topic = self._image.topics.get(name)
            return [*topic.configs] if topic is not None else []
        if kind in KINDS:
            return [*self._records(kind).get(name, ())]
        prefix = f"{name}/"
        return [key[len(prefix) :] for key in self._image.dynamic if kind == BROKER and key.startswith(prefix)]

    async def _change(
        self, asked: Sequence[tuple[Resource, list[Edit]]], call: Call, validate_only: bool, unknown: int | None = None
    ) -> dict[Resource, RequestRefused]:
        """Makes the valid changes; returns the refusals. `unknown`: a resource type that this API does not have."""
        faults: dict[Resource, RequestRefused] = {}
        wanted: dict[Resource, list[ConfigChange]] = {}
        times = Counter(resource for resource, _ in asked)
        for resource, edits in asked:
            try:
                if times[resource] > 1:
                    raise RequestRefused(codes.INVALID_REQUEST, "Each resource must appear at most once.")
                if resource[0] == unknown:
                    raise RequestRefused(codes.INVALID_REQUEST, f"Unknown resource type {unknown}")
                wanted[resource] = self._changes(resource, edits)
            except RequestRefused as refused:
                faults[resource] = refused
        methods: list[tuple[int, tuple[str, ...]]] = [
            (BROKER, ("alter_settings",)),
            (BROKER_LOGGER, ("alter_settings",)),
            (TOPIC, ("alter_topic_configs",)),
            *((kind, ("alter_resource_configs", record)) for kind, record in KINDS.items()),
        ]
        for kind, method in methods:
            of_kind = {resource: changes for resource, changes in wanted.items() if resource[0] == kind}
            faults |= await self._ask(method, of_kind, call, validate_only)
        return faults

    async def _ask(
        self, method: tuple[str, ...], wanted: dict[Resource, list[ConfigChange]], call: Call, validate_only: bool
    ) -> dict[Resource, RequestRefused]:
        """Asks the coordinator to change the resources of one type, as one version. Several are first checked one by one, so that
        one that the coordinator refuses does not stop the others."""
        faults: dict[Resource, RequestRefused] = {}
        name, args = method[0], (changed_by(call), *method[1:])
        if len(wanted) > 1 or validate_only:
            for resource, changes in wanted.items():
                try:
                    await ask_coordinator(self._mesh, name, *args, changes, True)
                except ChangeFailed as failed:
                    faults[resource] = _refused(resource, changes, failed)
        together = [change for resource, changes in wanted.items() if resource not in faults for change in changes]
        if not together or validate_only:
            return faults
        try:
            await ask_coordinator(self._mesh, name, *args, together, False)
        except ChangeFailed as failed:
            faults |= {r: _refused(r, changes, failed) for r, changes in wanted.items() if r not in faults}
        return faults

    def _changes(self, resource: Resource, edits: Sequence[Edit]) -> list[ConfigChange]:
        """The edits of a resource as changes for the coordinator. Raises RequestRefused."""
        kind, name = resource
        self._check_resource(kind, name)
        if len({edit.name for edit in edits}) < len(edits):
            raise RequestRefused(codes.INVALID_REQUEST, "Error due to duplicate config keys")
        nulls = [edit.name for edit in edits if edit.value is None and edit.operation != DELETE]
        if nulls:
            raise RequestRefused(codes.INVALID_REQUEST, f"Null value not supported for : {','.join(nulls)}")
        if kind == BROKER_LOGGER:
            return logger_changes(name, edits)
        changes = []
        for edit in edits:
            if edit.operation not in (SET, DELETE, APPEND, SUBTRACT):
                raise RequestRefused(codes.INVALID_REQUEST, f"Unknown operations type {edit.operation}")
            if edit.operation == DELETE:
                if _is_known(kind, edit.name):  # Kafka deletes a config that was never set, too
                    changes.append(ConfigChange(name, edit.name, None))
            elif edit.operation == SET:
                changes.append(ConfigChange(name, edit.name, edit.value))
            else:
                changes.append(ConfigChange(name, edit.name, self._edited_list(kind, name, edit)))
        if kind in KINDS:
            self._check_whole(kind, name, changes)
        return changes

    def _check_whole(self, kind: int, name: str, changes: Sequence[ConfigChange]) -> None:
        """Checks all configs that the resource would have after the changes. Raises RequestRefused."""
        after = {**self._records(kind).get(name, {}), **{change.name: change.value for change in changes}}
        try:
            configs = {key: value for key, value in after.items() if value is not None}
            check_resource(KINDS[kind], name, configs, self._image.get)
        except ConfigInvalid as fault:
            raise RequestRefused(code_named(fault.error), str(fault)) from None

    def _records(self, kind: int) -> Mapping[str, Mapping[str, str]]:
        return self._image.client_metrics if kind == CLIENT_METRICS else self._image.group_configs

    def _check_resource(self, kind: int, name: str) -> None:
        if kind == TOPIC:
            if not name:
                raise RequestRefused(codes.INVALID_REQUEST, "Default topic resources are not allowed.")
            if name not in self._image.topics:
                raise RequestRefused(codes.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        elif kind == BROKER:
            # Every broker takes changes for every other one: all have the same coordinator.
            if name and not 0 <= broker_id(name) < self._cluster.brokers:
                last = self._cluster.brokers - 1
                raise RequestRefused(
                    codes.INVALID_REQUEST, f"Unexpected broker id, expected 0 to {last}, but received {name}"
                )
        elif kind == BROKER_LOGGER:
            check_node(name, self._cluster.me)
        elif kind not in KINDS:
            raise RequestRefused(codes.INVALID_REQUEST, f"Unknown resource type {kind}")

    def _edited_list(self, kind: int, name: str, edit: Edit) -> str:
        """The list in force for the resource, its own or an inherited one, with the edit's entries added or taken away."""
        setting = _setting(kind, edit.name)
        if setting.kind.kafka is not ConfigType.LIST or kind in KINDS:
            what = "APPEND" if edit.operation == APPEND else "SUBTRACT"
            if kind == BROKER:
                message = f"Config value {what.lower()} is not allowed for config key: {edit.name}"
            else:
                message = f"Can't {what} to key {edit.name} because its type is not LIST."
            raise RequestRefused(codes.INVALID_CONFIG, message)
        entries = [word for word in self._current(kind, name, edit.name, setting).split(",") if word]
        given = [word.strip() for word in (edit.value or "").split(",") if word.strip()]
        if edit.operation == SUBTRACT:
            return ",".join(word for word in entries if word not in given)
        return ",".join([*entries, *(word for word in given if word not in entries)])

    def _current(self, kind: int, name: str, key: str, setting: ConfigKey) -> str:
        image = self._image
        if kind == TOPIC:
            return setting.kind.spell(image.topic_get(name, key))
        layers = [(image.dynamic, f"{name}/"), (image.dynamic, "/"), (image.static, f"{name}/"), (image.static, "/")]
        found = next((records[prefix + key] for records, prefix in layers if prefix + key in records), None)
        return found if found is not None else setting.kind.spell(setting.default)


def _setting(kind: int, name: str) -> ConfigKey:
    if kind in KINDS:
        if name not in ROWS[KINDS[kind]]:
            raise RequestRefused(codes.INVALID_CONFIG, f"{name} is not a config of such a resource.")
        return ROWS[KINDS[kind]][name]
    try:
        return topic_setting(name) if kind == TOPIC else broker_setting(canonical_name(name))
    except ConfigInvalid as fault:
        raise RequestRefused(codes.INVALID_CONFIG, str(fault)) from None


def _refused(resource: Resource, changes: Sequence[ConfigChange], failed: ChangeFailed) -> RequestRefused:
    """The coordinator's message with the error code that Kafka has for this fault."""
    code = failed.code
    if (
        code == codes.INVALID_CONFIG
        and resource[0] == BROKER
        and all(_is_known(BROKER, change.name) for change in changes)
    ):
        code = codes.INVALID_REQUEST
    if code == codes.INVALID_CONFIG and resource[0] in KINDS:
        code = codes.POLICY_VIOLATION  # the rest was checked before
    return RequestRefused(code, failed.message)


def _is_known(kind: int, name: str) -> bool:
    try:
        _setting(kind, name)
    except RequestRefused:
        return False
    return True


def _responses(
    made: Callable[..., T], asked: Sequence[tuple[Resource, list[Edit]]], faults: dict[Resource, RequestRefused]
) -> tuple[T, ...]:
    """`made`: the class of one response."""
    responses = []
    for (kind, name), _ in asked:
        fault = faults.get((kind, name))
        responses.append(
            made(
                error_code=fault.code if fault else codes.NONE,
                error_message=fault.message if fault else None,
                resource_type=kind,
                resource_name=name,
            )
        )
    return tuple(responses)
