"""The admin API over HTTP: Redpanda's cluster_config, quotas, refusals, tokens, shards, metrics and a live page.

    GET  /v1/cluster_config[?key=K][&include_defaults=false][&broker=N]   {name: value}
    PUT  /v1/cluster_config[?dry_run=true][&broker=N]    {"upsert": {}, "remove": []} -> {"config_version": N}, with "notes"
                                                         where people should know more; 400 {name: sentence}
    GET  /v1/cluster_config/schema, /status              as rpk reads them
    GET  /v1/cluster_config/broker_overrides             {"overrides": {broker id: {name: value}}}
    GET  /v1/config/history[?limit=N][&before=VERSION]   {"history": [{"version", "at", "who", "changes": [[kind, key, old,
                                                         new]]}]}; of a setting the values in force, the command line's too
    GET  /v1/advertise                                   {"advertised": [{"broker", "listener", "address", "port", "source",
                                                         "guess"}]}: where clients are told to connect
    PUT  /v1/advertise                                   {"listener", "addresses": ["host:port" for each broker] or "auto",
                                                         "broker": one alone} -> {"config_version": N, "advertised": []}
    DELETE /v1/advertise[?listener=L][&broker=N]         as the cluster was started; the same answer
    GET  /v1/quotas                                      {"quotas": [{"entity": {}, "values": {}}]}
    PUT  /v1/quotas[?dry_run=true]                       {"alter": [{"entity": {}, "set": {}, "remove": []}]} -> as above
    GET  /v1/notes                                       {"notes": [sentence]}: of the limits in force, those that let no
                                                         connection in, and how much of each rate passes at once
    GET  /v1/quotas/explain?user=U&client-id=C           {"matched", "quotas", "rates", "levels"}
    GET  /v1/explain?ip=A, ?user=U&client-id=C           {"brokers": limits of the address, "client": quotas}
    GET  /v1/refusals?by=ip|listener|reason|shard, /v1/tokens, /v1/shards, /v1/live[?since=T]
    GET  /v1/sources                                     {"shards", "forgotten", "sources": {ip: {outcome: count}}}
    GET  /v1/proxies                                     {"proxies": [{"proxy", "endpoint", "open"}]}
    GET  /v1/users                                       {"users": [{"name", "mechanisms"}]}
    PUT  /v1/users                                       {"name", "password" (null: remove)}
    GET  /v1/faults                                      {"faults": [{"name", "kind", ..., "fired"}]}
    PUT  /v1/faults                                      {"add": [{"kind", ...}], "remove": [name]} ->
                                                         {"config_version": N, "names": [of those added]}
    GET  /v1/telemetry                                   {"client_instances": [{"client_instance_id", "client_id", ...}]}
    PUT  /v1/telemetry                                   {"name", "configs": {name: text or null}} -> {"config_version": N}:
                                                         a client metrics resource
    GET  /v1/telemetry/CLIENT_INSTANCE_ID                {"pushed_at_ms", "metrics": [{"name", "value", ...}], "error"}
    GET  /v1/cluster                                     {"pid", "coordinator_pid", "data_dir", "cluster_id", "listeners",
                                                         "topics", "disk": free space (describe_disk)}
    GET  /v1/damaged                                     {"damaged": [{"path", "size_bytes"}]}: files set aside
    POST /v1/reset                                       {"config_version": N}: as the cluster was when it started; needs
                                                         the header x-turnstile-who
    POST /v1/shutdown                                    ends the cluster; needs the header x-turnstile-who
    GET  /metrics, /public_metrics, /healthz, / and /page/FILE: the live page

A change is answered when it is in force on every shard. broker/admin/guard.py says which callers may make one.
"""

from __future__ import annotations

import os
import socket
import sys
import traceback
from typing import Any

import trio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from broker.admin.api import AdminApi
from broker.admin.describe import Admin
from broker.admin.guard import Guard
from broker.admin.http_server import serve_http
from shards.errors import CannotStore
from shards.settings.errors import ConfigInvalid


