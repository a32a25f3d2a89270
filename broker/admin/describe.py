"""The answers of the admin API: gathered from the coordinator, from the counters' files, and by asking shards.

Asked of every shard (a shard that does not serve one of these, or does not answer in time, is left out):

    describe_refusals     [[ip, count, possible error, {reason: count}]], the most refused first (TopTalkers.top)
    describe_observed     ObservedCounts.describe
    describe_observed_quotas   ObservedQuotaCounts.describe
    describe_sources      {"forgotten": n, "outcomes": {outcome: {ip: count}}} (SourceCounts.describe)
    describe_proxies      [[proxy, endpoint or None, open]], of connections that a proxy announced
    describe_fullest      FullestLimits.describe: the limits of addresses and clients that are closest to being reached
    describe_tokens([pools])   {"home": [...], "holds": [...], "truncated"}: pools at home there and elsewhere
                          (shards.tokens.describe); those named, else those with most tokens out. A row of the pool `cluster` also
                          has "member", the shard's number among the shards of all brokers
    describe_quota(user, client_id)   {quota key: rate}, the present rates of a client
    describe_faults       {name: how often it fired}
    describe_watched([ips], [clients])   WatchedFigures.describe: counts, rates and quotas of these
    list_connections(conditions, keys, most)   ListedConnections.select
    describe_gauges       [[metric name, {label: value}, number]], what only the shard can compute for /metrics
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import cast

import trio

from broker.admin.answers import FaultRow
from broker.admin.cluster_answers import (
    ClusterAnswer,
    DamagedFile,
    JournalAnswer,
    ProxyRow,
    RefusalsAnswer,
    RefusedBy,
    RefusedRow,
    ShardRow,
    ShardState,
    TokenPool,
    TokensAnswer,
    VolumeAnswer,
)
from broker.admin.describe_disk import describe_disk
from broker.admin.describe_settings import SettingsView
from broker.admin.images import Images
from broker.admin.live_answers import LiveAnswer
from broker.admin.live_view import LiveView
from broker.admin.observed_view import ObservedView
from broker.admin.redpanda import cluster_config
from broker.admin.sampler import Sampler
from broker.admin.usage_timelines import Watches
from broker.admin.uses import Use, told_broker
from broker.admin.utilisation import UtilisationView
from broker.metrics.shard_counters import Layout, ShardCounters
from broker.metrics.source_counts import SourcesAnswer, summed
from broker.metrics.top_talkers import KEPT, merge_top
from broker.runtime.journal_loss import JournalLoss
from broker.runtime.set_aside import set_aside_in
from shards.config.cluster_plan import ClusterAbout
from shards.config.coordinator import Coordinator
from shards.config.messages import TopicToCreate
from shards.limits.caps import OF_CLUSTER
from shards.ownership import BrokerShard
from shards.settings.broker_config import EVERY_BROKER
from shards.supervisor.restart_board import Restarts


class Admin:
    """Answers the questions of the admin API as JSON-able values."""

    def __init__(
        self,
        coordinator: Coordinator,
        run_dir: Path,
        listeners: list[str],
        about: ClusterAbout | None = None,
        topics: Sequence[tuple[str, int]] = (),
        *,
        data_dir: Path | None = None,
        at_start: Callable[[], Awaitable[None]] | None = None,
        unresponsive: Callable[[], Collection[BrokerShard]] = tuple,
        restarts: Callable[[BrokerShard], Restarts] = lambda member: Restarts(),
        loss: JournalLoss | None = None,
    ) -> None:
        """`about`: facts about the cluster as a whole, for `cluster`. `topics`: (name, partitions) of the start.
        `data_dir`: where files that were set aside are looked for. `at_start()` adds the quotas and users of the start.
        `unresponsive()`: the shards that have not answered a ping in time. `restarts(member)`: of its process. `loss`: of
        the coordinator's own journal."""
        self.coordinator = coordinator
        self.settings = SettingsView(coordinator)
        self.images = Images(coordinator)
        self._unresponsive = unresponsive
        self._restarts = restarts
        self._loss = loss
        self._about: ClusterAbout = about or {}
        self._data_dir = data_dir
        self._at_start = at_start
        self._topics = [TopicToCreate(name, partitions, {}) for name, partitions in topics]
        self.layout = Layout(listeners)
        self.counters: dict[BrokerShard, ShardCounters] = {
            member: ShardCounters(ShardCounters.path(run_dir, *member), self.layout) for member in coordinator.members
        }
        self.sampler = Sampler(self.counters, self.layout)
        self.observed = ObservedView(coordinator, self.sampler, self.settings)
        self.utilisation = UtilisationView(coordinator, self.sampler, self.images)
        self.watches = Watches(coordinator.ask_all, self.images)
        self._live = LiveView(
            coordinator,
            self.sampler,
            self.images,
            self.settings,
            self.observed,
            self.utilisation,
            self.shards,
            self.journal,
        )
        self._started_s = time.monotonic()

    def cluster(self) -> ClusterAnswer:
        """The cluster: its supervisor, this coordinator, its data, its listeners and its topics."""
        own: ClusterAnswer = {
            "pid": os.getppid(),
            "coordinator_pid": os.getpid(),
            "lost": self.coordinator.lost,
            "topics": {name: len(topic["leaders"]) for name, topic in self.coordinator.state.topics.items()},
            "disk": self._disk(),
            "journal": self.journal(),
        }
        return {**own, **self._about}

    def journal(self) -> JournalAnswer:
        """The number of events that the journals lack, and whether events are being lost now."""
        now = self.sampler.now()
        losing = self.sampler.total(now, "losing_events") > 0 or (self._loss is not None and self._loss.is_losing)
        return {
            "events_dropped": self.sampler.total(now, "events_dropped") + self._coordinator_dropped(),
            "is_losing": losing,
        }

    def _coordinator_dropped(self) -> int:
        return 0 if self._loss is None else self._loss.dropped

    def _disk(self) -> VolumeAnswer | None:
        return None if self._data_dir is None else describe_disk(self._data_dir, self.coordinator.state)

    async def damaged(self) -> list[DamagedFile]:
        """The files that were set aside, by path below the data directory: their sizes in bytes. Looked for in a thread,
        as there may be a hundred thousand partitions."""
        directory = self._data_dir
        if directory is None:
            return []
        found = await trio.to_thread.run_sync(set_aside_in, directory)
        return [{"path": each.path.removeprefix(f"{directory}/"), "size_bytes": each.size_bytes} for each in found]

    async def reset(self, who: str) -> int:
        """Coordinator.reset to the topics, quotas and users of the start."""
        await self.coordinator.reset(who, self._topics)
        if self._at_start is not None:
            await self._at_start()
        return self.coordinator.state.version

    # ---- shards

    def shards(self) -> list[ShardRow]:
        """One row per shard. `stalls`: as turnstile_stalls_total."""
        rows: list[ShardRow] = []
        for member, state in self.states().items():
            counters = self.counters[member]
            restarts = self._restarts(member)
            rows.append({
                "broker": member[0],
                "shard": member[1],
                "pid": counters.value("pid"),
                "epoch": counters.value("epoch"),
                "state": state,
                "connections": sum(counters.value("open", one) for one in self.layout.listeners),
                "config_version": counters.value("version"),
                "stalls": counters.value("stalls"),
                "longest_callback_ms": counters.value("longest_callback_us") / 1000,
                "restarts": restarts.number,
                "memory_kills": restarts.memory_kills,
                "restart_in_s": None if restarts.due_in_s is None else round(restarts.due_in_s, 1),
            })  # fmt: skip
        return rows

    def states(self) -> dict[BrokerShard, ShardState]:
        """up; unresponsive (does not answer the coordinator); starting (connected, not yet at a version); down."""
        silent = self._unresponsive()

        def state(member: BrokerShard, version: int | None) -> ShardState:
            if version is None:
                return "down"
            return "unresponsive" if member in silent else "up" if version >= 0 else "starting"

        return {member: state(member, version) for member, version in self.coordinator.describe_shards().items()}

    def versions(self) -> dict[int, int]:
        """The version that every shard of a broker has acknowledged, by broker."""
        least: dict[int, int] = {}
        for (broker, _), version in self.coordinator.describe_shards().items():
            least[broker] = min(least.get(broker, 2**62), max(version or 0, 0))
        return least

    # ---- refusals, connections, tokens

    async def refusals(self, by: RefusedBy) -> RefusalsAnswer:
        """Counts since the cluster started (by ip: of the most refused, since their shard started)."""
        now = self.sampler.now()
        reasons = self.sampler.refused(now)
        rows: list[RefusedRow]
        if by == "ip":
            rows = [
                {"ip": ip, "count": count, "error": error, "reasons": by_reason}
                for ip, count, error, by_reason in merge_top(
                    (await self.coordinator.ask_all("describe_refusals")).values(), KEPT
                )
            ]
        elif by == "listener":
            rows = [
                {"listener": name, "count": sum(found.values()), "reasons": _nonzero(found)}
                for name in self.layout.listeners
                if (found := self.sampler.refused(now, name))
            ]
        elif by == "shard":
            rows = [
                {"broker": member[0], "shard": member[1], "count": sum(found.values()), "reasons": _nonzero(found)}
                for member in now.slots
                if (found := self.sampler.refused(now, None, [member]))
            ]
        else:
            rows = [{"reason": reason, "count": count} for reason, count in reasons.items()]
        admitted = self.sampler.total(now, "admitted")
        return {"by": by, "total": sum(reasons.values()), "admitted": admitted, "refusals": rows}

    async def sources(self) -> SourcesAnswer:
        """The outcomes of each address's connections, since their shard started (source_counts.summed)."""
        return summed((await self.coordinator.ask_all("describe_sources")).values())

    async def proxies(self) -> list[ProxyRow]:
        """The proxies, and private endpoints of a cloud, by which the open connections came; the one with the most first."""
        ways: Counter[tuple[str, str | None]] = Counter()
        for rows in (await self.coordinator.ask_all("describe_proxies")).values():
            ways.update({(proxy, endpoint): count for proxy, endpoint, count in rows})
        return [
            {"proxy": proxy, "endpoint": endpoint, "open": count} for (proxy, endpoint), count in ways.most_common()
        ]

    async def tokens(self) -> TokensAnswer:
        """The pools most in use: what the home of each says, and what every shard holds of it."""
        pools: dict[tuple[int, str], TokenPool] = {}
        answers = await self.coordinator.ask_all("describe_tokens")
        for (broker, shard), answer in answers.items():
            for row in answer["home"]:
                pool, home = _pool(pools, broker, row["pool"]), row.get("member", shard)
                pool["home"], pool["cap"], pool["free"] = home, row["cap"], row["free"]
                pool["limit"], pool["mode"], pool["waiting"] = row["limit"], row["mode"], row["waiting"]
                _hold(pool, home, row["in_use"], 0)
            for row in answer["holds"]:
                _hold(_pool(pools, broker, row["pool"]), row.get("member", shard), row["in_use"], row["cached"])
        ranked = sorted(pools.values(), key=lambda pool: (-pool["in_use"], pool["kind"], pool["key"]))
        return {
            "pools": ranked,
            "truncated": any(answer["truncated"] for answer in answers.values()),
            "totals": self.sampler.totals(self.sampler.now())["tokens"],
        }

    async def faults(self) -> list[FaultRow]:
        """Every fault that is set, and how often it fired; the count of a shard that was killed is lost."""
        fired: Counter[str] = Counter()
        for counts in (await self.coordinator.ask_all("describe_faults")).values():
            fired.update(counts)
        faults = self.coordinator.state.faults
        return [cast(FaultRow, {"name": name, **record, "fired": fired[name]}) for name, record in faults.items()]

    def observed_cluster_rate(self) -> Use | None:
        """The use of the observed rate of the whole cluster; None: none is observed."""
        return self._live.observed_cluster_rate()

    async def rate_uses(self) -> list[Use]:
        """The use of each creation rate on each broker."""
        return await self._live.rate_uses()

    async def live(self, since: float) -> LiveAnswer:
        """Everything a display refreshes: see live_view.py."""
        return await self._live.answer(since)

    # ---- metrics

    async def metrics(self) -> bytes:
        """The Prometheus page."""
        from broker.admin.exposition import exposition

        values = cluster_config(self.coordinator.state)
        window_s = float(values["quota.window.num"] * values["quota.window.size.seconds"])
        gauges = await self.coordinator.ask_all("describe_gauges")
        inter_broker = values["inter.broker.listener.name"]
        uptime_s = time.monotonic() - self._started_s
        disk = self._disk()
        return exposition(
            self.sampler,
            window_s,
            gauges,
            uptime_s,
            inter_broker=inter_broker,
            disk=disk,
            limits=await self.utilisation.utilised(1),
            coordinator_dropped=self._coordinator_dropped(),
        )

    def public_metrics(self) -> bytes:
        """Redpanda's second page."""
        from broker.admin.public_metrics import public_metrics

        return public_metrics(self.sampler, self._disk(), time.monotonic() - self._started_s)


def _pool(pools: dict[tuple[int, str], TokenPool], broker: int, pool: str) -> TokenPool:
    kind, _, key = pool.partition(":")
    if pool in OF_CLUSTER:
        broker = EVERY_BROKER
    blank: TokenPool = {"broker": told_broker(broker), "kind": kind, "key": key, "home": None, "cap": None, "limit": "", "mode": "",
             "free": None, "waiting": 0, "in_use": 0, "cached": 0, "holders": []}  # fmt: skip
    return pools.setdefault((broker, pool), blank)


def _hold(pool: TokenPool, shard: int, in_use: int, cached: int) -> None:
    pool["in_use"] += in_use
    pool["cached"] += cached
    if in_use or cached:
        pool["holders"].append({"shard": shard, "in_use": in_use, "cached": cached})


def _nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}
