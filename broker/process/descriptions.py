"""The calls by which the coordinator learns what one shard knows, for the admin API, the live page and the metrics."""

from __future__ import annotations

from collections.abc import Callable

from broker.accept.shard_listeners import ShardListeners
from broker.process.clients import Clients
from broker.process.fullest_limits import FullestLimits
from broker.process.watched_figures import WatchedFigures
from broker.runtime.shard_context import ShardContext
from broker.serve.client_quotas import ClientQuotas, Serve
from broker.serve.listed_connections import ListedConnections
from shards.mesh.peer import Hello


def serve_descriptions(
    serve: Serve,
    hello: Hello,
    context: ShardContext,
    *,
    shard_listeners: ShardListeners,
    clients: Clients,
    quotas: ClientQuotas,
    fullest: FullestLimits,
    gauges: Callable[[], list[list[object]]],
) -> None:
    """Has these calls answered by `serve`, which takes the name of a call and its handler (Mesh.serve)."""
    tokens, cluster, connections = context.tokens, context.cluster, clients.connections
    watched = WatchedFigures(clients.sources, quotas.meters, shard_listeners.connection_rate)
    listed = ListedConnections(connections, (hello.broker, hello.shard), hello.epoch, context.poller)
    serve("describe_tokens", lambda peer, pools=None: cluster.describe_with(tokens.describe(pools), pools))
    serve("describe_refusals", lambda peer: context.top_talkers.top())
    serve("describe_observed", lambda peer: shard_listeners.observed_world.counts.describe())
    serve("describe_observed_quotas", lambda peer: quotas.rehearsal.counts.describe())
    serve("describe_sources", lambda peer: clients.sources.describe())
    serve("describe_quota", lambda peer, user, client_id: quotas.meters.rates_here(user, client_id))
    serve("describe_gauges", lambda peer: gauges())
    serve("describe_fullest", lambda peer: fullest.describe())
    serve("describe_watched", lambda peer, *query: watched.describe(*query))
    serve("list_connections", lambda peer, *query: listed.select(*query))
    serve("describe_proxies", lambda peer: connections.describe_proxies())
    serve("describe_faults", lambda peer: clients.describe_faults())
