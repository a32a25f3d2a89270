"""The admin API over HTTP: Redpanda's cluster_config, quotas, refusals, tokens, shards, metrics and a live page.

    GET  /v1/cluster_config[?key=K][&include_defaults=false][&broker=N]   {name: value}
    PUT  /v1/cluster_config[?dry_run=true][&broker=N]    {"upsert": {}, "remove": []} -> {"config_version": N};
                                                         400 {name: sentence}
    GET  /v1/cluster_config/schema, /status              as rpk reads them
    GET  /v1/config/history[?limit=N][&before=VERSION]   {"history": [{"version", "at", "who", "changes"}]}
    GET  /v1/quotas                                      {"quotas": [{"entity": {}, "values": {}}]}
    PUT  /v1/quotas[?dry_run=true]                       {"alter": [{"entity": {}, "set": {}, "remove": []}]}
    GET  /v1/quotas/explain?user=U&client-id=C           {"matched", "quotas", "rates", "levels"}
    GET  /v1/refusals?by=ip|listener|reason|shard, /v1/tokens, /v1/shards, /v1/live[?since=T]
    GET  /v1/users                                       {"users": [{"name", "mechanisms"}]}
    PUT  /v1/users                                       {"name", "password" (null: remove)}
    GET  /v1/cluster                                     {"pid", "coordinator_pid", "data_dir", "cluster_id", "listeners"}
    POST /v1/reset                                       {"config_version": N}: as the cluster was when it started; needs
                                                         the header x-turnstile-who
    POST /v1/shutdown                                    ends the cluster; needs the header x-turnstile-who
    GET  /metrics, /healthz, /

A change is answered when it is in force on every shard. With a token, every request but /healthz must carry it, as
`Authorization: Bearer TOKEN` or as the password of Basic (so that a browser can ask for it).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any

import hypercorn.trio
import trio
from hypercorn.config import Config
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from broker.admin import redpanda
from broker.admin.describe import REFUSED_BY, Admin
from shards.errors import CannotStore
from shards.limits.config_def import broker_setting, canonical_name
from shards.limits.errors import ConfigInvalid

MAX_BODY = 4 << 20
WHO = "x-turnstile-who"


async def serve(admin: Admin, fd: int, token: str | None) -> None:
    """Serve on a bound socket until cancelled; `fd` stays open. Also keeps the samples coming."""
    config = Config()
    config.bind = [f"fd://{os.dup(fd)}"]
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    config.graceful_timeout = 0.5
    config.keep_alive_timeout = 60.0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admin.sampler.run)
        await hypercorn.trio.serve(make_app(admin, token), config, shutdown_trigger=trio.sleep_forever, mode="asgi")


def make_app(admin: Admin, token: str | None = None) -> Any:
    """The ASGI application; `token` None: nobody needs one."""
    api = AdminApi(admin)
    routes = [
        Route("/v1/cluster_config", api.get_config, methods=["GET"]),
        Route("/v1/cluster_config", api.put_config, methods=["PUT"]),
        Route("/v1/cluster_config/schema", api.schema),
        Route("/v1/cluster_config/status", api.status),
        Route("/v1/config/history", api.history),
        Route("/v1/quotas", api.get_quotas, methods=["GET"]),
        Route("/v1/quotas", api.put_quotas, methods=["PUT"]),
        Route("/v1/quotas/explain", api.explain),
        Route("/v1/refusals", api.refusals),
        Route("/v1/tokens", api.tokens),
        Route("/v1/shards", api.shards),
        Route("/v1/live", api.live),
        Route("/metrics", api.metrics),
        Route("/v1/users", api.get_users, methods=["GET"]),
        Route("/v1/users", api.put_user, methods=["PUT"]),
        Route("/v1/cluster", api.cluster),
        Route("/v1/reset", api.reset, methods=["POST"]),
        Route("/v1/shutdown", api.shutdown, methods=["POST"]),
        Route("/healthz", api.healthz),
        Route("/", api.page),
    ]
    handlers: dict[Any, Any] = {
        ConfigInvalid: _invalid,
        CannotStore: _unstored,
        HTTPException: _problem,
        Exception: _bug,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    return app if token is None else _Guarded(app, token)


class AdminApi:
    """One method per endpoint: reads the request, asks the Admin, words the response."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._coordinator = admin.coordinator
        self._page = resources.files("broker.admin").joinpath("live.html").read_text("utf-8")

    async def get_config(self, request: Request) -> Response:
        broker = self._broker(request)
        state = self._coordinator.state
        place = redpanda.EVERY_BROKER if broker == "" else int(broker)
        defaults = _flag(request, "include_defaults", True)
        values = redpanda.cluster_config(state, broker=place, include_defaults=defaults)
        key = request.query_params.get("key")
        if key is None:
            return JSONResponse(values)
        setting = broker_setting(canonical_name(key))
        return JSONResponse({key: values.get(canonical_name(key), redpanda.as_json(setting, setting.default))})

    async def put_config(self, request: Request) -> Response:
        changes = redpanda.changes_of(await _body(request), self._broker(request))
        dry_run = _flag(request, "dry_run", False)
        return await self._changed(self._coordinator.alter_settings(_who(request), changes, dry_run))

    async def schema(self, request: Request) -> Response:
        return JSONResponse(redpanda.schema())

    async def status(self, request: Request) -> Response:
        return JSONResponse(redpanda.status(self._coordinator.state, self._admin.versions()))

    async def history(self, request: Request) -> Response:
        most = _number(request, "limit", 100, 1, 1000)
        before = _number(request, "before", 2**53, 1, 2**53)
        return JSONResponse({"history": self._coordinator.history(most, before)})

    async def get_quotas(self, request: Request) -> Response:
        return JSONResponse({"quotas": self._admin.quotas()})

    async def put_quotas(self, request: Request) -> Response:
        changes = _quota_changes(await _body(request))
        dry_run = _flag(request, "dry_run", False)
        return await self._changed(self._coordinator.alter_quotas(_who(request), changes, dry_run))

    async def get_users(self, request: Request) -> Response:
        return JSONResponse({"users": self._admin.users()})

    async def put_user(self, request: Request) -> Response:
        body = await _body(request)
        if not isinstance(body, dict) or not all(isinstance(body.get(key), str | None) for key in ("name", "password")):
            raise ConfigInvalid("the body", None, 'must be {"name": text, "password": text or null}')
        changes = self._admin.user_changes(body.get("name") or "", body.get("password"))
        return await self._changed(self._coordinator.alter_users(_who(request), changes))

    async def explain(self, request: Request) -> Response:
        user, client_id = (request.query_params.get(name, "") for name in ("user", "client-id"))
        return JSONResponse(await self._admin.explain(user, client_id))

    async def refusals(self, request: Request) -> Response:
        by = request.query_params.get("by", "reason")
        if by not in REFUSED_BY:
            raise HTTPException(400, f"by cannot be {by!r}: it must be one of {', '.join(REFUSED_BY)}.")
        return JSONResponse(await self._admin.refusals(by))

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

    async def cluster(self, request: Request) -> Response:
        return JSONResponse(self._admin.cluster())

    async def reset(self, request: Request) -> Response:
        """Settings, topics, groups, quotas and users as when the cluster started; every connection is closed."""
        _of_ours(request)
        return await self._changed(self._admin.reset(_who(request)))

    async def shutdown(self, request: Request) -> Response:
        """Ends the whole cluster; the answer is out before it begins."""
        _of_ours(request)
        return JSONResponse({"ending": True}, background=BackgroundTask(os.kill, os.getppid(), signal.SIGTERM))

    async def healthz(self, request: Request) -> Response:
        missing = [f"broker {broker} shard {shard}" for broker, shard in self._admin.missing()]
        if missing:
            return JSONResponse({"status": "degraded", "missing": missing}, 503)
        return JSONResponse({"status": "ok"})

    async def page(self, request: Request) -> Response:
        return HTMLResponse(self._page, headers={"cache-control": "no-cache"})

    def _broker(self, request: Request) -> str:
        """The broker id asked for, as text; "" for the whole cluster."""
        text = request.query_params.get("broker", "")
        if text and not (text.isascii() and text.isdigit() and int(text) < self._coordinator.state.brokers):
            last = self._coordinator.state.brokers - 1
            raise HTTPException(400, f"broker cannot be {text!r}: this cluster has brokers 0 to {last}.")
        return text

    async def _changed(self, change: Awaitable[int]) -> Response:
        return JSONResponse({"config_version": await change})


