"""Evictions while everything is on its way: connections come, go and are forced in at random instants.

Messages of a link arrive in order, those of different links in any; calls have links of their own.
one_eviction_per_forced_connection, at rest: with a cap that was never lowered no more tokens are out than it allows, as long as
there was a connection that may go; and none went that had not to.
"""

import random
from collections import defaultdict, deque
from contextlib import suppress
from types import coroutine

import pytest
from cluster_pools import uncapped, unrated

from broker.accept import eviction
from broker.accept.eviction import POOL, Eviction
from broker.runtime.shard_context import ShardContext
from shards.limits.caps import CapRule
from shards.ownership import home_of
from shards.tokens.tokens import ADMITTED, Tokens

CAP = 6


class Connection:
    def __init__(self, shard, number, listener):
        self.shard, self.id, self.listener, self.busy = shard, number, listener, False
        self.last_used_ns = number

    def close(self, why=None):
        self.shard.net.evicted += why == "max_connections"
        del self.shard.connections[self.id]
        self.shard.tokens.release((POOL,))


class Waiter:
    """A connection of another listener that asks for a token."""

    def __init__(self, shard):
        self.shard = shard

    def decided(self, decision):
        assert decision is ADMITTED
        self.shard.open("EXTERNAL")


class Poller:
    def __init__(self, shard):
        self.shard = shard

    def touch(self):
        self.shard.woken = True

    wake = touch


class Shard:
    """A shard with passes of its own: it flushes after something has come, and not otherwise."""

    def __init__(self, net, me):
        self.net, self.me, self.connections, self.woken = net, me, {}, True
        self.cap = CAP
        self.tokens = Tokens(
            me,
            net.shards_in_all,
            epoch=me + 1,
            send=self.send,
            rule_of=lambda key: CapRule(self.cap, "max.connections", True),
        )
        context = ShardContext(
            shard=me, shards=net.shards_in_all, image=None, tokens=self.tokens, cluster=uncapped(),
            cluster_rate=unrated(),
            poller=Poller(self), timers=None,
            journal=None, counters=None, top_talkers=None, log=None, send=self.send, request=self.request,
            start_soon=lambda function, *args: net.tasks.append((self, function(*args), None)),
        )  # fmt: skip
        self.eviction = Eviction(context, self.connections)
        self.eviction.protect("INTERNAL")
        self.served = {}
        self.eviction.serve_on(self.served.__setitem__)

    def send(self, peer, message):
        self.net.links[self.me, peer].append(message)

    @coroutine
    def request(self, peer, method, *args):
        return (yield peer, method, args)

    def receive(self, peer, message):
        if message[0] == eviction.NAME:
            self.eviction.count(*message[1:])
        else:
            self.tokens.receive(peer, message)
        self.woken = True

    def open(self, listener):
        self.net.opened += 1
        self.connections[self.net.opened] = Connection(self, self.net.opened, listener)

    def connect(self):
        if self.tokens.take((POOL,), Waiter(self)) is ADMITTED:
            self.open("EXTERNAL")
        self.woken = True

    def force(self):
        self.eviction.force()
        self.open("INTERNAL")
        self.woken = True

    def apply(self, cap):
        self.cap = cap
        self.tokens.apply(self.tokens.version + 1, lambda: None)
        self.woken = True

    def flush(self):
        self.woken = False
        self.tokens.flush()
        self.eviction.flush()


class Net:
    def __init__(self, draw, shards):
        self.draw, self.shards_in_all = draw, shards
        self.links = defaultdict(deque)
        self.tasks, self.calls = [], []  # to go on with an answer; (task, peer, method, args) on their way
        self.opened = self.evicted = 0
        self.shards = [Shard(self, me) for me in range(shards)]
        for shard in self.shards:
            for peer in self.shards:
                if peer is not shard:
                    shard.tokens.peer_up(peer.me, peer.me + 1)
        self.rest()

    def step(self):
        """One event, if there is any: a pass, a message, a call or an answer that arrives."""
        events = [shard.flush for shard in self.shards if shard.woken]
        events += [lambda link=link: self.deliver(*link) for link, queue in self.links.items() if queue]
        events += [lambda at=at: self.serve(at) for at in range(len(self.calls))]
        events += [lambda at=at: self.go_on(at) for at in range(len(self.tasks))]
        if not events:
            return False
        self.draw.choice(events)()
        return True

    def deliver(self, sender, receiver):
        self.shards[receiver].receive(sender, self.links[sender, receiver].popleft())

    def serve(self, at):
        shard, task, peer, method, args = self.calls.pop(at)
        self.tasks.append((shard, task, self.shards[peer].served[method](shard.me, *args)))
        self.shards[peer].woken = True

    def go_on(self, at):
        shard, task, answer = self.tasks.pop(at)
        with suppress(StopIteration):
            self.calls.append((shard, task, *task.send(answer)))

    def rest(self):
        while self.step():
            pass


@pytest.mark.parametrize("block", range(10))
def test_each_forced_connection_beyond_the_cap_costs_one(block):
    for seed in range(200 * block, 200 * (block + 1)):
        run(seed)


def run(seed):
    draw = random.Random(seed)
    net = Net(draw, draw.choice([1, 2, 3, 5]))
    home = net.shards[home_of(POOL, net.shards_in_all)]
    for _ in range(CAP + draw.randrange(3)):
        draw.choice(net.shards).connect()
    net.rest()
    goes = draw.choice([0.0, 0.1])
    for _ in range(draw.randrange(1, 12)):
        draw.choice(net.shards).force()
        for _ in range(draw.choice([0, 3, 30, 1000])):
            if not net.step():
                break
            shard = draw.choice(net.shards)
            if shard.connections and draw.random() < goes:
                draw.choice(list(shard.connections.values())).close()
                shard.woken = True
                draw.choice(net.shards).connect()
    net.rest()
    for shard in net.shards:
        shard.tokens.check()
    in_use = [each for shard in net.shards for each in shard.connections.values()]
    may_go = [each for each in in_use if each.listener != "INTERNAL"]
    assert home.tokens.excess(POOL) == max(0, len(in_use) - CAP), seed
    assert len(in_use) <= CAP or not may_go, f"seed {seed}: a connection was forced in, and none went for it"
    if not goes:
        assert len(in_use) >= CAP, f"seed {seed}: one went too many"


@pytest.mark.parametrize("block", range(4))
def test_lowering_the_cap_closes_nothing_that_it_let_in(block):
    for seed in range(200 * block, 200 * (block + 1)):
        lower(seed)


def lower(seed):
    """As many connections as the cap allows, some of them forced, while tokens of it are cached; then a lower one."""
    draw = random.Random(seed)
    net = Net(draw, draw.choice([2, 3, 5]))
    forced = draw.randrange(1, CAP)
    for _ in range(CAP - forced):
        draw.choice(net.shards).connect()
        net.rest()
    for _ in range(forced):
        draw.choice(net.shards).force()
        for _ in range(draw.choice([0, 0, 3])):
            net.step()
    cap = draw.randrange(1, CAP)
    for shard in draw.sample(net.shards, len(net.shards)):  # each in its own time
        shard.apply(cap)
        for _ in range(draw.choice([0, 3, 30])):
            net.step()
    net.rest()
    assert sum(len(shard.connections) for shard in net.shards) == CAP, f"seed {seed}: lowering has closed a connection"
