"""Routes of the admin API about the running cluster: its connections, tokens and processes, its metrics, its end."""

from __future__ import annotations

import os
import signal
from functools import cache
from typing import Annotated

from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from broker.admin.answers import ChangedConfig, changed
from broker.admin.cluster_answers import (
    ClusterAnswer,
    DamagedAnswer,
    EndingAnswer,
    HealthAnswer,
    ProxiesAnswer,
    RefusalsAnswer,
    ShardsAnswer,
    TokensAnswer,
)
from broker.admin.describe import Admin
from broker.admin.explain import checked_address
from broker.admin.live_answers import LiveAnswer, SeriesAnswer
from broker.admin.live_page import INDEX, LivePage
from broker.admin.parameters import (
    BrokerNumber,
    By,
    ClientId,
    Ip,
    Minutes,
    MostLimits,
    NamedCaller,
    Observed,
    PageName,
    Since,
    UserName,
)
from broker.admin.route import Content, RouteTable
from broker.admin.sampler import COARSE, EVERY_S, KEPT
from broker.admin.text_format import CONTENT_TYPE
from broker.admin.usage_timelines import Watched
from broker.admin.utilisation_answers import UtilisationAnswer
from broker.admin.watch_answers import WatchAnswer
from broker.metrics.source_counts import SourcesAnswer
from shards.supervisor.progress import is_stopped

routes = RouteTable("cluster")
_PAGE = ("text/html", "text/css", "text/javascript")


@routes.get("/v1/refusals")
async def get_refusals(admin: Admin, by: By, observed: Observed) -> RefusalsAnswer:
    """The number of refused connections, by what `by` names."""
    return await (admin.observed.refusals(by) if observed else admin.refusals(by))


@routes.get("/v1/sources")
async def get_sources(admin: Admin) -> SourcesAnswer:
    """The admitted and refused connections of each address."""
    return await admin.sources()


@routes.get("/v1/proxies")
async def get_proxies(admin: Admin) -> ProxiesAnswer:
    """The open connections by proxy, and by private endpoint of a cloud."""
    return {"proxies": await admin.proxies()}


@routes.get("/v1/utilisation")
async def get_utilisation(admin: Admin, limit: MostLimits) -> UtilisationAnswer:
    """The use of each limit: caps, creation rates and client quotas. The fullest come first."""
    return await admin.utilisation.answer(limit)


@routes.get("/v1/watch")
async def get_watch(
    admin: Admin, ip: Ip, user: UserName, client_id: ClientId, broker: BrokerNumber, minutes: Minutes, since: Since
) -> WatchAnswer:
    """The use of limits, the refusals and the throttles of one address or client over time. The first request starts it."""
    if (ip is None) is (user is None and client_id is None):
        raise HTTPException(400, "give ip, or else user, client-id or both.")
    if broker >= admin.coordinator.state.brokers:
        raise HTTPException(400, f"there is no broker {broker}.")
    address = None if ip is None else checked_address(admin.images.of(broker), ip)
    names = (None, None) if ip is not None else (user or "", client_id or "")
    return await admin.watches.answer(Watched(broker, address, *names), minutes, since)


@routes.get("/v1/tokens")
async def get_tokens(admin: Admin) -> TokensAnswer:
    """The caps that are used most, and the number of their tokens on each shard."""
    return await admin.tokens()


@routes.get("/v1/shards")
async def get_shards(admin: Admin) -> ShardsAnswer:
    """The processes of the brokers."""
    return {"shards": admin.shards()}


@routes.get("/v1/live")
async def get_live(admin: Admin, since: Since) -> LiveAnswer:
    """Everything that the live page and `turnstile top` refresh."""
    return await admin.live(since)


@routes.get("/v1/series")
async def get_series(admin: Admin, minutes: Minutes, since: Since) -> SeriesAnswer:
    """Connections, admissions, refusals and throttled requests of the last minutes."""
    coarse = 60 * minutes > KEPT * EVERY_S
    begins = admin.sampler.samples[-1].at - 60 * minutes
    series = [point for point in admin.sampler.series(since, coarse=coarse) if point["at"] > begins]
    return {"step_s": EVERY_S * (COARSE if coarse else 1), "series": series}


@routes.get("/v1/cluster")
async def get_cluster(admin: Admin) -> ClusterAnswer:
    """The cluster: its processes, listeners, topics and disk."""
    return admin.cluster()


@routes.get("/v1/damaged")
async def get_damaged(admin: Admin) -> DamagedAnswer:
    """Files that could not be read, and were set aside."""
    return {"damaged": await admin.damaged()}


@routes.post("/v1/reset")
async def reset(admin: Admin, who: NamedCaller) -> ChangedConfig:
    """Resets settings, topics, groups, quotas and users to what they were when the cluster started. Closes every connection."""
    return changed(await admin.reset(who))


@routes.post("/v1/shutdown")
async def shutdown(admin: Admin, who: NamedCaller) -> Annotated[Response, Content(EndingAnswer)]:
    """Ends the whole cluster, after the answer is sent."""
    return JSONResponse({"ending": True}, background=BackgroundTask(os.kill, os.getppid(), signal.SIGTERM))


@routes.get("/metrics", media_types=("text/plain",))
async def get_metrics(admin: Admin) -> Annotated[Response, Content(str)]:
    """Metrics for Prometheus, under three kinds of names: those of Redpanda's `/metrics` (without `_total`), Kafka's as in the
    example rules of the JMX exporter, and `turnstile_*`."""
    return Response(await admin.metrics(), media_type=CONTENT_TYPE)


@routes.get("/public_metrics", media_types=("text/plain",))
async def get_public_metrics(admin: Admin) -> Annotated[Response, Content(str)]:
    """Metrics for Prometheus, under the names of Redpanda's `/public_metrics` (`redpanda_rpc_*`, `redpanda_storage_disk_*`)."""
    return Response(admin.public_metrics(), media_type=CONTENT_TYPE)


@routes.get("/healthz", also={503: HealthAnswer}, open=True)
async def get_health(admin: Admin) -> Annotated[Response, Content(HealthAnswer)]:
    """The health of the cluster: ok if every shard is up and the supervisor, which restarts shards, runs. Needs no token."""
    missing: dict[str, str] = {
        f"broker {broker} shard {shard}": state for (broker, shard), state in admin.states().items() if state != "up"
    }
    if is_stopped(os.getppid()):
        missing["the supervisor"] = "stopped"
    if missing:
        return JSONResponse({"status": "degraded", "missing": [*missing], "states": missing}, 503)
    return JSONResponse({"status": "ok"})


@routes.get("/", media_types=("text/html",))
async def get_page(admin: Admin) -> Annotated[Response, Content(str)]:
    """The live page: connections, refusals, and the use of limits and quotas, which it can change."""
    return _live_page().response(INDEX)


@routes.get("/page/{name}", media_types=_PAGE)
async def get_page_file(admin: Admin, name: PageName) -> Annotated[Response, Content(str)]:
    """A file of the live page."""
    return _live_page().response(name)


@cache
def _live_page() -> LivePage:
    return LivePage()
