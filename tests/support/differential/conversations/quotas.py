"""DescribeClientQuotas, AlterClientQuotas, DescribeUserScramCredentials, AlterUserScramCredentials."""

from __future__ import annotations

from typing import Any

from differential.table import about
from differential.talk import Talk

EXACT, DEFAULT, ANY = range(3)


def _entry(entity: list[tuple[str, str | None]], *ops: tuple[str, float | None]) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
        "ops": [{"key": key, "value": 0.0 if value is None else value, "remove": value is None} for key, value in ops],
    }


@about("alter_client_quotas")
def altered(talk: Talk) -> None:
    user = talk.named("u")

    def alter(label: str, *entries: dict[str, Any], dry: bool = False) -> None:
        talk.ask(label, entries=entries, validate_only=dry)

    alter("dry", _entry([("user", user)], ("producer_byte_rate", 1e6)), dry=True)
    alter("set", _entry([("user", user)], ("producer_byte_rate", 1e6)))
    alter("remove", _entry([("user", user)], ("producer_byte_rate", None)))
    alter("remove again", _entry([("user", user)], ("producer_byte_rate", None)))
    for key in ("nonsense", "", "connection_creation_rate", "request_percentage", "controller_mutation_rate"):
        alter(f"{key!r}", _entry([("user", user)], (key, 10.0)), dry=True)
    for value in (0.0, -1.0, 0.5, 1e300, float("inf"), float("nan")):
        alter(f"{value}", _entry([("user", user)], ("producer_byte_rate", value)), dry=True)
        alter(f"request_percentage {value}", _entry([("user", user)], ("request_percentage", value)), dry=True)
    for label, entity in {
        "no entity": [],
        "an unknown kind": [("zone", "x")],
        "no kind": [("", "x")],
        "an empty user": [("user", "")],
        "user and client": [("user", user), ("client-id", "c")],
        "user twice": [("user", user), ("user", "v")],
        "user and address": [("user", user), ("ip", "1.2.3.4")],
        "the default client": [("client-id", None)],
    }.items():
        alter(label, _entry(entity, ("producer_byte_rate", 1e6)), dry=True)
    for ip in ("1.2.3.4", "::1", "nonsense.invalid", "1.2.3", "", None):
        alter(f"address {ip}", _entry([("ip", ip)], ("connection_creation_rate", 5.0)), dry=True)
    alter("half an address's rate", _entry([("ip", "1.2.3.4")], ("connection_creation_rate", 0.5)), dry=True)
    alter("another key of an address", _entry([("ip", "1.2.3.4")], ("producer_byte_rate", 5.0)), dry=True)
    alter("a key twice", _entry([("user", user)], ("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)), dry=True)
    alter("nothing to do", _entry([("user", user)]), dry=True)
    one = _entry([("user", user)], ("producer_byte_rate", 1.0))
    alter("the same twice", one, one, dry=True)
    alter("one of two is wrong", one, _entry([("user", "x")], ("nonsense", 1.0)), dry=True)
    alter("nothing")


@about("describe_client_quotas")
def described(talk: Talk) -> None:
    user, client = talk.named("u"), talk.named("c")
    for entity in ([("user", user)], [("user", user), ("client-id", client)], [("client-id", client)]):
        entry = _entry([*entity], ("producer_byte_rate", 1e6), ("consumer_byte_rate", 2e6))
        talk.quietly("alter_client_quotas", 1, entries=[entry])
    wanted = [{"entity_type": "client-id", "match_type": EXACT, "match": client}]
    talk.until(
        lambda: len(talk.quietly("describe_client_quotas", 1, components=wanted, strict=False).entries or ()) == 2,
        "the quotas are there",
    )

    def describe(label: str, *components: tuple[str, int, str | None], strict: bool = False) -> None:
        asked = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]
        talk.ask(label, components=asked, strict=strict)

    describe("a user", ("user", EXACT, user))
    describe("a user, strictly", ("user", EXACT, user), strict=True)
    describe("a client, strictly", ("client-id", EXACT, client), strict=True)
    describe("user and client", ("user", EXACT, user), ("client-id", EXACT, client))
    describe("user and any client", ("user", EXACT, user), ("client-id", ANY, None))
    describe("user and the default client", ("user", EXACT, user), ("client-id", DEFAULT, None))
    describe("none there", ("user", EXACT, talk.named("none")))
    describe("an unknown kind", ("zone", EXACT, "x"))
    describe("no kind", ("", EXACT, "x"))
    describe("a kind twice", ("user", EXACT, user), ("user", EXACT, "v"))
    describe("user and address", ("user", EXACT, user), ("ip", EXACT, "1.2.3.4"))
    describe("an empty name", ("user", EXACT, ""))
    describe("no name", ("user", EXACT, None))
    describe("the default with a name", ("user", DEFAULT, user))
    describe("any with a name", ("user", ANY, user), strict=True)
    for how in (3, -1):
        describe(f"match {how}", ("user", how, user))


@about("alter_user_scram_credentials")
def credentials(talk: Talk) -> None:
    user = talk.named("u")

    def upsert(
        name: str, mechanism: int = 1, iterations: int = 4096, salt: bytes = b"s" * 8, key: bytes = b"k" * 32
    ) -> dict[str, Any]:
        return {"name": name, "mechanism": mechanism, "iterations": iterations, "salt": salt, "salted_password": key}

    def delete(name: str, mechanism: int = 1) -> dict[str, Any]:
        return {"name": name, "mechanism": mechanism}

    for label, upsertion in {
        "no name": upsert(""),
        "mechanism 0": upsert(user, 0),
        "mechanism 3": upsert(user, 3),
        "mechanism -1": upsert(user, -1),
        "too few iterations": upsert(user, 1, 4095),
        "too many iterations": upsert(user, 1, 16385),
        "no iterations": upsert(user, 1, 0),
        "no salt": upsert(user, salt=b""),
        "no password": upsert(user, key=b""),
        "well": upsert(user),
        "of the other mechanism": upsert(user, 2, key=b"k" * 64),
    }.items():
        talk.ask(label, deletions=[], upsertions=[upsertion])
    _until_known(talk, user)
    talk.ask("delete none", deletions=[delete(talk.named("none"))], upsertions=[])
    talk.ask("delete, mechanism 0", deletions=[delete(user, 0)], upsertions=[])
    talk.ask("delete no name", deletions=[delete("")], upsertions=[])
    talk.ask("the same twice", deletions=[], upsertions=[upsert(user), upsert(user)])
    talk.ask("delete and upsert", deletions=[delete(user)], upsertions=[upsert(user)])
    talk.ask("one of two is wrong", deletions=[delete(talk.named("none"))], upsertions=[upsert(talk.named("v"))])
    talk.ask("delete", deletions=[delete(user), delete(user, 2)], upsertions=[])
    talk.ask("nothing", deletions=[], upsertions=[])


def _until_known(talk: Talk, user: str) -> None:
    def known() -> bool:
        found = talk.quietly("describe_user_scram_credentials", 0, users=[{"name": user}]).results
        return bool(found) and len(found[0].credential_infos) == 2

    if "alice" not in talk.name:
        talk.until(known, "the credentials are there")


@about("describe_user_scram_credentials")
def users(talk: Talk) -> None:
    user = talk.named("u")
    for mechanism in (1, 2):
        made = {"name": user, "mechanism": mechanism, "iterations": 4096, "salt": b"s", "salted_password": b"k" * 32}
        talk.quietly("alter_user_scram_credentials", 0, deletions=[], upsertions=[made])
    _until_known(talk, user)
    for label, names in {
        "one": [user],
        "none there": [talk.named("none")],
        "no name": [""],
        "two": [user, talk.named("none")],
        "the same twice": [user, user],
    }.items():
        talk.ask(label, users=[{"name": name} for name in names])