def _quota_changes(body: Any) -> list[list[Any]]:
    shape = 'must be {"alter": [{"entity": {type: name}, "set": {key: value}, "remove": [key]}]}'
    try:
        alter: list[dict[str, Any]] = body["alter"]
        if isinstance(alter, list):
            return [[dict(a["entity"]), {**dict.fromkeys(a.get("remove", ())), **a.get("set", {})}] for a in alter]
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise ConfigInvalid("the body", None, shape)


async def _body(request: Request) -> Any:
    received = b""
    async for chunk in request.stream():
        received += chunk
        if len(received) > MAX_BODY:
            raise HTTPException(413, f"a body may have at most {MAX_BODY} bytes.")
    try:
        body = json.loads(received)
        json.dumps(body, ensure_ascii=False).encode()  # half of a surrogate pair is JSON, but no text
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON.") from None
    return body


def _flag(request: Request, name: str, default: bool) -> bool:
    return request.query_params.get(name, str(default)).lower() in ("true", "1", "yes")


def _number(request: Request, name: str, default: int, low: int, high: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
        raise HTTPException(400, f"{name} cannot be {text!r}: it must be a whole number from {low} to {high}.")
    return int(text)


def _of_ours(request: Request) -> None:
    """Refuses a plain POST, which a page of another site could send from a browser; it can't send a header of its own."""
    if WHO not in request.headers:
        raise HTTPException(403, f"say who you are in the header {WHO}.")


def _who(request: Request) -> str:
    """Who is written into the history: what the caller calls itself, and where it calls from."""
    named = "".join(c for c in request.headers.get(WHO, "HTTP") if c.isprintable())[:64]
    return f"{named} from {request.client.host}" if request.client else named


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, ConfigInvalid)
    return JSONResponse({error.name: str(error)}, 400)


async def _unstored(request: Request, error: Exception) -> Response:
    return JSONResponse({"message": str(error), "code": 507}, 507)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"message": error.detail, "code": error.status_code}, error.status_code, error.headers)


async def _bug(request: Request, error: Exception) -> Response:
    """Nobody's mistake but ours: said in full in the log, in one sentence to the caller."""
    traceback.print_exception(error, file=sys.stderr)
    return JSONResponse({"message": f"internal error: {type(error).__name__}: {error}", "code": 500}, 500)


class _Guarded:
    """Lets only requests with the token through."""

    def __init__(self, app: Callable[..., Awaitable[None]], token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] != "/healthz" and not self._knows(dict(scope["headers"])):
            refusal = JSONResponse(
                {"message": "this admin API needs its token.", "code": 401},
                401,
                {"www-authenticate": 'Basic realm="turnstile; the password is the token"'},
            )
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, headers: dict[bytes, bytes]) -> bool:
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"basic":
            try:
                given = base64.b64decode(given, validate=True).partition(b":")[2]
            except (binascii.Error, ValueError):
                return False
        return hmac.compare_digest(given.strip(), self._token)
