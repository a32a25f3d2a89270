"""The endpoints of the admin API: one method each. broker/admin/http.py lists them."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from broker.admin import redpanda
from broker.admin.describe import REFUSED_BY, Admin
from broker.admin.explain import explain_address, explain_client
from broker.admin.observed_view import observed_config, observed_overrides
from broker.admin.pages import INDEX, LivePage
from broker.admin.requests import (
    address_change,
    at_admin,
    caller,
    fault_changes,
    flag,
    is_number,
    number,
    quota_changes,
    read_body,
    require_caller,
    subscription_change,
)
from broker.admin.telemetry import describe_telemetry, last_push
from shards.config.advertised_changes import AddressChange, advertised_rows
from shards.config.notes import notes_in_force, notes_of_observed, notes_of_quotas, notes_of_settings
from shards.config.resource_changes import CLIENT_METRICS_KIND
from shards.settings.broker_config import EVERY_BROKER
from shards.settings.config_def import broker_setting, canonical_name
from shards.settings.errors import ConfigInvalid


class AdminApi:
    """One method per endpoint: reads the request, asks the Admin, words the response."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._coordinator = admin.coordinator
        self._page = LivePage()

    async def get_config(self, request: Request) -> Response:
        broker = self._broker(request)
        state = self._coordinator.state
        place = EVERY_BROKER if broker == "" else int(broker)
        defaults = flag(request, "include_defaults", True)
        key = request.query_params.get("key")
        if flag(request, "observe", False):
            observed = observed_config(state, place)
            return JSONResponse(observed if key is None else {key: observed.get(canonical_name(key))})
        values = redpanda.cluster_config(state, broker=place, include_defaults=defaults)
        if key is None:
            return JSONResponse(values)
        setting = broker_setting(canonical_name(key))
        return JSONResponse({key: values.get(canonical_name(key), redpanda.as_json(setting, setting.default))})

    async def put_config(self, request: Request) -> Response:
        changes = redpanda.changes_of(await read_body(request), self._broker(request))
        dry_run = flag(request, "dry_run", False)
        if flag(request, "observe", False):
            version = await self._coordinator.alter_observed(caller(request), changes, dry_run)
            return _changed(version, () if dry_run else notes_of_observed(self._coordinator.state))
        version = await self._coordinator.alter_settings(caller(request), changes, dry_run)
        notes = notes_of_settings(self._coordinator.state, changes, tried=dry_run, at=at_admin(request))
        return _changed(version, notes)

    async def schema(self, request: Request) -> Response:
        return JSONResponse(redpanda.schema())

    async def status(self, request: Request) -> Response:
        return JSONResponse(redpanda.status(self._coordinator.state, self._admin.versions()))

    async def broker_overrides(self, request: Request) -> Response:
        if flag(request, "observe", False):
            return JSONResponse({"overrides": observed_overrides(self._coordinator.state)})
        found = self._admin.settings.broker_overrides()
        told = {
            str(broker): {name: redpanda.as_json(broker_setting(name), value) for name, value in values.items()}
            for broker, values in found.items()
        }
        return JSONResponse({"overrides": told})

    async def history(self, request: Request) -> Response:
        most = number(request, "limit", 100, 1, 1000)
        before = number(request, "before", 2**53, 1, 2**53)
        return JSONResponse({"history": self._coordinator.history(most, before)})

    async def get_quotas(self, request: Request) -> Response:
        return JSONResponse({"quotas": self._admin.settings.quotas()})

    async def put_quotas(self, request: Request) -> Response:
        changes = quota_changes(await read_body(request))
        dry_run = flag(request, "dry_run", False)
        version = await self._coordinator.alter_quotas(caller(request), changes, dry_run)
        return _changed(version, notes_of_quotas(self._coordinator.state, changes))

    async def notes(self, request: Request) -> Response:
        """Of the limits in force: what lets no connection in, and how much of a rate passes at once."""
        return JSONResponse({"notes": notes_in_force(self._coordinator.state, at_admin(request))})

    async def get_advertised(self, request: Request) -> Response:
        return JSONResponse({"advertised": list(advertised_rows(self._coordinator.state))})

    async def put_advertised(self, request: Request) -> Response:
        return await self._advertise(request, address_change(await read_body(request)))

    async def delete_advertised(self, request: Request) -> Response:
        """`?listener=L&broker=N`: what was set live is forgotten, without them of all."""
        broker = self._broker(request)
        change = AddressChange(request.query_params.get("listener"), int(broker) if broker else None, ())
        return await self._advertise(request, change)

    async def _advertise(self, request: Request, change: AddressChange) -> Response:
        version = await self._coordinator.advertise(caller(request), change)
        rows = list(advertised_rows(self._coordinator.state))
        return JSONResponse({"config_version": version, "advertised": rows})

    async def get_users(self, request: Request) -> Response:
        return JSONResponse({"users": self._admin.settings.users()})

    async def put_user(self, request: Request) -> Response:
        body = await read_body(request)
        if not isinstance(body, dict) or not all(isinstance(body.get(key), str | None) for key in ("name", "password")):
            raise ConfigInvalid("the body", None, 'must be {"name": text, "password": text or null}')
        changes = self._admin.settings.user_changes(body.get("name") or "", body.get("password"))
        return _changed(await self._coordinator.alter_users(caller(request), changes))

    async def get_faults(self, request: Request) -> Response:
        return JSONResponse({"faults": await self._admin.faults()})

    async def put_faults(self, request: Request) -> Response:
        changes = fault_changes(await read_body(request), self._coordinator.state.faults)
        version = await self._coordinator.alter_faults(caller(request), changes)
        return JSONResponse(
            {"config_version": version, "names": [name for name, fault in changes if fault is not None]}
        )

    async def telemetry(self, request: Request) -> Response:
        return JSONResponse({"client_instances": await describe_telemetry(self._coordinator)})

    async def put_subscription(self, request: Request) -> Response:
        """Configs of a client metrics resource; null: not any more."""
        name, configs = subscription_change(await read_body(request))
        changes = [[name, key, value] for key, value in configs.items()]
        change = self._coordinator.alter_resource_configs(caller(request), CLIENT_METRICS_KIND, changes)
        return _changed(await change)

    async def last_push(self, request: Request) -> Response:
        """`/v1/telemetry/ID`: what a client instance pushed last."""
        found = await last_push(self._coordinator, request.path_params["client_instance_id"])
        if found is None:
            raise HTTPException(404, "no push of such a client instance is kept.")
        return JSONResponse(found)

    async def explain(self, request: Request) -> Response:
        """`/v1/quotas/explain`: the quotas of a client."""
        return JSONResponse(await self._of_client(request))

    async def explain_all(self, request: Request) -> Response:
        """`/v1/explain`: limits of an address, quotas of a client, or both."""
        ip = request.query_params.get("ip")
        asked_of_client = {"user", "client-id"} & set(request.query_params)
        if ip is None and not asked_of_client:
            raise HTTPException(400, "name an ip, or a user or client-id.")
        found: dict[str, Any] = {}
        if ip is not None:
            found["brokers"] = await explain_address(self._coordinator, self._admin.images, ip, self._admin.rate_uses)
        if asked_of_client:
            found["client"] = await self._of_client(request)
        return JSONResponse(found)

    async def _of_client(self, request: Request) -> dict[str, Any]:
        user, client_id = (request.query_params.get(name, "") for name in ("user", "client-id"))
        return await explain_client(self._coordinator, self._admin.images, user, client_id)

    async def refusals(self, request: Request) -> Response:
        by, observed = request.query_params.get("by", "reason"), flag(request, "observed", False)
        known = (*REFUSED_BY, "limit") if observed else REFUSED_BY
        if by not in known:
            raise HTTPException(400, f"by cannot be {by!r}: it must be one of {', '.join(known)}.")
        return JSONResponse(await (self._admin.observed.refusals(by) if observed else self._admin.refusals(by)))

    async def sources(self, request: Request) -> Response:
        return JSONResponse(await self._admin.sources())

    async def proxies(self, request: Request) -> Response:
        return JSONResponse({"proxies": await self._admin.proxies()})

    async def tokens(self, request: Request) -> Response:
        return JSONResponse(await self._admin.tokens())

    async def shards(self, request: Request) -> Response:
        return JSONResponse({"shards": self._admin.shards()})

    async def live(self, request: Request) -> Response:
        try:
            since = float(request.query_params.get("since", "0"))
        except ValueError:
            raise HTTPException(400, "since must be Unix seconds.") from None
        return JSONResponse(await self._admin.live(since))

    async def metrics(self, request: Request) -> Response:
        text = await self._admin.metrics()
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def public_metrics(self, request: Request) -> Response:
        return Response(self._admin.public_metrics(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def cluster(self, request: Request) -> Response:
        return JSONResponse(self._admin.cluster())

    async def damaged(self, request: Request) -> Response:
        return JSONResponse({"damaged": await self._admin.damaged()})

    async def reset(self, request: Request) -> Response:
        """Settings, topics, groups, quotas and users as when the cluster started; every connection is closed."""
        require_caller(request)
        return _changed(await self._admin.reset(caller(request)))

    async def shutdown(self, request: Request) -> Response:
        """Ends the whole cluster; the answer is out before it begins."""
        require_caller(request)
        return JSONResponse({"ending": True}, background=BackgroundTask(os.kill, os.getppid(), signal.SIGTERM))

    async def healthz(self, request: Request) -> Response:
        missing = {member: state for member, state in self._admin.states().items() if state != "up"}
        if missing:
            told = [f"broker {broker} shard {shard}" for broker, shard in missing]
            states = dict(zip(told, missing.values(), strict=True))
            return JSONResponse({"status": "degraded", "missing": told, "states": states}, 503)
        return JSONResponse({"status": "ok"})

    async def page(self, request: Request) -> Response:
        return self._page.response(request.path_params.get("name", INDEX))

    def _broker(self, request: Request) -> str:
        """The broker id asked for, as text; "" for the whole cluster."""
        text = request.query_params.get("broker", "")
        if text and not (is_number(text) and int(text) < self._coordinator.state.brokers):
            last = self._coordinator.state.brokers - 1
            raise HTTPException(400, f"there is no broker {text} (0 to {last}).")
        return text


def _changed(version: int, notes: Sequence[str] = ()) -> Response:
    return JSONResponse({"config_version": version, **({"notes": notes} if notes else {})})
