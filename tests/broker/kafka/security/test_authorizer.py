"""StandardAuthorizer's rules, one by one, and at random against ten plain lines."""

import random

import pytest

from broker.kafka.security.acl import CLUSTER_NAME, Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from broker.kafka.security.authorizer import Authorizer, super_users

T = ResourceType.TOPIC
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL
ALLOW, DENY = Permission.ALLOW, Permission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def acl(
    name: str, operation: Operation = READ, permission: Permission = ALLOW, pattern: PatternType = LITERAL, *,
    user: str = "alice", host: str = "*", resource: ResourceType = T,
) -> Acl:  # fmt: skip
    return Acl(resource, name, pattern, f"User:{user}", host, operation, permission)


def may(
    acls: list[Acl], operation: Operation = READ, name: str = "foobar", *, user: str = "alice", host: str = "10.0.0.1",
    supers: str = "", allow_if_none: bool = False,
) -> bool:  # fmt: skip
    authorizer = Authorizer(acls, super_users=super_users(supers), allow_if_none=allow_if_none)
    return authorizer.allows(user, host, operation, T, name)


@pytest.mark.parametrize(
    ("what", "acls", "expected"),
    [
        ("nothing", [], False),
        ("literal", [acl("foobar")], True),
        ("another name", [acl("foo")], False),
        ("a prefix", [acl("foo", pattern=PREFIXED)], True),
        ("the whole name as a prefix", [acl("foobar", pattern=PREFIXED)], True),
        ("a longer prefix", [acl("foobarx", pattern=PREFIXED)], False),
        ("wildcard", [acl("*")], True),
        ("every operation", [acl("*", ALL)], True),
        ("another operation", [acl("foobar", WRITE)], False),
        ("another user", [acl("foobar", user="bob")], False),
        ("every user", [acl("foobar", user="*")], True),
        ("another host", [acl("foobar", host="10.0.0.2")], False),
        ("its host", [acl("foobar", host="10.0.0.1")], True),
        ("another type", [acl("foobar", resource=ResourceType.GROUP)], False),
        ("denied", [acl("foobar"), acl("foobar", permission=DENY)], False),
        ("denied by prefix", [acl("foobar"), acl("f", permission=DENY, pattern=PREFIXED)], False),
        ("denied by wildcard", [acl("foobar"), acl("*", permission=DENY)], False),
        ("denied everything", [acl("foobar"), acl("*", ALL, DENY)], False),
        ("denied to others", [acl("foobar"), acl("foobar", permission=DENY, user="bob")], True),
        ("denied another operation", [acl("foobar"), acl("foobar", WRITE, DENY)], True),
    ],
)
def test_read_is_allowed_by_acls(what: str, acls: list[Acl], expected: bool) -> None:
    assert may(acls) is expected


@pytest.mark.parametrize("implying", [READ, WRITE, Operation.DELETE, Operation.ALTER, DESCRIBE])
def test_what_allows_to_describe(implying: Operation) -> None:
    assert may([acl("foobar", implying)], DESCRIBE)
    assert may([acl("foobar", ALL), acl("foobar", implying, DENY)], DESCRIBE) is (implying is not DESCRIBE)
    assert not may([acl("foobar", Operation.CREATE)], DESCRIBE)


def test_a_principal_that_may_alter_configs_may_describe_them() -> None:
    assert may([acl("foobar", Operation.ALTER_CONFIGS)], Operation.DESCRIBE_CONFIGS)
    assert not may([acl("foobar", Operation.DESCRIBE_CONFIGS)], Operation.ALTER_CONFIGS)
    assert not may([acl("foobar", Operation.ALTER)], Operation.DESCRIBE_CONFIGS)


def test_a_super_user_may_do_what_is_denied() -> None:
    denied = [acl("*", ALL, DENY, user="*")]
    assert may(denied, supers="User:bob; User:alice ;")
    assert not may(denied, supers="User:bob")
    assert not may(denied, supers="alice")


