"""Delegation tokens: of a client that has not logged in, and of alice, who has. Conversations delete the tokens that she may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from differential.table import about
from differential.talk import Talk

from broker.wire import codes

USER, TOKEN = 7, 6
DESCRIBE, CREATE_TOKENS, DESCRIBE_TOKENS = 8, 13, 14
LONGEST = 2**63 - 1


def _principal(name: str, kind: str = "User") -> dict[str, str]:
    return {"principal_type": kind, "principal_name": name}


def _owner(name: str | None, kind: str | None = "User") -> dict[str, Any]:
    return {"owner_principal_type": kind, "owner_principal_name": name}


ALICE, BOB, CAROL = _principal("alice"), _principal("bob"), _principal("carol")
WRONG = {"a renewer that is no user": {"renewers": [CAROL, _principal("g", "Group")]}, "another owner": _owner("bob"),
         "both": {**_owner("bob"), "renewers": [_principal("g", "")]}, "an owner that is no user": _owner("alice", "Group"),
         "an owner without a type": _owner("bob", None), "an owner of no type": _owner("bob", "")}  # fmt: skip
RIGHT: dict[str, dict[str, Any]] = {
    "well": {}, "a renewer": {"renewers": [CAROL]}, "the same renewer twice": {"renewers": [CAROL, CAROL]},
    "a renewer without a name": {"renewers": [_principal("")]}, "herself": _owner("alice"), "no owner": _owner(None, None),
    "an owner without a name": _owner("", "Group"),
    **{f"for {ms} ms": {"max_lifetime": ms} for ms in (0, -1, -5, -LONGEST - 1, 1000, LONGEST)},
}  # fmt: skip


def _make(talk: Talk, **fields: Any) -> bytes:
    """The HMAC of a new token, once the broker knows it."""
    made = talk.aside("create_delegation_token", 3, **{"renewers": [], "max_lifetime": -1, **fields})
    talk.until(lambda: made.hmac in _known(talk), "the token is there")
    return bytes(made.hmac)


def _known(talk: Talk) -> set[bytes]:
    return {bytes(each.hmac) for each in talk.aside("describe_delegation_token", 3, owners=None).tokens}


def _end(talk: Talk) -> None:
    """Deletes what alice may delete. Kafka's controller may not know a token yet that it has made."""

    def deleted() -> bool:
        asked = (talk.aside("expire_delegation_token", 2, hmac=each, expiry_time_period=-1) for each in _known(talk))
        return {each.error_code for each in asked} <= {codes.DELEGATION_TOKEN_OWNER_MISMATCH}

    talk.until(deleted, "her tokens are gone")


@contextmanager
def _allowed(talk: Talk, resource: int, name: str, operation: int) -> Iterator[None]:
    """Alice may do that, as far as the broker knows; and not any more afterwards."""
    acl = {"resource_type": resource, "resource_name": name, "resource_pattern_type": 3, "principal": "User:alice",
           "host": "*", "operation": operation, "permission_type": 3}  # fmt: skip
    of_alice = {"resource_type_filter": resource, "resource_name_filter": name, "pattern_type_filter": 3,
                "principal_filter": "User:alice", "host_filter": None, "operation": 1, "permission_type": 1}  # fmt: skip

    def told() -> bool:
        return bool(talk.quietly("describe_acls", 3, **of_alice).resources)

    talk.quietly("create_acls", 3, creations=[acl])
    talk.until(told, "the ACL is there")
    yield
    talk.quietly("delete_acls", 3, filters=[of_alice])
    talk.until(lambda: not told(), "the ACL is gone")


@about("create_delegation_token")
def made_tokens(talk: Talk) -> None:
    talk.ask("well", renewers=[], max_lifetime=-1)
    talk.ask("a renewer", renewers=[CAROL], max_lifetime=1000)
    for label, fields in WRONG.items():
        talk.ask(label, **{"renewers": [], "max_lifetime": -1, **fields})


@about("renew_delegation_token")
def renewed_tokens(talk: Talk) -> None:
    talk.ask("unknown", hmac=b"x", renew_period=1000)


@about("expire_delegation_token")
def expired_tokens(talk: Talk) -> None:
    talk.ask("unknown", hmac=b"x", expiry_time_period=1000)


