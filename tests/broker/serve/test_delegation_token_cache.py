"""Tokens with their HMACs, which follow the image."""

import base64
import hmac

from broker.serve.delegation_token_cache import DelegationTokenCache
from broker.serve.sasl import TokenLogin
from shards.config.image import ClusterImage

RECORD = {
    "owner": ["User", "alice"],
    "requester": ["User", "bob"],
    "renewers": [],
    "issued_ms": 1,
    "expires_ms": 2,
    "max_ms": 3,
}
PROOF = hmac.digest(b"secret", b"one", "sha512")


def test_tokens_follow_the_image():
    image = ClusterImage()
    cache = DelegationTokenCache(image, b"secret")
    assert ([*cache.tokens()], cache.id_of(PROOF), cache.login("one")) == ([], None, None)
    image.apply(1, [("token", "one", RECORD), ("token", "two", RECORD)])
    assert cache.id_of(PROOF) == "one"
    assert [(token_id, token.owner) for token_id, token, _ in cache.tokens()] == [
        (each, ("User", "alice")) for each in ("one", "two")
    ]
    assert next(cache.tokens())[2] == PROOF
    assert cache.login("one") == TokenLogin("alice", base64.b64encode(PROOF), 2)
    image.apply(2, [("token", "one", {**RECORD, "expires_ms": 3})])
    assert cache.login("one") == TokenLogin("alice", base64.b64encode(PROOF), 3)
    image.apply(3, [("token", "one", None)])
    assert (cache.id_of(PROOF), cache.login("one"), [each[0] for each in cache.tokens()]) == (None, None, ["two"])
    image.apply(4, [], whole=True)
    assert [*cache.tokens()] == []


def test_without_a_secret_there_are_none():
    image = ClusterImage()
    image.apply(1, [("token", "one", RECORD)])
    cache = DelegationTokenCache(image, b"")
    assert not cache.is_enabled and cache.login("one") is None
    assert DelegationTokenCache(image, b"another").id_of(PROOF) is None
