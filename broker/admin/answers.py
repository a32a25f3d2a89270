"""The admin API's answers about configuration: the JSON of each as a type, of which broker/admin/json_schema.py makes schemas.

live_answers.py has the answers about what happens, cluster_answers.py those about connections and processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from shards.config.advertised_changes import AdvertisedAddress
from shards.config.store import RecordedChange

SettingValue: TypeAlias = bool | int | float | str | list[str] | None
Settings: TypeAlias = Annotated[dict[str, SettingValue], "By name; null: it has no value."]
EntityNames: TypeAlias = Annotated[
    dict[str, str | None],
    "What a quota is of, by its type: user, client-id, client-id-prefix or ip. null: the default of that type.",
]
ClientLevel: TypeAlias = Annotated[
    dict[str, str | None],
    "user and client-id, and client-id-prefix where the quota is of one. `<default>` is the default; null: not told apart.",
]
QuotaRates: TypeAlias = Annotated[
    dict[str, float], "By the quota's key: bytes a second, percent of a thread, mutations or connections a second."
]
FaultKind: TypeAlias = Literal["error", "disconnect", "delay", "blackhole", "throttle"]
Version: TypeAlias = Annotated[int, "The version of the configuration that is in force on every shard."]


class Problem(TypedDict):
    """The reason why a request was refused, or can't be answered now."""

    message: Annotated[str, "One sentence."]
    code: Annotated[int, "HTTP's status."]


InvalidValues: TypeAlias = Annotated[dict[str, str], "A sentence for each name that was refused; nothing has changed."]


# ---- settings


class ChangedConfig(TypedDict):
    """A change that is in force on every shard."""

    config_version: Version
    notes: NotRequired[Annotated[list[str], "Sentences on what people should know of what was set."]]


def changed(version: int, notes: Sequence[str] = ()) -> ChangedConfig:
    """The answer to a change."""
    return {"config_version": version, "notes": list(notes)} if notes else {"config_version": version}


class SettingItems(TypedDict):
    """Of a setting that is a list."""

    type: str


class SettingProperty(TypedDict):
    """A setting, as Redpanda's schema has it."""

    type: Annotated[str, "integer, number, boolean, string or array."]
    description: str
    emulated: Annotated[bool, "False: it is stored and shown, and nothing acts on it."]
    nullable: bool
    needs_restart: Annotated[bool, "It can't change while the cluster runs."]
    visibility: Literal["user", "tunable"]
    is_secret: bool
    vocabulary: Annotated[str, "Whose name it is: kafka, redpanda or turnstile."]
    default: SettingValue
    items: NotRequired[SettingItems]
    enum_values: NotRequired[list[str]]
    minimum: NotRequired[float]
    maximum: NotRequired[float]


class SettingsSchema(TypedDict):
    """Every setting, by name."""

    properties: dict[str, SettingProperty]


class BrokerConfigStatus(TypedDict):
    """A broker, as rpk asks for it."""

    node_id: int
    restart: bool
    config_version: Annotated[int, "The version that every shard of the broker has acknowledged."]
    invalid: list[str]
    unknown: list[str]


class BrokerOverrides(TypedDict):
    """The settings that single brokers have of their own."""

    overrides: Annotated[dict[str, Settings], "By broker id."]


class SettingHistory(TypedDict):
    """The last changes, the latest first."""

    history: list[RecordedChange]


class NotesAnswer(TypedDict):
    """Of the limits in force: those that let no connection in, and how much of each rate passes at once."""

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
    """A user of listeners that ask for SASL."""

    name: str
    mechanisms: Annotated[list[str], "In which it can log in besides PLAIN."]


class UsersAnswer(TypedDict):
    """Every user."""

    users: list[UserRow]


class FaultParts(TypedDict):
    """The fields of a fault: those of its kind (`error`, `delay_ms`, `throttle_ms`, `reset`, `mute`), which clients it is for, and
    when it fires: by one trigger at most."""

    client_id: NotRequired[Annotated[str, "May have * and ?."]]
    ip: NotRequired[str]
    connection: NotRequired[Annotated[str, "The client's IP:PORT."]]
    error: NotRequired[Annotated[str, "Of an error: the name of one of Kafka's."]]
    delay_ms: NotRequired[Annotated[int, "Of a delay."]]
    throttle_ms: NotRequired[Annotated[int, "Of a throttle."]]
    reset: NotRequired[Annotated[bool, "Of a disconnect: with RST."]]
    mute: NotRequired[Annotated[bool, "Of a throttle: the connection is muted, too."]]
    once: NotRequired[bool]
    on_call: NotRequired[Annotated[int, "At this call alone, from 1."]]
    times: NotRequired[Annotated[int, "At so many calls, the first ones."]]
    every_ms: NotRequired[Annotated[int, "When it last fired so many milliseconds ago, or has not yet."]]
    probability: NotRequired[Annotated[float, "From 0 to 1."]]
    seed: NotRequired[Annotated[int, "Of the probability."]]


class FaultRow(FaultParts):
    """A fault that is set."""

    name: str
    kind: FaultKind
    api: NotRequired[Annotated[list[str], "Names of Kafka's APIs; none: all."]]
    fired: Annotated[int, "How often; a shard that was killed has forgotten its part."]


class FaultsAnswer(TypedDict):
    """Every fault that is set."""

    faults: list[FaultRow]


class ChangedFaults(TypedDict):
    """Faults after a change, which is in force on every shard."""

    config_version: Version
    names: Annotated[list[str], "Of those that were added, in their order."]


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
    refused: Annotated[dict[str, int], "How often a push was refused, by the error's name."]
    pushed_at_ms: Annotated[int | None, "Unix milliseconds of the last push that was taken."]
    bytes: Annotated[int, "Of the last push, as it was sent."]
    broker: int
    shard: int


class TelemetryAnswer(TypedDict):
    """The client instances heard of last; one that is connected to several shards is told of by each."""

    client_instances: list[ClientInstance]


class MetricPoint(TypedDict):
    """A point of a metric, without what is empty."""

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
    error: Annotated[str | None, "Why it can't be read."]
