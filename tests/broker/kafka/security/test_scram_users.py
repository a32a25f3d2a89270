"""SCRAM credentials over the wire: what is refused, and that a refused user's change reaches no coordinator."""

from __future__ import annotations

from typing import Any

import trio

from broker.kafka.security.scram_users import routes
from broker.serve.call import Call
from broker.serve.sasl import MAX_SALT_BYTES
from broker.wire import codes, wire
from shards.config.image import ClusterImage
from shards.loop.deferred import Spawn


class NoCoordinator:
    """Fails the test that asks it."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"asked for {name}")


async def alter(nursery: trio.Nursery, **upsertion: Any) -> tuple[int, str | None]:
    """(code, message) of one upsertion."""
    asked = {"name": "alice", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"p" * 32}
    types = wire.request_types(51, 0)
    request = types.AlterUserScramCredentialsRequest(
        deletions=(), upsertions=(types.ScramCredentialUpsertion(**{**asked, **upsertion}),)
    )
    _, route = routes(ClusterImage(), NoCoordinator(), Spawn(nursery.start_soon))
    answer = await route.function(request, Call(51, 0))
    (result,) = answer.results
    return result.error_code, result.error_message


async def test_a_salt_that_no_tool_makes_is_refused(nursery: trio.Nursery) -> None:
    code, message = await alter(nursery, salt=bytes(MAX_SALT_BYTES + 1))
    assert (code, message) == (codes.UNACCEPTABLE_CREDENTIAL, "Salt must not be longer than 1024 bytes")


async def test_iterations_have_bounds(nursery: trio.Nursery) -> None:
    assert await alter(nursery, iterations=4095) == (codes.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    assert await alter(nursery, iterations=16385) == (codes.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
