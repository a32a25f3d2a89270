"""Routes of the admin API about clients: their quotas and users, the faults they meet, the telemetry they push."""

from __future__ import annotations

from starlette.exceptions import HTTPException

from broker.admin.answers import (
    ChangedConfig,
    ChangedFaults,
    ClientQuotas,
    FaultsAnswer,
    QuotasAnswer,
    TelemetryAnswer,
    TelemetryPush,
    UsersAnswer,
    changed,
)
from broker.admin.bodies import FaultsBody, QuotasBody, SubscriptionBody, UserBody
from broker.admin.cluster_answers import Explanation, ObservedQuotasAnswer
from broker.admin.describe import Admin
from broker.admin.explain import (
    explain_address,
    explain_client,
    explain_cluster,
    explain_cluster_rate,
    explain_observed_cluster_rate,
    explain_user,
)
from broker.admin.parameters import ClientId, ClientInstanceId, DryRun, Ip, ObserveQuotas, UserName, Who
from broker.admin.requests import fault_changes, quota_changes, subscription_change
from broker.admin.route import RouteTable
from broker.admin.telemetry import describe_telemetry, last_push
from shards.config.limit_notes import notes_of_quotas
from shards.config.resource_changes import CLIENT_METRICS_KIND
from shards.settings.errors import ConfigInvalid

routes = RouteTable("clients")


@routes.get("/v1/quotas")
async def get_quotas(admin: Admin, observe: ObserveQuotas) -> QuotasAnswer:
    """All quotas."""
    return {"quotas": admin.settings.quotas(observed=observe)}


@routes.put("/v1/quotas")
async def put_quotas(
    admin: Admin, body: QuotasBody, dry_run: DryRun, observe: ObserveQuotas, who: Who
) -> ChangedConfig:
    """Changes quotas. The answer comes when every shard enforces them, or counts by them if they are observed."""
    changes = quota_changes(body)
    version = await admin.coordinator.alter_quotas(who, changes, dry_run, observe)
    return changed(version, notes_of_quotas(admin.coordinator.state, changes))


@routes.get("/v1/quotas/observed")
async def get_observed_quotas(admin: Admin) -> ObservedQuotasAnswer:
    """The observed client quotas, and the requests that they would have throttled."""
    return await admin.observed.quotas()


@routes.get("/v1/quotas/explain")
async def explain_quotas(admin: Admin, user: UserName, client_id: ClientId) -> ClientQuotas:
    """The quotas that hold for a client."""
    return await explain_client(admin.coordinator, admin.images, user or "", client_id or "")


@routes.get("/v1/explain")
async def explain(admin: Admin, ip: Ip, user: UserName, client_id: ClientId) -> Explanation:
    """The limits that hold for an address, the quotas of a client, or both."""
    if ip is None and user is None and client_id is None:
        raise HTTPException(400, "give ip, user or client-id.")
    found: Explanation = {}
    if ip is not None:
        found["brokers"] = await explain_address(admin.coordinator, admin.images, ip, admin.rate_uses)
    if ip is not None or user is not None:
        if (cluster := await explain_cluster(admin.coordinator, admin.images)) is not None:
            found["cluster"] = cluster
        if (rate := await explain_cluster_rate(admin.images, admin.rate_uses)) is not None:
            found["cluster_rate"] = rate
        if (rate := explain_observed_cluster_rate(admin.images, admin.observed_cluster_rate())) is not None:
            found["observed_cluster_rate"] = rate
    if user is not None:
        found["user_connections"] = await explain_user(admin.coordinator, admin.images, user, admin.rate_uses)
    if user is not None or client_id is not None:
        found["client"] = await explain_client(admin.coordinator, admin.images, user or "", client_id or "")
    return found


@routes.get("/v1/users")
async def get_users(admin: Admin) -> UsersAnswer:
    """The users that may log in on listeners with SASL."""
    return {"users": admin.settings.users()}


@routes.put("/v1/users")
async def put_user(admin: Admin, body: UserBody, who: Who) -> ChangedConfig:
    """Adds a user, changes its password, or removes it."""
    if not isinstance(body, dict) or not all(isinstance(body.get(key), str | None) for key in ("name", "password")):
        raise ConfigInvalid("the body", None, 'must be {"name": text, "password": text or null}')
    changes = admin.settings.user_changes(body.get("name") or "", body.get("password"))
    return changed(await admin.coordinator.alter_users(who, changes))


@routes.get("/v1/faults")
async def get_faults(admin: Admin) -> FaultsAnswer:
    """The faults, and how often each has fired."""
    return {"faults": await admin.faults()}


@routes.put("/v1/faults")
async def put_faults(admin: Admin, body: FaultsBody, who: Who) -> ChangedFaults:
    """Adds and removes faults. The answer comes when they are in force on every shard."""
    changes = fault_changes(body, admin.coordinator.state.faults)
    version = await admin.coordinator.alter_faults(who, changes)
    return {"config_version": version, "names": [name for name, fault in changes if fault is not None]}


@routes.get("/v1/telemetry")
async def get_telemetry(admin: Admin) -> TelemetryAnswer:
    """The clients that push telemetry (KIP-714)."""
    return {"client_instances": await describe_telemetry(admin.coordinator)}


@routes.put("/v1/telemetry")
async def put_subscription(admin: Admin, body: SubscriptionBody, who: Who) -> ChangedConfig:
    """Changes a client metrics resource: the metrics that clients push, and the interval."""
    name, configs = subscription_change(body)
    changes = [(name, key, value) for key, value in configs.items()]
    return changed(await admin.coordinator.alter_resource_configs(who, CLIENT_METRICS_KIND, changes))


@routes.get("/v1/telemetry/{client_instance_id}")
async def get_last_push(admin: Admin, client_instance_id: ClientInstanceId) -> TelemetryPush:
    """The last push of a client instance."""
    found = await last_push(admin.coordinator, client_instance_id)
    if found is None:
        raise HTTPException(404, "there is no push of this client instance.")
    return found
