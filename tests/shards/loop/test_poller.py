"""The poller beside trio's tasks."""

import itertools
import os
import socket

import pytest
import trio
import trio.testing

from shards.loop.poller import EPOLLET, EPOLLIN, EXPECTED_NS, ROUND_NS, Calling, Poller
from shards.loop.stalls import STALL_NS, Stall, Stalls
from shards.loop.time_slice import SLICE_NS


class Watched:
    """An epoll set that tells when it was waited in, and counts in `asked[0]` how often it was only asked."""

    def __init__(self, epoll, waited, asked=None):
        self._epoll = epoll
        self._waited = waited
        self._asked = asked if asked is not None else [0]

    def poll(self, timeout, events):
        if timeout:
            self._waited()
        else:
            self._asked[0] += 1
        return self._epoll.poll(timeout, events)

    def __getattr__(self, name):
        return getattr(self._epoll, name)


@pytest.mark.parametrize("pollers", [1, 2])
async def test_it_does_not_wait_while_a_task_is_to_run(pollers):
    """tasks_are_not_held_up, for tasks of trio's current batch, too; nor do two pollers wait for each other."""
    busy = False
    waits = []
    ended = trio.Event()
    async with trio.open_nursery() as nursery:
        made = [Poller() for _ in range(pollers)]
        readable, writable = os.pipe()

        async def work():
            nonlocal busy
            busy = True
            for _ in range(100):
                await trio.lowlevel.checkpoint()
            busy = False
            ended.set()

        def begin(_):
            os.read(readable, 1)
            nursery.start_soon(work)

        for poller in made:
            poller._epoll = Watched(poller._epoll, lambda: waits.append(busy))
            await nursery.start(poller.run)
        made[0].watch(readable, Calling(begin))
        os.write(writable, b"x")
        await ended.wait()
        nursery.cancel_scope.cancel()
    for poller in made:
        poller.close()
    os.close(readable), os.close(writable)
    assert True not in waits


