"""The poller beside trio's tasks."""

import os

import pytest
import trio

from shards.mesh.poller import Calling, Poller


class Watched:
    """An epoll set that tells when it was waited in."""

    def __init__(self, epoll, waited):
        self._epoll = epoll
        self._waited = waited

    def poll(self, timeout, events):
        if timeout:
            self._waited()
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
