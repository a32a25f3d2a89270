"""The poller beside trio's tasks."""

import itertools
import os

import pytest
import trio

from shards.mesh.poller import EPOLLET, EPOLLIN, EXPECTED_NS, Calling, Poller


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
    """P4, for tasks of trio's current batch, too; nor do two pollers wait for each other."""
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
    monkeypatch.setattr("shards.mesh.poller.os.sched_yield", lambda: os.write(follower[1], b"x"))
    poller._serve(poller._wait())
    assert passes == [["arrived", "followed"] if together else ["arrived"]]
    poller.close()
    for fd in (*arriving, *follower):
        os.close(fd)
