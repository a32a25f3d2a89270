"""Routes of the admin API about the cluster's settings, and the advertised addresses."""

from __future__ import annotations

from starlette.exceptions import HTTPException

from broker.admin import redpanda
from broker.admin.answers import (
    AdvertisedAnswer,
    BrokerConfigStatus,
    BrokerOverrides,
    ChangedAdvertised,
    ChangedConfig,
    NotesAnswer,
    SettingHistory,
    Settings,
    SettingsSchema,
    changed,
)
from broker.admin.bodies import AddressesBody, SettingsBody
from broker.admin.describe import Admin
from broker.admin.observed_view import observed_config, observed_overrides
from broker.admin.parameters import (
    AtAdmin,
    Before,
    BrokerText,
    DryRun,
    HistoryLimit,
    IncludeDefaults,
    ListenerName,
    Observe,
    SettingName,
    Who,
)
from broker.admin.requests import address_change, is_number
from broker.admin.route import RouteTable
from shards.config.advertised_changes import AddressChange, advertised_rows
from shards.config.limit_notes import notes_in_force, notes_of_observed, notes_of_settings
from shards.settings.broker_config import EVERY_BROKER
from shards.settings.config_def import broker_setting, canonical_name

routes = RouteTable("settings")


@routes.get("/v1/cluster_config")
async def get_config(
    admin: Admin, key: SettingName, include_defaults: IncludeDefaults, broker: BrokerText, observe: Observe
) -> Settings:
    """The settings and their values: Redpanda's, Kafka's and Turnstile's own."""
    place = EVERY_BROKER if _broker(admin, broker) == "" else int(broker)
    if observe:
        observed = observed_config(admin.coordinator.state, place)
        return observed if key is None else {key: observed.get(canonical_name(key))}
    values = redpanda.cluster_config(admin.coordinator.state, broker=place, include_defaults=include_defaults)
    if key is None:
        return values
    setting = broker_setting(canonical_name(key))
    return {key: values.get(canonical_name(key), redpanda.as_json(setting, setting.default))}


@routes.put("/v1/cluster_config")
async def put_config(
    admin: Admin, body: SettingsBody, dry_run: DryRun, broker: BrokerText, observe: Observe, who: Who, at: AtAdmin
) -> ChangedConfig:
    """Changes settings. The answer comes when every shard enforces them, or counts by them if they are observed limits."""
    changes = redpanda.changes_of(body, _broker(admin, broker))
    if observe:
        version = await admin.coordinator.alter_observed(who, changes, dry_run)
        return changed(version, notes_of_observed(admin.coordinator.state, changes, tried=dry_run))
    version = await admin.coordinator.alter_settings(who, changes, dry_run)
    return changed(version, notes_of_settings(admin.coordinator.state, changes, tried=dry_run, at=at))


@routes.get("/v1/cluster_config/schema")
async def get_config_schema(admin: Admin) -> SettingsSchema:
    """Every setting: its type, range, default and description."""
    return redpanda.schema()


@routes.get("/v1/cluster_config/status")
async def get_config_status(admin: Admin) -> list[BrokerConfigStatus]:
    """The configuration version of each broker, in the format of rpk."""
    return redpanda.status(admin.coordinator.state, admin.versions())


@routes.get("/v1/cluster_config/broker_overrides")
async def get_broker_overrides(admin: Admin, observe: Observe) -> BrokerOverrides:
    """The settings that are set for single brokers."""
    if observe:
        return {"overrides": observed_overrides(admin.coordinator.state)}
    found = admin.settings.broker_overrides()
    overrides = {
        str(broker): {name: redpanda.as_json(broker_setting(name), value) for name, value in values.items()}
        for broker, values in found.items()
    }
    return {"overrides": overrides}


@routes.get("/v1/config/history")
async def get_config_history(admin: Admin, limit: HistoryLimit, before: Before) -> SettingHistory:
    """The history of the configuration: the changes of settings, quotas, topics and other records, with author and time."""
    return {"history": admin.coordinator.history(limit, before)}


@routes.get("/v1/notes")
async def get_notes(admin: Admin, at: AtAdmin) -> NotesAnswer:
    """Warnings about the limits in force, such as a cap that refuses everything."""
    return {"notes": notes_in_force(admin.coordinator.state, at)}


@routes.get("/v1/advertise")
async def get_advertised(admin: Admin) -> AdvertisedAnswer:
    """The advertised addresses."""
    return {"advertised": list(advertised_rows(admin.coordinator.state))}


@routes.put("/v1/advertise")
async def put_advertised(admin: Admin, body: AddressesBody, who: Who) -> ChangedAdvertised:
    """Sets the advertised addresses of a listener."""
    return await _advertise(admin, who, address_change(body))


@routes.delete("/v1/advertise")
async def delete_advertised(admin: Admin, listener: ListenerName, broker: BrokerText, who: Who) -> ChangedAdvertised:
    """Takes back the addresses that were set live: those of the start of the cluster are advertised again."""
    text = _broker(admin, broker)
    return await _advertise(admin, who, AddressChange(listener, int(text) if text else None, ()))


async def _advertise(admin: Admin, who: str, change: AddressChange) -> ChangedAdvertised:
    version = await admin.coordinator.advertise(who, change)
    return {"config_version": version, "advertised": list(advertised_rows(admin.coordinator.state))}


def _broker(admin: Admin, text: str) -> str:
    """The id of an existing broker, as text; "" for the whole cluster. Raises HTTPException."""
    brokers = admin.coordinator.state.brokers
    if text and not (is_number(text) and int(text) < brokers):
        raise HTTPException(400, f"there is no broker {text} (0 to {brokers - 1}).")
    return text
