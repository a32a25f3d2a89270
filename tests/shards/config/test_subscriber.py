"""A version is enforced, and told, with the delta that made it."""

from collections.abc import Callable

import trio

from shards.config.image import ClusterImage
from shards.config.subscriber import AppliedVersion, Subscriber


async def test_a_version_overtaken_while_it_is_enforced_is_told_with_its_own_delta(nursery):
    pending: list[tuple[AppliedVersion, Callable[[], None]]] = []
    subscriber = Subscriber(ClusterImage(), lambda applied, done: pending.append((applied, done)))
    first, second = [["setting", "/kafka_connections_max", "5"]], [["setting", "/kafka_connections_max", "7"]]
    nursery.start_soon(subscriber.apply, None, 1, first, True, False)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(subscriber.apply, None, 2, second, False, False)
    await trio.testing.wait_all_tasks_blocked()
    assert [(applied.version, applied.delta, applied.whole) for applied, _ in pending] == [
        (1, first, True),
        (2, second, False),
    ]
    assert not subscriber.ready.is_set()
    for _, done in pending:
        done()
    await subscriber.ready.wait()


async def test_parts_of_a_push_that_was_given_up_are_no_part_of_the_next():
    subscriber = Subscriber(ClusterImage(), lambda applied, done: done())
    await subscriber.apply(None, 3, [["setting", "/kafka_connections_max", "5"]], True, True)
    assert await subscriber.apply(None, 4, [["setting", "/max.connections", "7"]], True, False) == 4
    assert subscriber.image.dynamic == {"/max.connections": "7"}
