"""Delegation tokens (KIP-48) in raw frames and with Java: who logs in by one, as whom, for how long, and what a token may not do.

With CLIENTS_PEER=kafka the frames are asked of a real Kafka 4.1. The answers of the four APIs, field by field, are compared in
test_differences.py.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import users
from conftest import PEER
from harness import Cluster, running, until
from scram import TOKEN, ScramClient, login
from users import add_users, is_served, kafka_settings
from wired import Wired, wired

from broker.journal.reader import events
from broker.wire import codes
from scripts.peers import servers

SHA_256, SHA_512 = MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
CHECK_MS = 1500
LASTS_MS = 60_000
SOON_MS = 3000
SETTINGS = {
    "delegation.token.secret.key": "of-all-brokers",
    "delegation.token.expiry.time.ms": str(LASTS_MS),
    "delegation.token.expiry.check.interval.ms": str(CHECK_MS),
}
USERS = ("alice", "bob")
_KAFKA = {**SETTINGS, **kafka_settings(USERS, MECHANISMS)}
OPTIONS = ("--listener", "SASL=127.0.0.1:0,sasl", "--topic", "t:1")


def options(**more: str) -> list[str]:
    settings = {**SETTINGS, **more}
    return [*OPTIONS, *(word for key, value in settings.items() for word in ("--set", f"{key}={value}"))]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if PEER is not None:
        pytest.skip("it is Turnstile's own")
    with running(tmp_path_factory.mktemp("tokens") / "data", *options()) as cluster:
        add_users(cluster, USERS)
        yield cluster


@pytest.fixture(scope="module")
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    if PEER == "kafka":
        with servers.kafka(_KAFKA) as server:
            yield server.bootstrap
    else:
        yield request.getfixturevalue("cluster").bootstrap


class Token(NamedTuple):
    id: str
    hmac: bytes

    def client(self, mechanism: str = SHA_256, extensions: str = TOKEN) -> ScramClient:
        return ScramClient(mechanism, self.id, base64.b64encode(self.hmac).decode(), extensions)


@pytest.fixture
def alice(bootstrap: str) -> Iterator[Wired]:
    """A connection of alice, who has proven her password."""
    with wired(bootstrap) as connection:
        yield users.login(connection, "alice")


@pytest.fixture
def client(bootstrap: str) -> Iterator[Wired]:
    """A connection that nobody has logged in on."""
    with wired(bootstrap) as connection:
        yield connection


def created(alice: Wired, max_lifetime_ms: int = -1) -> Token:
    lifetime = timedelta(milliseconds=max_lifetime_ms)
    made = alice.ask("create_delegation_token", 3, renewers=(), max_lifetime=lifetime)
    assert made.error_code == codes.NONE
    return Token(made.token_id, bytes(made.hmac))


def make(alice: Wired, max_lifetime_ms: int = -1) -> Token:
    """A new token, once every broker knows it."""
    token = created(alice, max_lifetime_ms)
    until(lambda: token.id in known(alice), what="the token is known")
    return token


def known(alice: Wired) -> set[str]:
    return {each.token_id for each in alice.ask("describe_delegation_token", 3, owners=None).tokens}


def expire(alice: Wired, token: Token, in_ms: int) -> int:
    period = timedelta(milliseconds=in_ms)
    return alice.ask("expire_delegation_token", 2, hmac=token.hmac, expiry_time_period=period).error_code


def owner_of(connection: Wired) -> Any:
    """(error code, user) of who asks for a token."""
    asked = connection.ask("create_delegation_token", 3, renewers=(), max_lifetime=timedelta(milliseconds=-1))
    return asked.error_code, asked.principal_name


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_that_logs_in_by_a_token_is_its_owner_until_it_ends(alice, client, mechanism):
    error, session_ms = login(client, mechanism, make(alice).client(mechanism))
    assert (error, 0 < session_ms <= LASTS_MS) == (codes.NONE, True)
    assert owner_of(client) == (codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "alice")


@pytest.mark.parametrize("extensions", ["", "tokenauth=false", "tokenauth=1", "TOKENAUTH=true"])
def test_without_its_word_a_tokens_id_is_a_users_name(alice, client, extensions):
    assert login(client, SHA_256, make(alice).client(extensions=extensions))[0] == codes.SASL_AUTHENTICATION_FAILED


def test_the_word_is_a_boolean_whatever_its_case(alice, client):
    assert login(client, SHA_256, make(alice).client(extensions="tokenauth=TRUE"))[0] == codes.NONE


@pytest.mark.parametrize("wrong", ["hmac", "id", "a user"])
def test_a_token_is_proven_by_its_own_hmac(alice, client, wrong):
    token, other = make(alice), make(alice)
    shown = {"hmac": Token(token.id, other.hmac).client(), "id": Token("AAAAAAAAQACAAAAAAAAAAA", token.hmac).client(),
             "a user": ScramClient(SHA_256, "alice", "alice-secret", TOKEN)}[wrong]  # fmt: skip
    assert login(client, SHA_256, shown)[0] == codes.SASL_AUTHENTICATION_FAILED
    assert not is_served(client)


def test_a_deleted_token_lets_nobody_in_and_ends_no_session(alice, client, bootstrap):
    token = make(alice)
    assert login(client, SHA_256, token.client())[0] == codes.NONE
    assert expire(alice, token, -1) == codes.NONE
    until(lambda: token.id not in known(alice), what="the token is gone")
    with wired(bootstrap) as late:
        assert login(late, SHA_256, token.client())[0] == codes.SASL_AUTHENTICATION_FAILED
    assert is_served(client)


def test_a_session_ends_with_its_token_and_goes_on_if_it_was_renewed(alice, bootstrap):
    token, renewed = make(alice, SOON_MS), make(alice)
    expire(alice, renewed, SOON_MS)
    until(lambda: expires_ms(alice, renewed) <= time.time() * 1000 + SOON_MS, what="its end is known")
    with wired(bootstrap) as ends, wired(bootstrap) as goes_on:
        for connection, shown in ((ends, token), (goes_on, renewed)):
            error, session_ms = login(connection, SHA_256, shown.client())
            assert (error, session_ms <= SOON_MS) == (codes.NONE, True)
        assert alice.ask(
            "renew_delegation_token", 2, hmac=renewed.hmac, renew_period=timedelta(milliseconds=LASTS_MS)
        ).error_code == codes.NONE  # fmt: skip
        until(lambda: expires_ms(alice, renewed) > time.time() * 1000 + 10_000, what="the renewal is known")
        error, session_ms = login(goes_on, SHA_256, renewed.client())
        assert (error, session_ms > 10_000) == (codes.NONE, True)
        until(lambda: not is_served(ends), what="the session has ended")
        assert is_served(goes_on)


def expires_ms(alice: Wired, token: Token) -> int:
    described = alice.ask("describe_delegation_token", 3, owners=None).tokens
    return next(each.expiry_timestamp for each in described if each.token_id == token.id)


def test_a_token_that_has_expired_lets_in_for_no_time_and_is_deleted_at_the_next_check(alice, bootstrap):
    def let_in_by_an_expired_token() -> Token | None:
        token = created(alice, 1)
        with wired(bootstrap) as client:
            error, session_ms = login(client, SHA_256, token.client())
            if error == codes.SASL_AUTHENTICATION_FAILED:
                return None  # the check came before the login, or the token is not known yet
            assert (error, session_ms) == (codes.NONE, 0)
            assert not is_served(client)
        return token

    token = until(let_in_by_an_expired_token, what="a login by a token that has expired and is not deleted yet")
    until(lambda: token.id not in known(alice), what="the token is deleted")


def test_a_client_that_proves_again_by_a_password_has_logged_in_by_it_for_ever(alice, client, bootstrap):
    salted = hashlib.pbkdf2_hmac("sha256", b"alice-secret", b"salt", 4096)
    upsertion = alice.types("alter_user_scram_credentials", 0).ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=salted
    )
    alice.ask("alter_user_scram_credentials", 0, deletions=(), upsertions=(upsertion,))
    password = ScramClient(SHA_256, "alice", "alice-secret")

    def is_known() -> bool:
        with wired(bootstrap) as other:
            return login(other, SHA_256, password)[0] == codes.NONE

    until(is_known, what="the password is known")
    assert login(client, SHA_256, make(alice, SOON_MS).client())[0] == codes.NONE
    assert login(client, SHA_256, password) == (codes.NONE, 0)
    assert owner_of(client) == (codes.NONE, "alice")
    assert client.ask("sasl_handshake", 1, mechanism=SHA_256).error_code == codes.ILLEGAL_SASL_STATE


def test_a_session_keeps_its_user(alice, client):
    assert login(client, SHA_256, make(alice).client())[0] == codes.NONE
    assert login(client, SHA_256, ScramClient(SHA_256, "bob", "bob-secret"))[0] == codes.SASL_AUTHENTICATION_FAILED
    assert not is_served(client)


# --- Turnstile's own --------------------------------------------------------------------------------------------------


def test_tokens_outlive_the_cluster_and_are_of_use_by_their_own_secret_alone(tmp_path):
    def login_by(token: Token, cluster: Cluster) -> int:
        with wired(cluster.bootstrap) as client:
            return login(client, SHA_256, token.client())[0]

    def prove(connection: Wired) -> None:
        assert login(connection, SHA_256, ScramClient(SHA_256, "alice", "alice-secret"))[0] == codes.NONE

    secrets = ("of-all-brokers", "another")
    with running(tmp_path / "data", *options(), shards=1) as cluster:
        add_users(cluster, ["alice"])
        with wired(cluster.bootstrap) as alice:
            prove(alice)
            token = make(alice)
        cluster.kill()
    renamed = options(**{"delegation.token.secret.key": secrets[1]})
    with running(tmp_path / "data", *renamed, shards=1) as cluster, wired(cluster.bootstrap) as alice:
        prove(alice)
        (kept,) = alice.ask("describe_delegation_token", 3, owners=None).tokens
        assert (kept.token_id, expire(alice, token, -1)) == (token.id, codes.DELEGATION_TOKEN_NOT_FOUND)
        assert login_by(token, cluster) == codes.SASL_AUTHENTICATION_FAILED
        again = Token(kept.token_id, bytes(kept.hmac))
        assert login_by(again, cluster) == codes.NONE
    proofs = [each for shown in (token, again) for each in (shown.hmac, base64.b64encode(shown.hmac))]
    unseen = [*(secret.encode() for secret in secrets), *proofs, *(each.hex().encode() for each in proofs)]
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert files and not [(each, word) for each in files for word in unseen if word in each.read_bytes()]


# --- Java -------------------------------------------------------------------------------------------------------------


def _properties(path: Path, name: str, password: str, mechanism: str, more: str = "") -> str:
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{name}" password="{password}"{more};\n'
    )
    return str(path)


@pytest.mark.jars
def test_java_makes_a_token_and_its_owners_quota_holds_for_who_uses_it(cluster, jvm, tmp_path):
    own = _properties(tmp_path / "alice.properties", "alice", "alice-secret", SHA_256)

    def tokens(*words: str) -> str:
        ran = jvm("kafka-delegation-tokens", "--bootstrap-server", cluster.bootstrap, "--command-config", own, *words)
        assert ran.code == 0, ran.out + ran.err
        return ran.out

    made = tokens("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    token_id, secret, owner, requester, renewers = made.splitlines()[-1].split()[:5]
    assert (owner, requester, renewers) == ("User:alice", "User:alice", "[User:bob]")
    tokens("--renew", "--hmac", secret, "--renew-time-period", "30000")
    assert token_id in tokens("--describe", "--owner-principal", "User:alice")

    cluster.put("/v1/quotas", {"alter": [{"entity": {"user": "alice"}, "set": {"producer_byte_rate": 20_000}}]})
    by_token = _properties(tmp_path / "token.properties", token_id, secret, SHA_512, ' tokenauth="true"')
    records = ("--num-records", "600", "--record-size", "100", "--throughput", "-1")
    ran = jvm("kafka-producer-perf-test", "--topic", "t", *records, "--producer.config", by_token,
              "--producer-props", f"bootstrap.servers={cluster.bootstrap}", "batch.size=2000")  # fmt: skip
    assert "600 records sent" in ran.out, ran.out + ran.err
    consumed = jvm("kafka-console-consumer", "--bootstrap-server", cluster.bootstrap, "--consumer.config", by_token,
                   "--topic", "t", "--from-beginning", "--max-messages", "600", "--timeout-ms", "20000")  # fmt: skip
    assert "Processed a total of 600 messages" in consumed.out + consumed.err, consumed.out + consumed.err

    journaled = [*events(cluster.data_dir / "journal")]
    assert {each["user"] for each in journaled if each["kind"] == "charge"} == {"alice"}
    assert not [each for each in journaled if token_id in str(each)]

    tokens("--expire", "--hmac", secret, "--expiry-time-period", "-1")
    refused = jvm("kafka-delegation-tokens", "--bootstrap-server", cluster.bootstrap, "--command-config", by_token,
                  "--describe")  # fmt: skip
    assert refused.code == 1 and "invalid credentials" in refused.err
