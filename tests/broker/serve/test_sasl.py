"""SASL from the client's side: an exchange by the RFC's rules, and everything a wrong client may say."""

import base64
import hashlib

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from scram import ScramClient

from broker.serve.credential_shapes import CredentialShapes
from broker.serve.key_derivation import MOST, KeyDerivation
from broker.serve.sasl import SCRAM, AuthenticationFailed, Credential, KeyRequest, TokenLogin, Users, mechanism_of
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred, Spawn

STORED = {"alice": {name: Credential.of_password(name, "secret").stored() for name in SCRAM}}
USERS = Users(STORED.get, b"the cluster's own")


TOKENS = {"id-1": TokenLogin("alice", b"proof", 5)}
WITH_TOKENS = Users(STORED.get, b"the cluster's own", token=TOKENS.get)


def scram(mechanism, user, password, extensions="", users=USERS):
    """The server's exchange with a client of RFC 5802, or raises what it raised."""
    exchange = mechanism_of(mechanism, users)
    client = ScramClient(mechanism, user, password, extensions)
    first = exchange.answer(client.first())
    if isinstance(first, KeyRequest):
        first = exchange.derived(hashlib.pbkdf2_hmac(*first))
    client.check(exchange.answer(client.final(first)))
    return exchange


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_names_the_user_who_knows_the_password(mechanism):
    assert scram(mechanism, "alice", "secret").user == "alice"


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "secret")])
def test_scram_says_the_same_of_a_wrong_password_and_of_nobody(mechanism, user, password):
    with pytest.raises(AuthenticationFailed, match="invalid credentials"):
        scram(mechanism, user, password)


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_names_the_owner_of_a_token_that_is_proven(mechanism):
    exchange = scram(mechanism, "id-1", "proof", "tokenauth=true", WITH_TOKENS)
    assert (exchange.user, exchange.token) == ("alice", TOKENS["id-1"])
    assert scram(mechanism, "alice", "secret", users=WITH_TOKENS).token is None


@pytest.mark.parametrize(
    ("user", "password", "extensions"),
    [("id-1", "guess", "tokenauth=true"), ("id-2", "proof", "tokenauth=true"), ("alice", "secret", "tokenauth=true"),
     ("id-1", "proof", ""), ("id-1", "proof", "tokenauth=yes"), ("id-1", "proof", "tokenauth=true,tokenauth=no")],
)  # fmt: skip
def test_scram_refuses_a_token_that_is_not_proven(user, password, extensions):
    with pytest.raises(AuthenticationFailed, match="invalid credentials"):
        scram("SCRAM-SHA-256", user, password, extensions, WITH_TOKENS)


def test_a_tokens_key_is_derived_from_the_same_each_time():
    first, again = (mechanism_of("SCRAM-SHA-512", WITH_TOKENS).answer(b"n,,n=id-1,r=x,tokenauth=true") for _ in "ab")
    assert first == again and first.iterations == 4096


def plain(token):
    """A client of RFC 4616; the key is derived at once."""
    exchange = mechanism_of("PLAIN", USERS)
    request = exchange.answer(token)
    assert exchange.user is None
    assert exchange.derived(hashlib.pbkdf2_hmac(*request)) == b""
    return exchange


def test_plain_is_checked_against_the_same_credential():
    assert plain(b"\0alice\0secret").user == "alice"


@pytest.mark.parametrize(
    "token", [b"\0alice\0wrong", b"\0nobody\0secret", b"alice", b"\0\0", b"bob\0alice\0secret", b"\xff\0a\0b"]
)
def test_plain_refuses_malformed_tokens(token):
    with pytest.raises(AuthenticationFailed):
        plain(token)


@given(
    st.lists(
        st.binary(max_size=60) | st.text(alphabet="nryc=,ap1+/", max_size=40).map(str.encode), min_size=1, max_size=3
    )
)
def test_whatever_is_said_only_a_refusal_comes_out(tokens):
    exchange = mechanism_of("SCRAM-SHA-256", USERS)
    try:
        for token in tokens:
            exchange.answer(token)
    except AuthenticationFailed:
        pass
    assert exchange.user is None


def challenge(user, mechanism="SCRAM-SHA-256", users=USERS):
    """Salt and iterations, which every client may ask for."""
    first = mechanism_of(mechanism, users).answer(f"n,,n={user},r=clientnonce".encode()).decode()
    fields = dict(part.split("=", 1) for part in first.split(","))
    return base64.b64decode(fields["s"]), int(fields["i"])


