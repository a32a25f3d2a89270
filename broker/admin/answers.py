"""The admin API's answers about configuration: the JSON of each as a type, of which broker/admin/json_schema.py makes schemas.

live_answers.py has the answers about what happens, cluster_answers.py those about connections and processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from shards.config.advertised_changes import AdvertisedAddress
from shards.config.store import RecordedChange

SettingValue: TypeAlias = bool | int | float | str | list[str] | None
Settings: TypeAlias = Annotated[dict[str, SettingValue], "Values by name; null: no value."]
EntityNames: TypeAlias = Annotated[
    dict[str, str | None],
    "The entity of a quota: its name by type (user, client-id, client-id-prefix or ip). null: the default of that type.",
]
ClientLevel: TypeAlias = Annotated[
    dict[str, str | None],
    "The names user and client-id, and client-id-prefix for a quota of a prefix. `<default>` is the default; null: not told apart.",
]
QuotaRates: TypeAlias = Annotated[
    dict[str, float], "By the quota's key: bytes a second, percent of a thread, mutations or connections a second."
]
FaultKind: TypeAlias = Literal["error", "disconnect", "delay", "blackhole", "throttle"]
Version: TypeAlias = Annotated[int, "The version of the configuration that is in force on every shard."]


class Problem(TypedDict):
    """The reason why a request was refused, or can't be answered now."""

    message: Annotated[str, "One sentence."]
    code: Annotated[int, "The HTTP status."]


InvalidValues: TypeAlias = Annotated[dict[str, str], "A sentence for each name that was refused. Nothing was changed."]


# ---- settings


class ChangedConfig(TypedDict):
    """A change that is in force on every shard."""

    config_version: Version
    notes: NotRequired[Annotated[list[str], "Warnings about the new values, one sentence each."]]


def changed(version: int, notes: Sequence[str] = ()) -> ChangedConfig:
    """The answer to a change."""
    return {"config_version": version, "notes": list(notes)} if notes else {"config_version": version}


class SettingItems(TypedDict):
    """The entries of a setting that is a list."""

    type: str


class SettingProperty(TypedDict):
    """A setting, in the format of Redpanda's schema."""

    type: Annotated[str, "integer, number, boolean, string or array."]
    description: str
    emulated: Annotated[bool, "False: the setting is stored and shown, but has no effect."]
    nullable: bool
    needs_restart: Annotated[bool, "True: it can't be changed while the cluster runs."]
    visibility: Literal["user", "tunable"]
    is_secret: bool
    vocabulary: Annotated[str, "The origin of the name: kafka, redpanda or turnstile."]
    default: SettingValue
    items: NotRequired[SettingItems]
    enum_values: NotRequired[list[str]]
    minimum: NotRequired[float]
    maximum: NotRequired[float]


class SettingsSchema(TypedDict):
    """Every setting, by name."""

    properties: dict[str, SettingProperty]


class BrokerConfigStatus(TypedDict):
    """A broker, in the format of rpk."""

    node_id: int
    restart: bool
    config_version: Annotated[int, "The version that every shard of the broker has acknowledged."]
    invalid: list[str]
    unknown: list[str]


class BrokerOverrides(TypedDict):
    """The settings that are set for single brokers."""

    overrides: Annotated[dict[str, Settings], "Settings by broker id."]


class SettingHistory(TypedDict):
    """The last changes, the latest first."""

    history: list[RecordedChange]


class NotesAnswer(TypedDict):
    """Warnings about the limits in force: those that admit no connection, and the bursts that rates let through."""

    notes: list[str]


# ---- advertised addresses


class AdvertisedAnswer(TypedDict):
    """Each listener of each broker."""

    advertised: list[AdvertisedAddress]


class ChangedAdvertised(TypedDict):
    """The addresses after a change, which is in force on every shard."""

    config_version: Version
    advertised: list[AdvertisedAddress]


# ---- quotas, users, faults


class EntityQuotas(TypedDict):
    """An entity and its quotas."""

    entity: EntityNames
    values: QuotaRates


class QuotasAnswer(TypedDict):
    """Every entity that has a quota."""

    quotas: list[EntityQuotas]


class BrokerQuotaRates(TypedDict):
    """The present rates of a client on one broker."""

    broker: int
    rates: QuotaRates


class ClientQuotas(TypedDict):
    """The quotas that hold for a client by Kafka's precedence, and its present rates."""

    matched: Annotated[ClientLevel, "The level of the first quota that holds."]
    quotas: QuotaRates
    rates: Annotated[QuotaRates, "Sums over brokers; a quota holds on each by itself."]
    brokers: list[BrokerQuotaRates]
    levels: Annotated[dict[str, ClientLevel], "The level that each quota comes from, by the quota's key."]


