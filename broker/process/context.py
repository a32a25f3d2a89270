"""The context of a shard process: image, tokens, loop, journal and counters, joined before any other part is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from broker.journal.writer import JournalWriter
from broker.metrics.shard_counters import Layout, ShardCounters
from broker.metrics.token_events import TokenEvents
from broker.metrics.top_talkers import TopTalkers
from broker.process.shared_memory import Returns
from broker.runtime.logger import RateLimitedLogger
from broker.runtime.shard_context import ShardContext
from shards.config.cluster_plan import ClusterPlan
from shards.config.image import ClusterImage
from shards.limits.caps import CapRule
from shards.loop.poller import Poller
from shards.loop.stalls import Stall, Stalls
from shards.loop.timers import Timers
from shards.ownership import BrokerShard, member_of
from shards.rates.cluster_rate import ClusterRate
from shards.tokens.cluster_pool import ClusterPool
from shards.tokens.tokens import Tokens


class PoolWaiter(Protocol):
    """A connection that may come to wait for a pool: PendingConnection, ObservedAttempt."""

    def began_to_wait(self, pool: str, rule: CapRule) -> None: ...


def make_context(
    plan: ClusterPlan,
    member: BrokerShard,
    epoch: int,
    *,
    send: Callable[[int, tuple[object, ...]], None],
    send_to: Callable[[BrokerShard, tuple[object, ...]], None],
    request: Callable[..., Awaitable[object]],
    start_soon: Callable[..., None],
    stalled: Callable[[Stall], None],
    returns: Returns,
) -> ShardContext:
    """The context of `member`, as (broker, shard), in its incarnation `epoch`. The counters go on where those of an earlier one
    ended.

    `send`, `request` and `start_soon`: ShardContext's; `send_to`: as `send`, to a shard of any broker; `stalled` is called with
    what held up the loop; `returns` are what shards count together.
    """
    broker, shard = member
    counters = _counters_of(plan, member, epoch)
    poller = Poller(stalls=Stalls(stalled))
    image = ClusterImage(broker)
    journal = JournalWriter(plan.journal_dir, broker, shard, epoch)
    events = TokenEvents(shard, journal, counters, lambda: tokens.version)
    tokens = Tokens(
        shard, plan.shards, epoch=epoch, send=send, rule_of=image.rule_of, on_grant=events.granted, on_return=events.reclaimed,
        on_loss=events.lost, on_wait=_began_to_wait, returns=returns.of_broker,
    )  # fmt: skip
    size = plan.brokers, plan.shards
    # A version is applied to the cluster's tokens first, or not at all.
    cluster_events = TokenEvents(
        member_of(member, plan.shards), journal, counters, lambda: max(tokens.version, cluster.tokens.version)
    )
    cluster = ClusterPool(
        member, *size, epoch=epoch, send=send_to, rule_of=image.rule_of, on_grant=cluster_events.granted,
        on_return=cluster_events.reclaimed, on_loss=cluster_events.lost, on_wait=_began_to_wait, returns=returns.of_cluster,
    )  # fmt: skip
    cluster_rate = ClusterRate(
        member, *size, image, send=send_to, now_ms=lambda: poller.now_ns // 1_000_000, journal=journal.moved
    )
    return ShardContext(
        shard=shard,
        shards=plan.shards,
        image=image,
        tokens=tokens,
        cluster=cluster,
        cluster_rate=cluster_rate,
        poller=poller,
        timers=Timers(poller),
        journal=journal,
        counters=counters,
        top_talkers=TopTalkers(),
        log=RateLimitedLogger(broker=broker, shard=shard),
        send=send,
        request=request,
        start_soon=start_soon,
    )


def _counters_of(plan: ClusterPlan, member: BrokerShard, epoch: int) -> ShardCounters:
    layout = Layout(endpoint.listener for endpoint in plan.endpoints)
    counters = ShardCounters(ShardCounters.path(plan.run_dir, *member), layout)
    counters.take_over(epoch)
    return counters


def _began_to_wait(waiter: PoolWaiter, pool: str, rule: CapRule) -> None:
    waiter.began_to_wait(pool, rule)
