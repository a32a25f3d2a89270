"""The rates of a whole broker under virtual time: the classes that run, over links with delays, changes and crashes.

One seed is one schedule. The oracle is one Kafka broker's ConnectionQuotas (shards/limits), fed the same arrivals. Every
run also judges the order of service that docs/internals/rates.md promises (`RateWorld.out_of_order`).
"""

import heapq
import itertools
import random
from collections import Counter, deque

from units import quotas_of

from shards.config.image import ClusterImage
from shards.limits.connection_limits import ConnectionLimits
from shards.limits.rate import Window
from shards.limits.rate_replay import RateReplay
from shards.limits.replay_gate import ADMITTED, IncomingConnection, ReplayGate
from shards.rates.rates import UNAVAILABLE, Rates

LISTENERS = ("EXTERNAL", "INTERNAL")
RATE = "max.connection.creation.rate"
USER_RATE = "turnstile.max.connection.creation.rate.per.user.overrides"


class Arrival:
    """A connection on its way in, as broker/accept/admission.py takes it: its listener's rate, then its address's; or a login of a
    user, whose name stands where the address does (`user:alice`), as broker/serve/user_admission.py takes it."""

    def __init__(self, shard, listener, ip, at_ms):
        self.shard, self.listener, self.ip, self.at_ms = shard, listener, ip, at_ms
        self.key = key_of(ip)
        self.accepted_ms = self.passed_ms = None  # of its listener's rate

    def accept(self):
        rates = self.shard.rates
        self.accepted_ms = self.shard.world.now_ms
        if not rates.limits_listeners:
            return self.enter()
        self.shard.waiting[self.listener] += 1
        wait_ms = rates.record(f"listener:{self.listener}", self, now_ms=self.shard.world.now_ms)
        if wait_ms is not None:
            self.recorded(f"listener:{self.listener}", wait_ms)

    def recorded(self, key, wait_ms):
        world = self.shard.world
        if wait_ms == UNAVAILABLE:
            world.unavailable += 1
            if key.startswith("listener:"):
                self.shard.waiting[self.listener] -= 1
        elif key.startswith("listener:"):
            world.at(world.now_ms + wait_ms, self.passed, self.shard.epoch)
        elif wait_ms:
            world.over.append((world.now_ms, self, wait_ms))
            self.shard.rates.count(self.listener, -1, now_ms=world.now_ms)
        else:
            world.admitted.append((world.now_ms, self))

    def passed(self, epoch):
        if epoch == self.shard.epoch:
            self.shard.waiting[self.listener] -= 1
            self.passed_ms = self.shard.world.now_ms
            self.shard.world.passed.append(self)
            self.enter()

    def enter(self):
        world = self.shard.world
        if not self.shard.rates.has_quota(self.key):
            world.admitted.append((world.now_ms, self))
            return
        wait_ms = self.shard.rates.record(self.key, self, now_ms=world.now_ms)
        if wait_ms is not None:
            self.recorded(self.key, wait_ms)


