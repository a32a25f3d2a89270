"""SASL from the client's side: an exchange by the RFC's rules, and everything a wrong client may say."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.serve.sasl import SCRAM, AuthenticationFailed, Credential, mechanism_of

USERS = {"alice": {name: Credential.of_password(name, "secret").stored() for name in SCRAM}}


def scram(mechanism, user, password):
    """A client of RFC 5802; returns the server's exchange, or raises what it raised."""
    digest = SCRAM[mechanism]
    exchange = mechanism_of(mechanism, USERS.get)
    bare = f"n={user},r=clientnonce"
    first = exchange.answer(f"n,,{bare}".encode()).decode()
    fields = dict(part.split("=", 1) for part in first.split(","))
    salt, rounds = base64.b64decode(fields["s"]), int(fields["i"])
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, rounds)
    client_key = hmac.digest(salted, b"Client Key", digest)
    without_proof = f"c=biws,r={fields['r']}"
    said = f"{bare},{first},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), said, digest)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    final = exchange.answer(f"{without_proof},p={proof}".encode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), said, digest)
    assert final == b"v=" + base64.b64encode(expected), "the server proves that it knows the credential"
    return exchange


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_names_the_user_who_knows_the_password(mechanism):
    assert scram(mechanism, "alice", "secret").user == "alice"


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "secret")])
def test_scram_says_the_same_of_a_wrong_password_and_of_nobody(mechanism, user, password):
    with pytest.raises(AuthenticationFailed, match="invalid credentials"):
        scram(mechanism, user, password)


def test_plain_is_checked_against_the_same_credential():
    exchange = mechanism_of("PLAIN", USERS.get)
    assert exchange.answer(b"\0alice\0secret") == b"" and exchange.user == "alice"


@pytest.mark.parametrize(
    "token", [b"\0alice\0wrong", b"\0nobody\0secret", b"alice", b"\0\0", b"bob\0alice\0secret", b"\xff\0a\0b"]
)
def test_plain_refuses(token):
    exchange = mechanism_of("PLAIN", USERS.get)
    with pytest.raises(AuthenticationFailed):
        exchange.answer(token)
    assert exchange.user is None


@given(
    st.lists(
        st.binary(max_size=60) | st.text(alphabet="nryc=,ap1+/", max_size=40).map(str.encode), min_size=1, max_size=3
    )
)
def test_whatever_is_said_only_a_refusal_comes_out(tokens):
    exchange = mechanism_of("SCRAM-SHA-256", USERS.get)
    try:
        for token in tokens:
            exchange.answer(token)
    except AuthenticationFailed:
        pass
    assert exchange.user is None


def test_nothing_stored_is_the_password():
    assert (
        "secret" not in str(USERS)
        and Credential.parse(USERS["alice"]["SCRAM-SHA-256"]).stored() == USERS["alice"]["SCRAM-SHA-256"]
    )