async def serve(admin: Admin, fd: int, token: str | None) -> None:
    """Serve on a bound socket until cancelled; `fd` stays open. Also keeps the samples coming."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admin.sampler.run)
        await serve_http(make_app(admin, token), socket.socket(fileno=os.dup(fd)))


def make_app(admin: Admin, token: str | None = None) -> ASGIApp:
    """The ASGI application; with `token` None, requests need none."""
    api = AdminApi(admin)
    routes = [
        Route("/v1/cluster_config", api.get_config, methods=["GET"]),
        Route("/v1/cluster_config", api.put_config, methods=["PUT"]),
        Route("/v1/cluster_config/schema", api.schema),
        Route("/v1/cluster_config/status", api.status),
        Route("/v1/cluster_config/broker_overrides", api.broker_overrides),
        Route("/v1/config/history", api.history),
        Route("/v1/quotas", api.get_quotas, methods=["GET"]),
        Route("/v1/quotas", api.put_quotas, methods=["PUT"]),
        Route("/v1/quotas/explain", api.explain),
        Route("/v1/advertise", api.get_advertised, methods=["GET"]),
        Route("/v1/advertise", api.put_advertised, methods=["PUT"]),
        Route("/v1/advertise", api.delete_advertised, methods=["DELETE"]),
        Route("/v1/explain", api.explain_all),
        Route("/v1/notes", api.notes),
        Route("/v1/refusals", api.refusals),
        Route("/v1/sources", api.sources),
        Route("/v1/proxies", api.proxies),
        Route("/v1/tokens", api.tokens),
        Route("/v1/shards", api.shards),
        Route("/v1/live", api.live),
        Route("/metrics", api.metrics),
        Route("/public_metrics", api.public_metrics),
        Route("/v1/users", api.get_users, methods=["GET"]),
        Route("/v1/users", api.put_user, methods=["PUT"]),
        Route("/v1/faults", api.get_faults, methods=["GET"]),
        Route("/v1/faults", api.put_faults, methods=["PUT"]),
        Route("/v1/telemetry", api.telemetry, methods=["GET"]),
        Route("/v1/telemetry", api.put_subscription, methods=["PUT"]),
        Route("/v1/telemetry/{client_instance_id}", api.last_push),
        Route("/v1/cluster", api.cluster),
        Route("/v1/damaged", api.damaged),
        Route("/v1/reset", api.reset, methods=["POST"]),
        Route("/v1/shutdown", api.shutdown, methods=["POST"]),
        Route("/healthz", api.healthz),
        Route("/", api.page),
        Route("/page/{name}", api.page),
    ]
    handlers: dict[Any, Any] = {
        ConfigInvalid: _invalid,
        CannotStore: _unstored,
        HTTPException: _problem,
        ClientDisconnect: _gone,
        OSError: _short,
        Exception: _bug,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(app, token)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, ConfigInvalid)
    return JSONResponse({error.name: str(error)}, 400)


async def _unstored(request: Request, error: Exception) -> Response:
    return JSONResponse({"message": str(error), "code": 507}, 507)


async def _short(request: Request, error: Exception) -> Response:
    """The system does not let us look: too few descriptors, a folder that was removed."""
    return JSONResponse({"message": f"this can't be told now: {error}", "code": 503}, 503)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"message": error.detail, "code": error.status_code}, error.status_code, error.headers)


async def _gone(request: Request, error: Exception) -> Response:
    """The client left in the middle of its body: the answer is not read by anyone, and is not logged."""
    return Response(status_code=400)


async def _bug(request: Request, error: Exception) -> Response:
    """A mistake in Turnstile: its trace goes to the log, one sentence to the caller."""
    traceback.print_exception(error, file=sys.stderr)
    return JSONResponse({"message": f"internal error: {type(error).__name__}: {error}", "code": 500}, 500)