class RateShard:
    """One shard: its rates, and a backlog for each listener."""

    def __init__(self, world, number):
        self.world, self.number, self.epoch = world, number, 0
        self.backlog = {name: deque() for name in LISTENERS}
        self.start()

    def start(self):
        self.epoch += 1
        self.alive = True
        self.image = ClusterImage()
        self.image.apply(self.world.version, self.world.state, whole=True)
        self.blocked = dict.fromkeys(LISTENERS, 0)
        self.waiting = dict.fromkeys(LISTENERS, 0)
        self.taken = dict.fromkeys(LISTENERS, 0)
        self.rates = Rates(
            self.number,
            len(self.world.shards),
            LISTENERS,
            self.image,
            send=self.send,
            blocked=self.block,
            journal=self.journal,
        )
        self.rates.apply(self.world.version, now_ms=self.world.now_ms)

    def journal(self, kind, detail, version):
        """Replays what the home journals at once, under the configuration of that version."""
        world, epoch = self.world, self.epoch
        home = world.recorded.setdefault((self.number, epoch), RateReplay(Window()))
        image = world.images[version]

        world.beyond += home.event(detail, lambda key: quotas_of(image, key), Window())
        units = detail.get("tokens", 0) * (1 if kind == "grant" else -1)
        world.units[detail["pool"].removeprefix("rate:")] += units

    def send(self, peer, message):
        self.world.deliver(self, self.world.shards[peer], message[1])

    def block(self, listener, until_ms):
        self.blocked[listener] = max(self.blocked[listener], until_ms)

    def step(self):
        now_ms = self.world.now_ms
        self.rates.advance(now_ms=now_ms)
        for name, backlog in self.backlog.items():
            while backlog and now_ms >= self.blocked[name] and self.waiting[name] < self.rates.batch(name):
                self.taken[name] += 1
                backlog.popleft().accept()
        if now_ms % 250 == 0:
            for name in LISTENERS:
                self.rates.note_unrecorded(name, self.taken[name], now_ms=now_ms)
            self.rates.tick(now_ms=now_ms)
        while True:
            self.rates.flush(now_ms=now_ms)
            if not self.rates.busy:
                break


class RateWorld:
    """All shards of a broker, the links between them, and what happens next."""

    def __init__(self, seed, shards, *, delay_ms=(0, 2), sets=(), quotas=()):
        self.random = random.Random(seed)
        self.delay_ms = delay_ms
        self.now_ms = 1000
        self.version = 1
        self.state = [("setting", f"/{name}", str(value)) for name, value in sets]
        self.state += [limit_of(name, rate) for name, rate in quotas]
        self.events, self.order = [], itertools.count()
        self.link_free = {}
        self.sent = Counter()  # items between shards, by kind
        self.admitted, self.over, self.unavailable = [], [], 0
        self.passed, self.crashed = [], False  # passed: what its listener's rate let in
        self.recorded, self.beyond, self.units = {}, 0, Counter()
        self.images = {}
        self.remember()
        self.shards = [None] * shards
        for number in range(shards):
            self.shards[number] = RateShard(self, number)
        for shard in self.shards:
            for peer in self.shards:
                if peer is not shard:
                    shard.rates.peer_up(peer.number)

    def remember(self):
        """Keeps the configuration of this version, under which `journal` replays events later."""
        self.images[self.version] = ClusterImage()
        self.images[self.version].apply(self.version, self.state, whole=True)

    def at(self, when_ms, function, *args):
        heapq.heappush(self.events, (when_ms, next(self.order), function, args))

    def deliver(self, sender, receiver, items):
        link = (sender.number, sender.epoch, receiver.number, receiver.epoch)
        when = max(self.now_ms + self.random.randint(*self.delay_ms), self.link_free.get(link, 0))
        self.link_free[link] = when
        self.sent.update(item[0] for item in items)
        self.at(when, self.arrive, link, items)

    def arrive(self, link, items):
        sender, sender_epoch, receiver, receiver_epoch = link
        if (self.shards[sender].epoch, self.shards[receiver].epoch) == (sender_epoch, receiver_epoch):
            self.shards[receiver].rates.receive(sender, items, now_ms=self.now_ms)

    def connect(self, when_ms, ip="10.0.0.1", listener="EXTERNAL", shard=None):
        def now():
            chosen = self.random.choice(self.shards) if shard is None else self.shards[shard]
            chosen.backlog[listener].append(Arrival(chosen, listener, ip, when_ms))

        self.at(when_ms, now)

    def change(self, when_ms, kind, key, value):
        """A new version reaches the shards one after the other; the time at which the last has it is added to the list returned."""
        acknowledged = []

        def begin():
            self.version += 1
            self.state = [record for record in self.state if record[:2] != (kind, key)]
            if value is not None:
                self.state.append((kind, key, value))
            self.remember()
            version, delta = self.version, [(kind, key, value)]
            last = 0
            for shard in self.shards:
                lag = self.random.randint(0, 5)
                last = max(last, lag)
                self.at(self.now_ms + lag, apply, shard, shard.epoch, version, delta)
            acknowledged.append(self.now_ms + last)

        def apply(shard, epoch, version, delta):
            if shard.epoch == epoch:
                shard.image.apply(version, delta)
                shard.rates.apply(version, now_ms=self.now_ms)

        self.at(when_ms, begin)
        return acknowledged

    def crash(self, when_ms, number):
        def die():
            self.crashed = True
            shard = self.shards[number]
            for peer in self.shards:
                if peer is not shard and peer.alive:
                    peer.rates.peer_lost(number, now_ms=self.now_ms)
                    peer.rates.peer_dead(number, now_ms=self.now_ms)
            shard.alive = False
            shard.epoch += 1  # nothing of it arrives anywhere any more
            self.at(self.now_ms + 200, begin)

        def begin():
            shard = self.shards[number]
            shard.start()
            for peer in self.shards:
                if peer is not shard and peer.alive:
                    peer.rates.peer_up(number)
                    shard.rates.peer_up(peer.number)

        self.at(when_ms, die)

    def run(self, until_ms):
        while self.now_ms < until_ms:
            while self.events and self.events[0][0] <= self.now_ms:
                _, _, function, args = heapq.heappop(self.events)
                function(*args)
            for shard in self.shards:
                if shard.alive:
                    shard.step()
            self.now_ms += 1
        assert self.beyond == 0, "units recorded that one Kafka broker would not have let in"
        assert self.crashed or not self.out_of_order(), "let in before one whose question came first"

    def out_of_order(self):
        """Connections that overtook: a listener's rate let them in before one that any shard had accepted so much earlier that the
        home had read its question first. Questions and answers take up to `delay_ms` each, a step 1 ms."""
        slack_ms = self.delay_ms[1] + 1
        wrong, latest = [], Counter()
        accepted = sorted(self.passed, key=lambda each: each.accepted_ms)
        earlier = iter(accepted)
        before = next(earlier, None)
        for each in accepted:
            while before.accepted_ms + slack_ms < each.accepted_ms:
                latest[before.listener] = max(latest[before.listener], before.passed_ms)
                before = next(earlier)
            if each.passed_ms + slack_ms < latest[each.listener]:
                wrong.append(each)
        return wrong

    def times(self, ip=None, listener=None):
        return [at for at, each in self.admitted if ip in (None, each.ip) and listener in (None, each.listener)]


