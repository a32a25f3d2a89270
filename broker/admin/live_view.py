"""`/v1/live`: everything that a display of a running cluster refreshes, in one answer.

rates_over_one_window  The rates of all shards are over one window, the last second that was sampled; `window_s` is its length.
    The uses of creation rates and client quotas are over the quota window.
use_beside_limit_of_one_broker  The use beside a limit is that of one broker, where the limit holds; beside the limit of the
    whole cluster it is the sum.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import trio

from broker.admin.cluster_answers import JournalAnswer, ShardRow
from broker.admin.describe_settings import SettingsView
from broker.admin.images import Images
from broker.admin.live_answers import LiveAnswer, LiveShard
from broker.admin.observed_view import ObservedView
from broker.admin.quota_clients import quota_clients
from broker.admin.sampler import Sample, Sampler
from broker.admin.uses import Use, connection_rates, connection_uses, fullest_first, in_use
from broker.admin.utilisation import Closest, UtilisationView, closest, utilised
from broker.journal.schema import REASONS
from broker.metrics.top_talkers import KEPT, merge_top
from shards.config.coordinator import Coordinator
from shards.limits.caps import CLUSTER
from shards.ownership import BrokerShard

SHOWN = 12
"""Rows of each list: refused addresses, uses of limits, throttled clients."""
_ALL = 1 << 30
_ASKED = ("describe_refusals", "describe_fullest", "describe_gauges")


class LiveView:
    """Asks the shards, and puts their answers beside the limits.

    `refused_addresses`: `known`, how many addresses are counted; `others_refused`, the refusals of those that `top_refused`
    does not show; `more`, whether a shard's table of refused addresses is full, so that there may be more.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        sampler: Sampler,
        images: Images,
        settings: SettingsView,
        observed: ObservedView,
        utilisation: UtilisationView,
        shards: Callable[[], list[ShardRow]],
        journal: Callable[[], JournalAnswer],
    ) -> None:
        """`shards()`: a row for each shard, as /v1/shards has them; `journal()`: of Admin."""
        self._coordinator = coordinator
        self._sampler = sampler
        self._images = images
        self._settings = settings
        self._observed = observed
        self._utilisation = utilisation
        self._shards = shards
        self._journal = journal
        self._started_s = time.monotonic()

    def observed_cluster_rate(self) -> Use | None:
        """The use of the observed rate of the whole cluster; None: none is observed."""
        return self._utilisation.observed_cluster_rate()

    async def rate_uses(self) -> list[Use]:
        """The use of each creation rate, averaged over the quota window."""
        gauges = await self._coordinator.ask_all("describe_gauges")
        return self._utilisation.rate_uses(connection_rates(gauges))

    async def answer(self, since: float) -> LiveAnswer:
        """`series` has the seconds after `since` (Unix seconds)."""
        window, now = self._sampler.latest(), self._sampler.now()
        asked = await self._ask()
        refused = merge_top(asked["describe_refusals"].values(), most=_ALL)
        shown = refused[:SHOWN]
        found = closest(asked["describe_fullest"], SHOWN)
        pools = self._pools([ip for ip, *_ in shown], found)
        used = in_use(await self._coordinator.ask_all("describe_tokens", pools))
        brokers = self._coordinator.state.brokers
        capped = connection_uses(self._images, brokers, pools, used)
        rates = self._utilisation.rate_uses(found.rates)
        clients = quota_clients(asked["describe_gauges"], found.quotas, self._images, SHOWN)
        return {
            "at": time.time(),
            "uptime_s": round(time.monotonic() - self._started_s, 1),
            "window_s": round(window[1].mono_s - window[0].mono_s, 2),
            "version": self._coordinator.state.version,
            "brokers": brokers,
            "listeners": list(self._sampler.layout.listeners),
            "totals": self._sampler.totals(now),
            "journal": self._journal(),
            "shards": [self._shard(window, now, row) for row in self._shards()],
            "series": self._sampler.series(since),
            "uses": [use.told() for use in fullest_first([*capped, *rates], SHOWN)],
            "close": utilised([*capped, *rates], found).close,
            "top_refused": [
                {"ip": ip, "count": n, "error": error, "reasons": reasons, "open": _sum(used, f"ip:{ip}", brokers),
                 "uses": [use.told() for use in capped if use.of == f"ip:{ip}"]}
                for ip, n, error, reasons in shown
            ],
            "refused_addresses": {
                "known": len(refused),
                "others_refused": sum(n for _, n, *_ in refused[SHOWN:]),
                "more": any(len(rows) >= KEPT for rows in asked["describe_refusals"].values()),
            },
            "throttled": clients.throttled,
            "within_quota": clients.others,
            "limits": self._settings.limits(),
            "observed": await self._observed.summary(),
        }  # fmt: skip

    async def _ask(self) -> dict[str, dict[BrokerShard, Any]]:
        asked: dict[str, dict[BrokerShard, Any]] = {}

        async def ask(method: str) -> None:
            asked[method] = await self._coordinator.ask_all(method)

        async with trio.open_nursery() as nursery:
            for method in _ASKED:
                nursery.start_soon(ask, method)
        return asked

    def _pools(self, refused: Iterable[str], found: Closest) -> list[str]:
        """The pools whose uses are asked for: brokers, listeners, the addresses that are refused most, and the addresses and users
        that are closest to a cap."""
        listeners = [f"listener:{name}" for name in self._sampler.layout.listeners]
        return list(
            dict.fromkeys(
                [CLUSTER, "broker", "broker:all", "ssl", *listeners, *(f"ip:{ip}" for ip in refused), *found.pools]
            )
        )

    def _shard(self, window: tuple[Sample, Sample], now: Sample, row: ShardRow) -> LiveShard:
        sampler, member = self._sampler, (row["broker"], row["shard"])
        seconds = max(window[1].mono_s - window[0].mono_s, 1e-3)
        refused = sum(sampler.rise(window, f"refused_{reason}", None, [member]) for reason in REASONS)
        totals = sampler.totals(now, [member])
        return {
            **row,
            "admitted_per_s": round(sampler.rise(window, "admitted", None, [member]) / seconds, 1),
            "refused_per_s": round(refused / seconds, 1),
            "admitted": totals["admitted"],
            "refused": sum(totals["refused"].values()),
            "tokens": totals["tokens"],
            "decisions": totals["decisions"],
        }


def _sum(used: Mapping[tuple[int, str], int], pool: str, brokers: int) -> int:
    return sum(used.get((broker, pool), 0) for broker in range(brokers))
