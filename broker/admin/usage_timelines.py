"""One address or client over time: what it uses of its limits, what is refused and throttled. The history behind an opened row.

watched_once_asked_for  Something is watched from the first question on, so there is no history of what was not asked for: of a
    million addresses none could be kept. It goes on for FORGOTTEN_S after the last question.
bounded  At most MOST addresses and clients are watched at once; for one more, the one that was asked for the longest ago is
    forgotten. Each has KEPT points of a second, and as many of COARSE seconds. A second costs each shard two questions, however
    many are watched.
lost_counts_are_no_events  Where a shard was started again, or forgot its counts (source_counts.py), what it has counted falls:
    that point has too few events, but never less than none.
"""

import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

import trio

from broker.admin.images import Images
from broker.admin.sampler import COARSE, EVERY_S, KEPT
from broker.admin.uses import CONNECTIONS, NEW_CONNECTIONS, in_use
from broker.admin.watch_answers import WatchAnswer, WatchPoint
from shards.ownership import BrokerShard
from shards.quotas.meters import QuotaUse

MOST: Final = 32
FORGOTTEN_S: Final = 1800.0
Answers = Mapping[BrokerShard, Any]


class Watched(NamedTuple):
    """An address on one broker, or a client by the names that its quota tells apart ("" where it does not)."""

    broker: int
    ip: str | None
    user: str | None = None
    client_id: str | None = None

    @property
    def pool(self) -> str | None:
        """The pool of its connections; None: a client id has none, as nothing counts its connections."""
        if self.ip is not None:
            return f"ip:{self.ip}"
        return f"user:{self.user}" if self.user and not self.client_id else None


class WatchSample(NamedTuple):
    """A sample, taken at `mono_s` (for differences) and `at` (Unix seconds, for people). `counts`: connections by outcome, since
    the shards started."""

    at: float
    mono_s: float
    used: dict[str, float]
    limits: dict[str, float]
    throttle_ms: dict[str, float]
    counts: Counter[str]


class WatchedSamples:
    """The samples of what is watched. `asked_s`: of the last question, on the monotonic clock."""

    def __init__(self, began: float, asked_s: float) -> None:
        self.began = began
        self.asked_s = asked_s
        self.fine: deque[WatchSample] = deque(maxlen=KEPT)
        self.coarse: deque[WatchSample] = deque(maxlen=KEPT)
        self._taken = 0

    def add(self, sample: WatchSample) -> None:
        """The next sample; one of COARSE is kept for longer."""
        self.fine.append(sample)
        if self._taken % COARSE == 0:
            self.coarse.append(sample)
        self._taken += 1

    def points(self, since: float, *, coarse: bool) -> list[WatchPoint]:
        """The points after `since` (Unix seconds); the first sample of all is a point, too."""
        kept = self.coarse if coarse else self.fine
        first = [] if len(kept) == kept.maxlen or not kept else [_point(kept[0], kept[0])]
        points = [*first, *(_point(before, after) for before, after in pairwise(kept))]
        return [point for point in points if point["at"] > since]


def _point(before: WatchSample, after: WatchSample) -> WatchPoint:
    seconds = max(after.mono_s - before.mono_s, 1e-3)
    rates = {name: round(max(0, n - before.counts[name]) / seconds, 2) for name, n in after.counts.items()}
    return {
        "at": after.at, "used": after.used, "limits": after.limits, "throttle_ms": after.throttle_ms,
        "admitted": rates.pop("admitted", 0.0), "refused": {reason: rate for reason, rate in rates.items() if rate},
    }  # fmt: skip