@pytest.mark.parametrize("is_expected", [False, True])
async def test_what_is_expected_is_waited_for_awake(is_expected):
    """It asks the kernel once after a pass and then sleeps in it; or asks until the time is over, and then sleeps."""
    asked, slept = [0], trio.Event()
    now_ns = itertools.count(0, EXPECTED_NS // 10)
    async with trio.open_nursery() as nursery:
        poller = Poller(clock_ns=now_ns.__next__)
        readable, writable = os.pipe()

        def told(_):
            os.read(readable, 1)
            asked[0] = 0
            if is_expected:
                poller.expect()

        poller._epoll = Watched(poller._epoll, slept.set, asked)
        await nursery.start(poller.run)
        poller.watch(readable, Calling(told))
        os.write(writable, b"x")
        await slept.wait()
        nursery.cancel_scope.cancel()
    poller.close()
    os.close(readable), os.close(writable)
    assert (asked[0] > 5) == is_expected


@pytest.mark.parametrize(
    ("herald", "is_expected", "together"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_what_a_herald_announces_is_served_in_its_pass(monkeypatch, herald, is_expected, together):
    """Not while another process's answer is expected: it would come later."""
    poller, now_ns = Poller(linger_s=5), 1
    poller.clock_ns = lambda: now_ns
    arriving, follower = os.pipe(), os.pipe()
    seen, passes = [], []
    poller.watch(arriving[0], Calling(lambda events: seen.append("arrived")), herald=herald)
    poller.watch(follower[0], Calling(lambda events: seen.append("followed")), EPOLLIN | EPOLLET)
    poller.at_end_of_pass(lambda: (passes.append(seen.copy()), seen.clear()))
    poller.now_ns = now_ns
    if is_expected:
        poller.expect()
        now_ns += EXPECTED_NS
    os.write(arriving[1], b"x")
    monkeypatch.setattr("shards.loop.poller.os.sched_yield", lambda: os.write(follower[1], b"x"))
    poller._serve(poller._wait())
    assert passes == [["arrived", "followed"] if together else ["arrived"]]
    poller.close()
    for fd in (*arriving, *follower):
        os.close(fd)


class Busy:
    """A watcher that has more to do for ever, or `times` times; in `called` it notes its name."""

    def __init__(self, poller, name, called, times=None):
        self.ends = socket.socketpair()
        self.fd = self.ends[0].fileno()
        self._poller, self._name, self._called, self._left = poller, name, called, times
        poller.watch(self.fd, self, EPOLLIN | EPOLLET)

    def ready(self, events):
        self._called.append(self._name)
        if self._left is not None:
            self._left -= 1
        if self._left is None or self._left > 0:
            self._poller.again(self.fd)

    def arrives(self):
        self.ends[1].send(b"x")

    def close(self):
        for end in self.ends:
            end.close()


@pytest.fixture
def busy():
    """Makes watchers of one poller; its `called` is what ran, in order."""
    told, called, made = [], [], []
    poller = Poller(stalls=Stalls(told.append, lambda: 0))

    def make(name, times=None):
        made.append(Busy(poller, name, called, times))
        return made[-1]

    make.poller, make.called, make.told = poller, called, told
    yield make
    for each in made:
        poller.forget(each.fd)
        each.close()
    poller.close()


def test_a_callback_that_is_never_done_is_called_once_a_pass_after_what_is_ready(busy):
    endless, other = busy("endless"), busy("other", times=1)
    endless.arrives()
    for _ in range(3):
        assert busy.poller.run_pass()
    assert busy.called == ["endless"] * 3
    other.arrives()
    endless.arrives()
    busy.poller.run_pass()
    assert sorted(busy.called[3:]) == ["endless", "other"], "though it is ready and asked to be called again"
    busy.called.clear()
    busy.poller.forget(endless.fd)
    assert not busy.poller.run_pass() and busy.called == []


def test_those_that_asked_are_called_in_turn_for_as_long_as_a_round_lasts(busy):
    """And what is ready comes before them in each pass."""
    now_ns = itertools.count(0, ROUND_NS // 4)
    busy.poller.clock_ns = now_ns.__next__
    several = [busy(name) for name in "abcdefgh"]
    ready = busy("ready", times=1000)
    for each in several:
        each.arrives()
    busy.poller.run_pass()
    assert sorted(busy.called) == list("abcdefgh")
    order = busy.called.copy()
    busy.called.clear()
    for _ in range(4):
        busy.called.append("|")
        ready.arrives()
        busy.poller.run_pass()
    passes = "".join(each if each != "ready" else "R" for each in busy.called).split("|")[1:]
    assert all(each.startswith("R") for each in passes)
    assert "".join(passes).replace("R", "")[:16] == "".join(order) * 2, "in turn, none is left out"
    assert max(map(len, passes)) <= 6


def test_the_time_of_one_that_is_called_again_is_that_of_its_call(busy):
    """It may serve what has come since the pass began, which is no older than what others have served by then."""
    now_ns = itertools.count(0, 1000)
    busy.poller.clock_ns = now_ns.__next__
    seen = []
    several = [busy(name, times=2) for name in "abc"]
    for each in several:
        each.ready = lambda events, fd=each.fd: (
            seen.append(busy.poller.now_ns) or len(seen) > 3 or busy.poller.again(fd)
        )
        each.arrives()
    busy.poller.run_pass()
    assert len(set(seen)) == 1, "what was ready when the pass began"
    busy.poller.run_pass()
    assert seen[3:] == sorted(set(seen[3:])) and len(seen) == 6


async def test_a_callback_that_asks_between_two_passes_wakes_the_poller(busy, nursery):
    asleep = trio.Event()
    poller = busy.poller
    poller._epoll = Watched(poller._epoll, asleep.set)
    await nursery.start(poller.run)
    waits = busy("woken", times=2)
    poller.again(waits.fd)
    await trio.testing.wait_all_tasks_blocked()
    assert busy.called == ["woken", "woken"]
    nursery.cancel_scope.cancel()


def test_a_slice_is_shorter_when_many_are_ready(busy):
    found = []
    many = [busy(str(number), times=1) for number in range(40)]
    for each in many:
        each.ready = lambda events: found.append(busy.poller.time_slice.most_ns)
    for count in (1, 5, 40):
        for each in many[:count]:
            each.arrives()
        busy.poller.run_pass()
    assert [found[0], found[1], found[-1]] == [SLICE_NS, SLICE_NS, ROUND_NS // 40]
    busy.poller.again(many[0].fd)
    for each in many[:10]:
        each.arrives()
    busy.poller.run_pass()
    assert found[-1] == ROUND_NS // 10, "one that is ready, too, counts once"
    busy.poller.again(many[11].fd)
    many[0].arrives()
    busy.poller.run_pass()
    assert found[-2:] == [SLICE_NS] * 2


def test_a_callback_that_holds_the_loop_is_counted_and_told(busy):
    told = busy.told
    now_ns = 0

    def clock_ns():
        return now_ns

    def holds(events):
        nonlocal now_ns
        now_ns += takes_ns.pop()

    busy.poller.clock_ns = clock_ns
    one = busy("one")
    one.ready = holds
    takes_ns = [STALL_NS + 1, STALL_NS + 1, STALL_NS]
    while takes_ns:
        one.arrives()
        busy.poller.run_pass()
    assert (busy.poller.stalls.count, busy.poller.stalls.longest_ns) == (2, STALL_NS + 1)
    assert told == [Stall(str(one), STALL_NS + 1)] * 2

    def hook():
        nonlocal now_ns
        now_ns += 2 * STALL_NS

    busy.poller.at_end_of_pass(hook)
    one.ready = lambda events: None
    one.arrives()
    busy.poller.run_pass()
    assert told[2:] == [Stall("the end of a pass", 2 * STALL_NS)]


async def test_a_task_that_holds_the_loop_is_told_and_the_poller_itself_is_not(busy, nursery):
    told, now_ns = busy.told, 0
    busy.poller.clock_ns = lambda: now_ns
    one = busy("one")

    def begin(events):
        nonlocal now_ns
        now_ns += STALL_NS
        nursery.start_soon(works)

    async def works():
        nonlocal now_ns
        now_ns += 2 * STALL_NS

    one.ready = begin
    await nursery.start(busy.poller.run)
    one.arrives()
    await trio.testing.wait_all_tasks_blocked()
    ((by, took_ns),) = told
    assert "works" in by and took_ns == 2 * STALL_NS and busy.poller.stalls.count == 1
    nursery.cancel_scope.cancel()