def key_of(name):
    return name if name.startswith("user:") else f"ip:{name}"


def limit_of(name, rate):
    """The record that limits an address or a user."""
    if name.startswith("user:"):
        return "setting", f"/{USER_RATE}", f"{name.removeprefix('user:')}:{rate}"
    return "quota", quota_key(name), {"connection_creation_rate": rate}


def quota_key(ip):
    return f'{{"ip":"{ip}"}}' if ip else '{"ip":null}'


def one_broker(arrivals, until_ms, *, sets=(), quotas=()):
    """When one Kafka broker admits these (at_ms, ip, listener)."""
    limits = ConnectionLimits()
    for name, value in sets:
        limits = limits.with_change(name, str(value), LISTENERS)
    quotas_of_one = ReplayGate(limits, LISTENERS, inter_broker="INTERNAL")
    for ip, rate in quotas:
        quotas_of_one.ip_quotas.update(ip, rate)
    made = []
    for at_ms, ip, listener in sorted(arrivals):
        quotas_of_one.advance(now_ms=at_ms)
        made.append(IncomingConnection(quotas_of_one.acceptors[listener], ip))
        quotas_of_one.connect(made[-1], now_ms=at_ms)
    quotas_of_one.advance(now_ms=until_ms)
    return sorted(each.at_ms for each in made if each.outcome == ADMITTED)


def most_within(times, span_ms):
    """The most of sorted `times` in any window of that length."""
    most, start = 0, 0
    for end, at in enumerate(times):
        while at - times[start] >= span_ms:
            start += 1
        most = max(most, end - start + 1)
    return most