def test_a_resource_that_no_acl_names_is_everybodys_if_so_set() -> None:
    assert may([], allow_if_none=True)
    assert may([acl("other")], allow_if_none=True)
    assert not may([acl("foobar", WRITE, user="bob")], allow_if_none=True), "it is somebody's"
    assert not may([acl("f", pattern=PREFIXED, user="bob")], allow_if_none=True)


@pytest.mark.parametrize(
    ("what", "acls", "expected"),
    [
        ("nothing", [], False),
        ("some topic", [acl("foo", WRITE)], True),
        ("another operation", [acl("foo")], False),
        ("any topic", [acl("*", WRITE)], True),
        ("denied all", [acl("foo", WRITE), acl("*", WRITE, DENY)], False),
        ("denied that one", [acl("foo", WRITE), acl("foo", WRITE, DENY)], False),
        ("denied by a prefix", [acl("foo", WRITE), acl("f", WRITE, DENY, PREFIXED)], False),
        ("denied a longer prefix", [acl("foo", WRITE, ALLOW, PREFIXED), acl("foob", WRITE, DENY, PREFIXED)], True),
        ("one of two is left", [acl("foo", WRITE), acl("bar", WRITE), acl("foo", WRITE, DENY)], True),
    ],
)
def test_whether_there_is_any_topic_to_write_to(what: str, acls: list[Acl], expected: bool) -> None:
    assert Authorizer(acls).allows_any("alice", "10.0.0.1", WRITE, T) is expected


def test_operations_are_told_as_bits() -> None:
    authorizer = Authorizer([acl("foobar"), acl(CLUSTER_NAME, Operation.CREATE, resource=ResourceType.CLUSTER)])
    assert authorizer.operations("alice", "10.0.0.1", T, "foobar") == 1 << READ | 1 << DESCRIBE
    told = authorizer.operations("alice", "10.0.0.1", ResourceType.CLUSTER, CLUSTER_NAME)
    assert told == 1 << Operation.CREATE


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [("foobar", 1, {"foobar"}), ("foobar", PatternType.MATCH, {"foobar", "*", "foo"}), ("foo", 1, {"foo"}),
     ("foo", LITERAL, set()), (None, PREFIXED, {"foo"}), (None, 1, {"foobar", "*", "foo", "bar"})],
)  # fmt: skip
def test_filter_matches_acls_by_name_and_pattern(name: str | None, pattern: int, expected: set[str]) -> None:
    acls = [acl("foobar"), acl("*"), acl("foo", pattern=PREFIXED), acl("bar")]
    wanted = AclFilter(1, name, pattern, None, None, 1, 1)
    assert {each.name for each in acls if wanted.matches(each)} == expected


@pytest.mark.parametrize("seed", range(20))
def test_it_agrees_with_ten_plain_lines(seed: int) -> None:
    chance = random.Random(seed)
    names = ["*", "a", "ab", "abc", "b"]
    acls = [
        acl(
            chance.choice(names), chance.choice((READ, WRITE, ALL, DESCRIBE)), chance.choice((ALLOW, ALLOW, DENY)),
            chance.choice((LITERAL, PREFIXED)), user=chance.choice(("alice", "bob", "*")),
            host=chance.choice(("*", "10.0.0.1", "10.0.0.2")),
        )
        for _ in range(chance.randrange(8))
    ]  # fmt: skip
    for name in ("a", "ab", "abcd", "b", "c"):
        for operation in (READ, DESCRIBE, Operation.CREATE):
            for allow_if_none in (False, True):
                named = [
                    each for each in acls
                    if (each.name.startswith(name) and each.name == name if each.pattern == LITERAL
                        else name.startswith(each.name)) or (each.name == "*" and each.pattern == LITERAL)
                ]  # fmt: skip
                mine = [a for a in named if a.principal in ("User:alice", "User:*") and a.host in ("*", "10.0.0.1")]
                denied = any(a.permission == DENY and a.operation in (ALL, operation) for a in mine)
                implied = {READ, WRITE, DESCRIBE} if operation == DESCRIBE else {operation}
                allowed = any(a.permission == ALLOW and a.operation in {ALL, *implied} for a in mine)
                expected = not denied and (allowed or (allow_if_none and not named))
                assert may(acls, operation, name, allow_if_none=allow_if_none) is expected
