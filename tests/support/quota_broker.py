"""The client quotas of all shards of a broker in one process: each reaches the others by a plain call; one clock, no links."""

from functools import partial

from shards.config.image import ClusterImage
from shards.errors import PeerLost
from shards.limits.client_quota_managers import PRODUCE
from shards.limits.quota_entities import key_of_entity
from shards.loop.deferred import Deferred
from shards.ownership import home_of
from shards.quotas.sharded_quotas import ShardedQuotas


class QuotaBroker:
    """The meters of all shards; `down` shards can't be called, `silent` ones answer nothing."""

    def __init__(self, shards, quotas=None):
        self.now_ms = 0
        self.down = set()
        self.touches = 0
        self.calls = []  # (home, how many charges)
        self.silent = set()  # shards that answer nothing
        self.mistake = None
        self.mistakes = []  # reported where they happened
        self.timers = []
        self.image = ClusterImage(0)
        self._served = [{} for _ in range(shards)]
        self.meters = [self._start(shard, shards) for shard in range(shards)]
        self.set(quotas or {})

    def _start(self, shard, shards):
        meters = ShardedQuotas(
            shard,
            shards,
            self.image,
            call=partial(self._call, shard),
            now_ms=lambda: self.now_ms,
            touch=self._touch,
            after=lambda ms, function: self.timers.append((self.now_ms + ms, function)),
            mistaken=self.mistakes.append,
        )
        meters.serve_on(self._served[shard].__setitem__)
        return meters

    def restart(self, shard):
        """Begins anew, and waits for the others."""
        self.timers.clear()
        meters = self.meters[shard] = self._start(shard, len(self.meters))
        meters.read_quotas()
        meters.await_peers()

    def _touch(self):
        self.touches += 1

    def _call(self, shard, peer, method, *args):
        if method == "charge":
            self.calls.append((peer, len(args[0])))
        answer = Deferred()
        if peer in self.silent:
            return answer
        if peer in self.down:
            answer.fail(PeerLost(f"{peer} is down"))
        elif self.mistake is not None:
            answer.fail(self.mistake)
        else:
            answer.resolve(self._served[peer][method](shard, *args))
        return answer

    def set(self, quotas):
        delta = [["quota", key_of_entity(entity), values] for entity, values in quotas.items()]
        self.image.apply(self.image.version + 1, delta)
        for meters in self.meters:
            meters.read_quotas()

    async def charge(self, shard, kind, user, client_id, amount, strict=False):
        charged = self.meters[shard].charge(kind, user, client_id, amount, strict=strict)
        self.meters[shard].flush()
        return await said(charged)


async def said(charged):
    return charged if isinstance(charged, tuple) else await charged


def elsewhere(shard, shards, count):
    """Client ids that are metered at other shards."""
    names = map("client-{}".format, range(10 * count))
    return [name for name in names if home_of(f"{PRODUCE}\0\0{name}", shards) != shard][:count]


def at_home(shard, shards):
    """A client id that is metered at this shard."""
    names = map("client-{}".format, range(1000))
    return next(name for name in names if home_of(f"{PRODUCE}\0\0{name}", shards) == shard)
