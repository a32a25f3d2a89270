"""A version is enforced and acknowledged with the delta that made it."""

from collections.abc import Callable

import trio

from shards.config.image import ClusterImage
from shards.config.subscriber import AppliedVersion, Subscriber


async def test_a_version_overtaken_while_it_is_enforced_is_answered_with_its_own_delta(nursery):
    answered: list[int] = []
    pending: list[tuple[AppliedVersion, Callable[[], None]]] = []
    subscriber = Subscriber(ClusterImage(), lambda applied, done: pending.append((applied, done)))
    first, second = [["setting", "/kafka_connections_max", "5"]], [["setting", "/kafka_connections_max", "7"]]

    async def apply(version: int, delta: list[list[str]], whole: bool) -> None:
        answered.append(await subscriber.apply(None, version, delta, whole, False))

    nursery.start_soon(apply, 1, first, True)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(apply, 2, second, False)
    await trio.testing.wait_all_tasks_blocked()
    assert [(applied.version, applied.delta, applied.whole) for applied, _ in pending] == [
        (1, first, True),
        (2, second, False),
    ]
    for version, (_, done) in enumerate(pending, 1):
        assert answered == list(range(1, version))
        done()
        await trio.testing.wait_all_tasks_blocked()
    assert answered == [1, 2]


async def test_parts_of_a_push_that_was_given_up_are_no_part_of_the_next():
    subscriber = Subscriber(ClusterImage(), lambda applied, done: done())
    await subscriber.apply(None, 3, [["setting", "/kafka_connections_max", "5"]], True, True)
    assert await subscriber.apply(None, 4, [["setting", "/max.connections", "7"]], True, False) == 4
    assert subscriber.image.dynamic == {"/max.connections": "7"}
