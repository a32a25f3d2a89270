"""Tokens taken beyond a cap, and the connection that goes for it, on three shards in one process."""

import pytest
import trio
from cluster_pools import uncapped, unrated

from broker.accept import eviction
from broker.accept.eviction import POOL, Eviction
from broker.runtime.shard_context import ShardContext
from shards.errors import PeerLost
from shards.limits.caps import CapRule
from shards.ownership import home_of
from shards.tokens.tokens import ADMITTED, Tokens

SHARDS = 3
HOME = home_of(POOL, SHARDS)
ELSEWHERE = (HOME + 1) % SHARDS


class Connection:
    def __init__(self, shard, number, listener, last_used_ns, busy=False):
        self.shard, self.id, self.listener, self.last_used_ns, self.busy = shard, number, listener, last_used_ns, busy
        self.closed = None

    def close(self, why):
        self.closed = why
        del self.shard.connections[self.id]
        self.shard.tokens.release((POOL,))


class Poller:
    def touch(self):
        pass


class Shard:
    def __init__(self, net, me):
        self.net, self.me, self.connections = net, me, {}
        self.tokens = Tokens(me, SHARDS, epoch=me + 1, send=self.send, rule_of=lambda key: net.rule)
        context = ShardContext(
            shard=me, shards=SHARDS, image=None, tokens=self.tokens, cluster=uncapped(),
            cluster_rate=unrated(),
            poller=Poller(), timers=None, journal=None,
            counters=None, top_talkers=None, log=None, send=self.send, request=self.request,
            start_soon=lambda *call: net.tasks.append(call),
        )  # fmt: skip
        self.room = Eviction(context, self.connections)
        self.room.protect("INTERNAL")
        self.served = {}
        self.room.serve_on(self.served.__setitem__)

    def send(self, peer, message):
        self.net.messages.append((self.me, peer, message))

    async def request(self, peer, method, *args):
        await trio.lowlevel.checkpoint()
        if peer in self.net.lost:
            raise PeerLost("gone")
        return self.net.shards[peer].served[method](self.me, *args)

    def decided(self, decision):
        assert decision is ADMITTED
        self.waiting = False

    def connect(self, listener="EXTERNAL", *, last_used_ns=0, busy=False):
        if listener == "INTERNAL":
            self.room.force()
        else:
            self.waiting = self.tokens.take((POOL,), self) is None
            self.net.settle()
            assert not self.waiting
        number = self.net.number = self.net.number + 1
        self.connections[number] = made = Connection(self, number, listener, last_used_ns, busy)
        self.net.settle()
        return made


class Net:
    def __init__(self):
        self.rule = CapRule(None, "")
        self.messages, self.tasks, self.lost, self.number = [], [], set(), 0
        self.shards = [Shard(self, me) for me in range(SHARDS)]
        for shard in self.shards:
            for peer in self.shards:
                if peer is not shard:
                    shard.tokens.peer_up(peer.me, peer.me + 1)
        self.settle()

    def set_cap(self, cap):
        self.rule = CapRule(cap, "max.connections", True)
        done = []
        for shard in self.shards:
            shard.tokens.apply(shard.tokens.version + 1, lambda: done.append(1))
        self.settle()
        assert len(done) == SHARDS

    def settle(self):
        """Delivers until nothing is on its way."""
        while True:
            for shard in self.shards:
                shard.tokens.flush()
                shard.room.flush()
            if not self.messages:
                return
            messages, self.messages = self.messages, []
            for sender, peer, message in messages:
                if message[0] == eviction.NAME:
                    self.shards[peer].room.count(*message[1:])
                else:
                    self.shards[peer].tokens.receive(sender, message)

    async def run_tasks(self):
        while self.tasks:
            function, *args = self.tasks.pop()
            await function(*args)
            self.settle()
        for shard in self.shards:
            shard.tokens.check()


@pytest.fixture
def net():
    return Net()


@pytest.mark.parametrize("on", [HOME, ELSEWHERE])
async def test_the_idlest_of_all_shards_goes(net, on):
    net.set_cap(3)
    opened = [net.shards[me].connect(last_used_ns=used) for me, used in ((0, 30), (1, 10), (2, 20))]
    net.shards[on].connect("INTERNAL", last_used_ns=1)
    await net.run_tasks()
    assert [each.closed for each in opened] == [None, "max_connections", None]
    assert net.shards[HOME].tokens.excess(POOL) == 0


@pytest.mark.parametrize("on", [HOME, ELSEWHERE])
async def test_no_connection_is_evicted_while_there_is_room_also_if_it_is_cached_elsewhere(net, on):
    net.set_cap(40)
    opened = [net.shards[me].connect() for me in range(SHARDS)]  # their shards now cache more
    for _ in range(37):
        net.shards[on].connect("INTERNAL")
        await net.run_tasks()
    assert all(each.closed is None for each in opened)
    net.shards[on].connect("INTERNAL")
    await net.run_tasks()
    assert sum(each.closed is not None for each in opened) == 1


async def test_a_lowered_cap_costs_one_connection_for_each_that_is_forced_in(net):
    net.set_cap(10)
    opened = [net.shards[number % SHARDS].connect(last_used_ns=number) for number in range(10)]
    net.set_cap(2)
    await net.run_tasks()
    assert all(each.closed is None for each in opened)
    for _ in range(2):
        net.shards[ELSEWHERE].connect("INTERNAL")
    await net.run_tasks()
    assert [each.last_used_ns for each in opened if each.closed] == [0, 1]


@pytest.mark.parametrize("on", [HOME, ELSEWHERE])
async def test_a_cap_that_is_lowered_while_cached_tokens_come_home_closes_nothing(net, on):
    net.set_cap(40)
    opened = [net.shards[me].connect() for me in range(SHARDS)]  # their shards now cache more
    shard = net.shards[on]
    for number in range(30):
        shard.room.force()
        shard.connections[-number] = Connection(shard, -number, "INTERNAL", 0)
    shard.tokens.flush()
    shard.room.flush()  # from here on the home waits for the others' answers
    net.set_cap(5)
    await net.run_tasks()
    assert all(each.closed is None for each in opened)


async def test_the_busy_go_last_and_the_protected_never(net):
    net.set_cap(2)
    busy = net.shards[0].connect(last_used_ns=1, busy=True)
    idle = net.shards[1].connect(last_used_ns=2)
    inside = net.shards[2].connect("INTERNAL", last_used_ns=0)
    await net.run_tasks()
    assert (busy.closed, idle.closed, inside.closed) == (None, "max_connections", None)
    for _ in range(3):
        net.shards[2].connect("INTERNAL", last_used_ns=0)
        await net.run_tasks()
    assert busy.closed
    assert net.shards[HOME].tokens.excess(POOL) == 2


async def test_a_lost_shard_does_not_stop_it(net):
    net.set_cap(2)
    lost = ELSEWHERE
    others = [me for me in range(SHARDS) if me != lost]
    opened = [net.shards[me].connect(last_used_ns=5) for me in others]
    net.lost.add(lost)
    net.shards[HOME].connect("INTERNAL")
    await net.run_tasks()
    assert sum(each.closed is not None for each in opened) == 1


def test_a_connection_that_was_used_since_stays(net):
    connection = net.shards[0].connect(last_used_ns=5)
    assert not net.shards[0].room.close(connection.id, 4)
    assert not net.shards[0].room.close(999, 5)
    assert connection.closed is None
