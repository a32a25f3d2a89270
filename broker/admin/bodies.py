"""The bodies that the admin API takes, as types: what a caller should send. What it sends is checked where it is used."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypeAlias, TypedDict

from broker.admin.answers import EntityNames, FaultKind, FaultParts, QuotaRates, SettingValue
from broker.admin.route import Body


class SettingsChange(TypedDict):
    """Settings to set, and to take back: all of them or none."""

    upsert: NotRequired[
        Annotated[dict[str, SettingValue], "A value, or its text as `turnstile config set` takes it, by name."]
    ]
    remove: NotRequired[list[str]]


class QuotaChange(TypedDict):
    """The quotas of one entity that change."""

    entity: EntityNames
    set: NotRequired[QuotaRates]
    remove: NotRequired[Annotated[list[str], "Keys of quotas."]]


class QuotasChange(TypedDict):
    """Quotas that change: all of them or none."""

    alter: list[QuotaChange]


class AddressesChange(TypedDict):
    """The advertised addresses of a listener."""

    listener: NotRequired[Annotated[str, "May be left out where there is only one."]]
    broker: NotRequired[Annotated[int, "This broker alone; without it, `addresses` has one for each."]]
    addresses: Annotated[str | list[str], "host:port, or `auto`: the address that a client reached."]


class UserChange(TypedDict):
    """A user that is added, gets another password, or is removed."""

    name: str
    password: NotRequired[Annotated[str | None, "null: the user is removed."]]


class NewFault(FaultParts):
    """A fault to add."""

    name: NotRequired[Annotated[str, "Left out: the fault gets one, such as fault-1."]]
    kind: FaultKind
    api: NotRequired[Annotated[str | list[str], "Names of Kafka's APIs; none: all."]]


class FaultsChange(TypedDict):
    """Faults to add and, by name, to remove: all of them or none."""

    add: NotRequired[list[NewFault]]
    remove: NotRequired[list[str]]


class SubscriptionConfigs(TypedDict):
    """The configs of a client metrics resource (KIP-714) that change."""

    name: str
    configs: Annotated[dict[str, str | None], "null: back to the default."]


SettingsBody: TypeAlias = Annotated[object, Body(SettingsChange)]
QuotasBody: TypeAlias = Annotated[object, Body(QuotasChange)]
AddressesBody: TypeAlias = Annotated[object, Body(AddressesChange)]
UserBody: TypeAlias = Annotated[object, Body(UserChange)]
FaultsBody: TypeAlias = Annotated[object, Body(FaultsChange)]
SubscriptionBody: TypeAlias = Annotated[object, Body(SubscriptionConfigs)]