class UserRow(TypedDict):
    """A user that may log in on listeners with SASL."""

    name: str
    mechanisms: Annotated[list[str], "The SASL mechanisms that the user can log in with, besides PLAIN."]


class UsersAnswer(TypedDict):
    """Every user."""

    users: list[UserRow]


class FaultParts(TypedDict):
    """The fields of a fault: those of its kind (`error`, `delay_ms`, `throttle_ms`, `reset`, `mute`), which clients it is for, and
    when it fires: by one trigger at most."""

    client_id: NotRequired[Annotated[str, "* and ? stand for other characters."]]
    ip: NotRequired[str]
    connection: NotRequired[Annotated[str, "The client's IP:PORT."]]
    error: NotRequired[Annotated[str, "The name of a Kafka error, for the kind error."]]
    delay_ms: NotRequired[Annotated[int, "For the kind delay."]]
    throttle_ms: NotRequired[Annotated[int, "For the kind throttle."]]
    reset: NotRequired[Annotated[bool, "For the kind disconnect: close by RST."]]
    mute: NotRequired[Annotated[bool, "For the kind throttle: the connection is muted, too."]]
    once: NotRequired[bool]
    on_call: NotRequired[Annotated[int, "Fires at this call only, counted from 1."]]
    times: NotRequired[Annotated[int, "The number of calls at which it fires, from the first on."]]
    every_ms: NotRequired[Annotated[int, "Fires if it last fired so many milliseconds ago or longer."]]
    probability: NotRequired[Annotated[float, "The share of calls at which it fires, from 0 to 1."]]
    seed: NotRequired[Annotated[int, "The seed that chooses these calls."]]


class FaultRow(FaultParts):
    """A fault that is set."""

    name: str
    kind: FaultKind
    api: NotRequired[Annotated[list[str], "Names of Kafka's APIs; none: all."]]
    fired: Annotated[int, "The number of times it fired; a killed shard loses its part of the count."]


class FaultsAnswer(TypedDict):
    """Every fault that is set."""

    faults: list[FaultRow]


class ChangedFaults(TypedDict):
    """Faults after a change, which is in force on every shard."""

    config_version: Version
    names: Annotated[list[str], "The names of the added faults, in their order."]


# ---- telemetry of clients (KIP-714)


class ClientInstance(TypedDict):
    """A client that asked for subscriptions, or pushed, as one shard knows it."""

    client_instance_id: str
    client_id: NotRequired[str]
    client_software_name: NotRequired[str]
    client_software_version: NotRequired[str]
    client_source_address: NotRequired[str]
    client_source_port: NotRequired[str]
    connected: bool
    metrics: Annotated[list[str] | None, "Prefixes of the metrics that it was asked for; null: it has not asked."]
    push_interval_ms: int | None
    subscription_id: int | None
    pushes: int
    refused: Annotated[dict[str, int], "The number of refused pushes by error."]
    pushed_at_ms: Annotated[int | None, "The time of the last accepted push, in Unix milliseconds."]
    bytes: Annotated[int, "The size of the last push, as it was sent."]
    broker: int
    shard: int


class TelemetryAnswer(TypedDict):
    """The client instances that were active last. One that is connected to several shards has a row for each."""

    client_instances: list[ClientInstance]


class MetricPoint(TypedDict):
    """A point of a metric; empty members are left out."""

    name: NotRequired[str]
    type: Literal["gauge", "sum", "histogram", "exponential_histogram", "summary"]
    unit: NotRequired[str]
    temporality: NotRequired[Literal["delta", "cumulative"]]
    resource: NotRequired[dict[str, str | bool | int | float | None]]
    attributes: NotRequired[dict[str, str | bool | int | float | None]]
    at_ms: NotRequired[Annotated[int, "Unix milliseconds."]]
    value: NotRequired[float]
    count: NotRequired[int]
    sum: NotRequired[float]
    bucket_counts: NotRequired[list[int]]
    explicit_bounds: NotRequired[list[float | None]]
    quantiles: NotRequired[list[tuple[float | None, float | None]]]


class TelemetryPush(TypedDict):
    """The last push of a client instance."""

    client_instance_id: str
    pushed_at_ms: Annotated[int, "Unix milliseconds."]
    metrics: list[MetricPoint]
    error: Annotated[str | None, "The reason why the push can't be read."]
