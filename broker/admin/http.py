"""The admin API over HTTP: settings, quotas and counters of a running cluster, in Redpanda's words where it has them.

broker/admin/openapi.py has the table of routes, and describes them at `/v1/openapi.json`; docs/api.md lists them. A change is
answered when it is in force on every shard. broker/admin/guard.py says which callers may make one.
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
from starlette.routing import Route, compile_path
from starlette.types import ASGIApp

from broker.admin.connect_rpc import ConnectFault
from broker.admin.describe import Admin
from broker.admin.guard import Guard
from broker.admin.http_server import serve_http
from broker.admin.openapi import ROUTES
from broker.admin.route import AdminRoute
from shards.errors import CannotStore, ControllerThrottled
from shards.settings.errors import ConfigInvalid


async def serve(admin: Admin, fd: int, token: str | None) -> None:
    """Serve on a bound socket until cancelled; `fd` stays open. Also keeps the samples coming."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admin.sampler.run)
        nursery.start_soon(admin.watches.run)
        await serve_http(make_app(admin, token), socket.socket(fileno=os.dup(fd)))


def make_app(admin: Admin, token: str | None = None) -> ASGIApp:
    """The ASGI application; with `token` None, requests need none."""
    routes = [Route(each.path, each.endpoint(admin), methods=[each.method]) for each in ROUTES]
    handlers: dict[object, Any] = {
        ConfigInvalid: _invalid,
        CannotStore: _unstored,
        ControllerThrottled: _throttled,
        ConnectFault: _failed,
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


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, ConnectFault)
    return error.response()


async def _unstored(request: Request, error: Exception) -> Response:
    return JSONResponse({"message": str(error), "code": 507}, 507)


async def _throttled(request: Request, error: Exception) -> Response:
    return JSONResponse({"message": str(error), "code": 429}, 429)


async def _short(request: Request, error: Exception) -> Response:
    """The system does not let us look: too few descriptors, a folder that was removed."""
    return JSONResponse({"message": f"this can't be told now: {error}", "code": 503}, 503)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        error = HTTPException(405, error.detail, {**(error.headers or {}), "allow": _methods_at(request)})
    return JSONResponse({"message": error.detail, "code": error.status_code}, error.status_code, error.headers)


def _methods_at(request: Request) -> str:
    """The methods of the routes at a path: Starlette names those of the first alone."""
    found = {"HEAD" for route in ROUTES if route.method == "GET" and _is_at(route, request)}
    return ", ".join(sorted(found | {route.method for route in ROUTES if _is_at(route, request)}))


def _is_at(route: AdminRoute, request: Request) -> bool:
    return compile_path(route.path)[0].match(request.url.path) is not None


async def _gone(request: Request, error: Exception) -> Response:
    """The client left in the middle of its body: no client reads the answer, and nothing is logged."""
    return Response(status_code=400)


async def _bug(request: Request, error: Exception) -> Response:
    """A mistake in Turnstile: its trace goes to the log, one sentence to the caller."""
    traceback.print_exception(error, file=sys.stderr)
    return JSONResponse({"message": f"internal error: {type(error).__name__}: {error}", "code": 500}, 500)