class Watches:
    """Everything that is watched. `ask(method, *args)`: of all shards, as Coordinator.ask_all."""

    def __init__(
        self,
        ask: Callable[..., Awaitable[Answers]],
        images: Images,
        *,
        wall_clock: Callable[[], float] = time.time,
        mono_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._images = images
        self._wall_clock = wall_clock
        self._mono_clock = mono_clock
        self._watches: dict[Watched, WatchedSamples] = {}

    def __len__(self) -> int:
        return len(self._watches)

    async def run(self) -> None:
        """Takes a sample a second, until cancelled."""
        while True:
            await trio.sleep(EVERY_S)
            await self.sample()

    async def answer(self, watched: Watched, minutes: int, since: float) -> WatchAnswer:
        """The samples of the last `minutes`, after `since`; an address or client that was not watched yet is watched from here
        on."""
        watch = self._watches.pop(watched, None)
        if watch is None:
            watch = WatchedSamples(self._wall_clock(), self._mono_clock())
            await self._sample({watched: watch})
            watch = self._watches.pop(watched, watch)  # another question was faster
        watch.asked_s = self._mono_clock()
        self._watches[watched] = watch
        while len(self._watches) > MOST:
            del self._watches[next(iter(self._watches))]
        coarse, last = 60 * minutes > KEPT * EVERY_S, watch.fine[-1]
        counts = None if watched.ip is None else last.counts
        return {
            "broker": watched.broker,
            "ip": watched.ip,
            "user": watched.user,
            "client_id": watched.client_id,
            "began": round(watch.began, 3),
            "step_s": EVERY_S * (COARSE if coarse else 1),
            "points": watch.points(max(since, last.at - 60 * minutes), coarse=coarse),
            "admitted": None if counts is None else counts["admitted"],
            "refused": None if counts is None else {name: n for name, n in counts.items() if n and name != "admitted"},
        }

    async def sample(self) -> None:
        """Looks at everything that is watched, and forgets what was not asked for lately."""
        before_s = self._mono_clock() - FORGOTTEN_S
        for watched in [each for each, watch in self._watches.items() if watch.asked_s < before_s]:
            del self._watches[watched]
        await self._sample(dict(self._watches))

    async def _sample(self, watches: Mapping[Watched, WatchedSamples]) -> None:
        if not watches:
            return
        addresses = list(dict.fromkeys(each.ip for each in watches if each.ip is not None))
        clients = list(dict.fromkeys((each.user or "", each.client_id or "") for each in watches if each.ip is None))
        pools = list(dict.fromkeys(each.pool for each in watches if each.pool is not None))
        by_shard = await self._ask("describe_watched", addresses, clients)
        opened = in_use(await self._ask("describe_tokens", pools)) if pools else Counter()
        at, mono_s = round(self._wall_clock(), 3), self._mono_clock()
        for watched, watch in watches.items():
            answers = [answer for (broker, _), answer in by_shard.items() if broker == watched.broker]
            used, limits = self._of_connections(watched, answers, opened)
            throttle_ms: dict[str, float] = {}
            counts: Counter[str] = Counter()
            if watched.ip is None:
                uses = list(_uses(watched, answers))
                used |= {use.kind: round(use.used, 3) for use in uses}
                limits |= {use.kind: use.limit for use in uses}
                throttle_ms = {use.kind: round(use.throttle_ms, 1) for use in uses if use.throttle_ms}
            else:
                for answer in answers:
                    counts.update(answer["counts"].get(watched.ip, {}))
            watch.add(WatchSample(at, mono_s, used, limits, throttle_ms, counts))

    def _of_connections(
        self, watched: Watched, answers: list[Any], opened: Mapping[tuple[int, str], int]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """The connections of an address or a user, and new ones a second if they are limited; and their limits. A user without
        connections and without a cap has no row."""
        pool = watched.pool
        if pool is None:
            return {}, {}
        image = self._images.of(watched.broker)
        cap, rate = image.rule_of(pool).cap, image.rate_of(pool).rate
        used: dict[str, float] = {}
        if watched.ip is not None or cap is not None or opened[watched.broker, pool]:
            used[CONNECTIONS] = opened[watched.broker, pool]
        if rate is not None:
            used[NEW_CONNECTIONS] = round(sum(answer["rates"].get(pool, 0.0) for answer in answers), 2)
        limits = {CONNECTIONS: cap, NEW_CONNECTIONS: rate}
        return used, {name: limit for name, limit in limits.items() if limit is not None}


def _uses(watched: Watched, answers: list[Any]) -> Iterator[QuotaUse]:
    """The quota uses of the watched client, from the homes of its keys."""
    for answer in answers:
        for each in answer["quotas"]:
            use = QuotaUse(*each)
            if (use.user, use.client_id) == (watched.user or "", watched.client_id or ""):
                yield use
