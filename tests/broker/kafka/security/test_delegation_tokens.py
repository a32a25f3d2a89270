"""Requests about delegation tokens, as far as no coordinator is asked; the rest is in tests/clients/test_delegation_tokens.py."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from broker.kafka.security.access import SETTING, Access
from broker.kafka.security.acl import Operation, ResourceType
from broker.kafka.security.delegation_tokens import routes
from broker.serve.call import Call
from broker.serve.channel import SASL, TOKEN
from broker.serve.delegation_token_cache import DelegationTokenCache
from broker.wire import apis, codes, wire
from shards.config.acl_changes import key_of_acl
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred, Spawn
from shards.loop.turns import Turns

ASKED: dict[int, dict[str, Any]] = {
    38: {"owner_principal_type": None, "owner_principal_name": None, "renewers": (), "max_lifetime": timedelta(0)},
    39: {"hmac": b"x", "renew_period": timedelta(0)},
    40: {"hmac": b"x", "expiry_time_period": timedelta(0)},
    41: {"owners": None},
}


class NoCoordinator:
    """Fails the test that asks it."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"asked for {name}")


async def ask(
    nursery: trio.Nursery,
    api: int,
    logged_in_by: str | None,
    secret: bytes = b"secret",
    delta: Sequence[Any] = (),
    **fields: Any,
) -> Any:
    """The answer to alice, where the cluster is what `delta` says."""
    image = ClusterImage()
    image.apply(1, delta)
    access = Access(image)
    access.image_changed({"acl"})
    turns = Turns(Spawn(nursery.start_soon))
    (route,) = [
        each
        for each in routes(DelegationTokenCache(image, secret), access, NoCoordinator(), turns)
        if each.api_key == api
    ]
    channel: Any = SimpleNamespace(serving=SimpleNamespace(logged_in_by=logged_in_by))
    version = apis.APIS[api].max_version
    answer = route.function(
        wire.request_types(api, version).top(**{**ASKED[api], **fields}),
        Call(api, version, user="alice", channel=channel),
    )
    return await answer if isinstance(answer, Deferred) else answer


@pytest.mark.parametrize("api", ASKED)
@pytest.mark.parametrize("logged_in_by", [None, TOKEN])
async def test_only_a_client_that_has_logged_in_otherwise_may_ask(
    nursery: trio.Nursery, api: int, logged_in_by: str | None
) -> None:
    assert (await ask(nursery, api, logged_in_by)).error_code == codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize("api", ASKED)
async def test_without_a_secret_they_are_disabled(nursery: trio.Nursery, api: int) -> None:
    answered = await ask(nursery, api, SASL, secret=b"")
    assert answered.error_code == codes.DELEGATION_TOKEN_AUTH_DISABLED
    assert getattr(answered, "expiry_timestamp", 0) == 0, "as Kafka's controller, not -1"
    assert getattr(answered, "hmac", b"") == b""


async def test_long_names_reach_no_coordinator(nursery: trio.Nursery) -> None:
    types = wire.request_types(38, 3)
    many = (types.CreatableRenewers(principal_type="User", principal_name=""),) * 1000
    assert (await ask(nursery, 38, SASL, renewers=many)).error_code == codes.POLICY_VIOLATION
    long = {"owner_principal_type": "User", "owner_principal_name": "x" * 5000}
    assert (await ask(nursery, 38, SASL, **long)).error_code == codes.POLICY_VIOLATION


@pytest.mark.parametrize("api", [39, 40])
async def test_an_hmac_of_no_token_asks_no_coordinator(nursery: trio.Nursery, api: int) -> None:
    assert (await ask(nursery, api, SASL)).error_code == codes.DELEGATION_TOKEN_NOT_FOUND


AUTHORIZER = ("static", f"/{SETTING}", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
BOBS = [
    ("token", token_id, {"owner": ["User", "bob"], "requester": ["User", "bob"], "renewers": [], "issued_ms": 1,
                         "expires_ms": 2, "max_ms": 3})
    for token_id in ("0", "1")
]  # fmt: skip


@pytest.mark.parametrize(
    ("resource", "name", "operation", "told"),
    [(ResourceType.DELEGATION_TOKEN, "0", Operation.DESCRIBE, ["0"]),
     (ResourceType.DELEGATION_TOKEN, "1", Operation.READ, ["1"]),
     (ResourceType.DELEGATION_TOKEN, "*", Operation.DESCRIBE, ["0", "1"]),
     (ResourceType.USER, "User:bob", Operation.DESCRIBE_TOKENS, ["0", "1"]),
     (ResourceType.USER, "*", Operation.ALL, ["0", "1"]),
     (ResourceType.USER, "User:bob", Operation.DESCRIBE, []), (ResourceType.USER, "bob", Operation.DESCRIBE_TOKENS, []),
     (ResourceType.USER, "User:bob", Operation.CREATE_TOKENS, [])],
)  # fmt: skip
async def test_an_acl_tells_of_others_tokens(
    nursery: trio.Nursery, resource: int, name: str, operation: int, told: list[str]
) -> None:
    """As Kafka 4.1 answers the same."""
    acl = ("acl", key_of_acl([int(resource), name, 3, "User:alice", "*", int(operation), 3]), True)
    answered = await ask(nursery, 41, SASL, delta=[AUTHORIZER, acl, *BOBS])
    assert [each.token_id for each in answered.tokens] == told
    without = await ask(nursery, 41, SASL, delta=BOBS)
    assert len(without.tokens) == 2, "where there is no authorizer everyone is told of all"
