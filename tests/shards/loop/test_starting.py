"""Tasks in a nursery that ends before those that start them."""

import trio
import trio.testing

from shards.loop.deferred import Spawn
from shards.loop.starting import starting_in


async def test_a_task_starts_until_the_nursery_is_cancelled_and_is_dropped_from_then_on():
    ran = []

    async def task(name):
        ran.append(name)

    async with trio.open_nursery() as nursery:
        start_soon = starting_in(nursery)
        start_soon(task, "before")
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        start_soon(task, "cancelled")
    start_soon(task, "closed")
    Spawn(start_soon)(task("a coroutine"))  # closed as well: one that is never awaited is a warning, which fails here
    assert ran == ["before"]