def test_the_challenge_of_an_unknown_user_tells_it_from_no_other():
    """The same each time and on every shard, another one for each user and mechanism, and of the usual form."""
    of_another_shard = Users({}.get, USERS.secret)
    assert challenge("mallory") == challenge("mallory") == challenge("mallory", users=of_another_shard)
    asked = [challenge(user, mechanism) for user in ("mallory", "trent") for mechanism in SCRAM]
    assert len(set(asked)) == 4
    for salt, iterations in (*asked, challenge("alice")):
        assert (len(salt), iterations) == (26, 4096) and set(salt) <= set(b"0123456789abcdefghijklmnopqrstuv")
    assert challenge("mallory", users=Users({}.get, b"another cluster's")) != challenge("mallory")


def kept(salt, iterations):
    return {name: Credential.of_salted(name, b"x" * 32, salt, iterations).stored() for name in SCRAM}


def test_the_challenge_of_an_unknown_user_has_the_shape_of_a_kept_one():
    image = ClusterImage()
    shapes = CredentialShapes(image)
    users = Users(image.users.get, USERS.secret, shapes.of)
    assert len(challenge("mallory", users=users)[0]) == 26
    image.apply(1, [("user", "odd", kept(bytes(range(200)) * 2, 8192))])
    salt, iterations = challenge("mallory", users=users)
    assert (len(salt), iterations) == (400, 8192) and salt == challenge("mallory", users=users)[0]
    image.apply(2, [("user", "kafkas", kept(b"0" * 26, 4096))])
    asked = [challenge(f"unknown-{n}", users=users) for n in range(100)]
    assert {(len(salt), iterations) for salt, iterations in asked} == {(400, 8192), (26, 4096)}
    assert len(set(asked)) == 100
    image.apply(3, [("user", "odd", None)])
    assert {len(challenge(f"unknown-{n}", users=users)[0]) for n in range(100)} == {26}


def request_of(password):
    return KeyRequest("sha256", password.encode(), b"salt", 4096)


async def test_a_key_is_derived_away_from_the_loop_and_kept_only_for_a_right_password(nursery):
    keys = KeyDerivation(Spawn(nursery.start_soon))
    wrong, right = keys.derive(request_of("wrong")), keys.derive(request_of("right"))
    assert isinstance(wrong, Deferred) and isinstance(right, Deferred) and not right.resolved
    with trio.fail_after(60):
        assert await right == hashlib.pbkdf2_hmac(*request_of("right"))
        await wrong
    keys.remember(request_of("right"), right.result())
    assert keys.derive(request_of("right")) == right.result()
    assert isinstance(keys.derive(request_of("wrong")), Deferred)


async def test_an_abandoned_derivation_holds_up_no_other(nursery):
    keys = KeyDerivation(Spawn(nursery.start_soon))
    for number in range(50):
        keys.derive(request_of(f"guess {number}")).cancel()
    with trio.fail_after(60):
        await keys.derive(request_of("patient"))


async def test_only_the_latest_keys_are_kept(nursery):
    keys = KeyDerivation(Spawn(nursery.start_soon))
    for number in range(MOST + 1):
        keys.remember(request_of(f"password {number}"), b"key")
    assert keys.derive(request_of("password 1")) == b"key"
    first = keys.derive(request_of("password 0"))
    assert isinstance(first, Deferred)
    first.cancel()


def test_nothing_stored_is_the_password():
    assert (
        "secret" not in str(STORED)
        and Credential.parse(STORED["alice"]["SCRAM-SHA-256"]).stored() == STORED["alice"]["SCRAM-SHA-256"]
    )


def test_a_client_that_sends_its_nonce_twice_is_told_which_clients_do():
    """librdkafka before 2.6.1: its own nonce, and then the whole of what the server sent."""
    scram = mechanism_of("SCRAM-SHA-256", USERS)
    nonce = scram.answer(b"n,,n=alice,r=mine").decode().split(",")[0].removeprefix("r=")
    with pytest.raises(AuthenticationFailed, match=r"librdkafka before 2\.6\.1"):
        scram.answer(f"c=biws,r=mine{nonce},p=".encode())
    scram = mechanism_of("SCRAM-SHA-256", USERS)
    scram.answer(b"n,,n=alice,r=mine")
    with pytest.raises(AuthenticationFailed, match=r"Invalid client nonce in the final client message\.$"):
        scram.answer(b"c=biws,r=another,p=")