@about("describe_delegation_token")
def described_tokens(talk: Talk) -> None:
    talk.ask("all", owners=None)
    talk.ask("of one", owners=[CAROL])
    talk.ask("nothing", owners=[])


@about("create_delegation_token", by_user=True)
def tokens_made(talk: Talk) -> None:
    for label, fields in {**RIGHT, **WRONG}.items():
        talk.ask(label, **{"renewers": [], "max_lifetime": -1, **fields})
    with _allowed(talk, USER, "User:bob", CREATE_TOKENS):
        talk.ask("another owner, whose tokens she may make", renewers=[BOB], max_lifetime=-1, **_owner("bob"))
        talk.ask("one of another kind", renewers=[], max_lifetime=-1, **_owner("bob", "Group"))
    _end(talk)


@about("renew_delegation_token", by_user=True)
def tokens_renewed(talk: Talk) -> None:
    token = _make(talk, renewers=[CAROL])
    for ms in (0, -1, -LONGEST - 1, 1000, LONGEST):
        talk.ask(f"for {ms} ms", hmac=token, renew_period=ms)
    for label, wrong in (("nothing", b""), ("unknown", b"x" * 64), ("longer", token + b"x"), ("a part", token[:-1])):
        talk.ask(label, hmac=wrong, renew_period=1000)
    with _allowed(talk, USER, "User:bob", CREATE_TOKENS):
        bobs = _make(talk, **_owner("bob"))
        talk.ask("one that she requested for another", hmac=bobs, renew_period=1000)
        hers = _make(talk, **_owner("bob"), renewers=[ALICE])
        talk.ask("one that she may renew", hmac=hers, renew_period=1000)
    talk.ask("for a moment", hmac=token, renew_period=1)
    talk.until(lambda: talk.aside("renew_delegation_token", 2, hmac=token, renew_period=1).error_code, "it has expired")
    talk.ask("one that has expired", hmac=token, renew_period=1000)
    talk.ask("for a moment, hers", hmac=hers, renew_period=1)
    _end(talk)


@about("expire_delegation_token", by_user=True)
def tokens_expired(talk: Talk) -> None:
    token = _make(talk, renewers=[CAROL])
    for ms in (1000, LONGEST, 60_000):
        talk.ask(f"in {ms} ms", hmac=token, expiry_time_period=ms)
    talk.ask("unknown", hmac=b"x" * 64, expiry_time_period=-1)
    with _allowed(talk, USER, "User:bob", CREATE_TOKENS):
        bobs = _make(talk, **_owner("bob"))
        talk.ask("one that she requested for another", hmac=bobs, expiry_time_period=-1)
        hers = _make(talk, **_owner("bob"), renewers=[ALICE])
        talk.ask("one that she may renew", hmac=hers, expiry_time_period=-1)
    talk.ask("at once", hmac=token, expiry_time_period=0)
    talk.until(
        lambda: talk.aside("expire_delegation_token", 2, hmac=token, expiry_time_period=0).error_code, "it has expired"
    )
    talk.ask("one that has expired", hmac=token, expiry_time_period=1000)
    talk.ask("now", hmac=token, expiry_time_period=-LONGEST - 1)
    talk.until(lambda: token not in _known(talk), "it is gone")
    talk.ask("one that is gone", hmac=token, expiry_time_period=-1)
    _end(talk)


@about("describe_delegation_token", by_user=True)
def tokens_described(talk: Talk) -> None:
    owner, renewer = _principal(talk.named("owner")), _principal(talk.named("renewer"))
    with _allowed(talk, USER, f"User:{owner['principal_name']}", CREATE_TOKENS):
        _make(talk, renewers=[renewer, BOB])
        _make(talk, **_owner(owner["principal_name"]), renewers=[ALICE])
    for label, owners in {
        "by their owner": [owner], "by who may renew them": [renewer], "by both": [owner, renewer],
        "nobody's": [_principal("x")], "of another kind": [_principal(owner["principal_name"], "Group")], "of none": [],
    }.items():  # fmt: skip
        talk.ask(label, owners=owners)
    _end(talk)
    talk.ask("deleted", owners=[owner, renewer])
