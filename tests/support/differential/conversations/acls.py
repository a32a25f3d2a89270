"""DescribeAcls, CreateAcls, DeleteAcls."""

from __future__ import annotations

from typing import Any

from differential.table import about
from differential.talk import Talk

TOPIC, GROUP, CLUSTER = 2, 3, 4
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
READ, ALLOW, DENY = 3, 3, 2


def _acl(name: str, **more: Any) -> dict[str, Any]:
    return {"resource_type": TOPIC, "resource_name": name, "resource_pattern_type": LITERAL, "principal": "User:carol",
            "host": "*", "operation": READ, "permission_type": ALLOW, **more}  # fmt: skip


def _filter(name: str | None, **more: Any) -> dict[str, Any]:
    return {"resource_type_filter": ANY, "resource_name_filter": name, "pattern_type_filter": ANY, "principal_filter": None,
            "host_filter": None, "operation": 1, "permission_type": 1, **more}  # fmt: skip


WRONG: dict[str, dict[str, Any]] = {
    **{f"{field} {value}": {field: value} for field, values in {
        "resource_type": (0, 1, 5, 6, 7, 8, 99, -1),
        "resource_pattern_type": (0, 1, 2, 4, 5, -1),
        "operation": (0, 1, 2, 4, 8, 13, 15, 99),
        "permission_type": (0, 1, 2, 4),
    }.items() for value in values},
    "no name": {"resource_name": ""},
    "any name": {"resource_name": "*"},
    "any name, as a prefix": {"resource_name": "*", "resource_pattern_type": PREFIXED},
    "no principal": {"principal": ""},
    "a principal without a kind": {"principal": "carol"},
    "a principal without a name": {"principal": "User:"},
    "any principal": {"principal": "User:*"},
    "no host": {"host": ""},
    "a host": {"host": "127.0.0.1"},
    "a cluster of another name": {"resource_type": CLUSTER, "operation": 8},
    "the cluster": {"resource_type": CLUSTER, "resource_name": "kafka-cluster", "operation": 8},
}  # fmt: skip


@about("create_acls")
def made(talk: Talk) -> None:
    name = talk.named("a")
    talk.ask("well", creations=[_acl(name)])
    talk.ask("again", creations=[_acl(name)])
    talk.ask("two, one wrong", creations=[_acl(name, host="h"), _acl("")])
    talk.ask("the same twice", creations=[_acl(name, host="i"), _acl(name, host="i")])
    talk.ask("nothing", creations=[])
    for label, wrong in WRONG.items():
        talk.ask(
            label, creations=[_acl(talk.named("w"), **wrong) if "resource_name" not in wrong else _acl("", **wrong)]
        )
    talk.quietly("delete_acls", 3, filters=[_filter(None, principal_filter="User:*")])


def _prepare(talk: Talk) -> tuple[str, str]:
    name, prefix = talk.named("name"), talk.named("n")
    acls = [_acl(name), _acl(name, host="h"), _acl(prefix, resource_pattern_type=PREFIXED),
            _acl(name, permission_type=DENY, operation=4), _acl(name, resource_type=GROUP)]  # fmt: skip
    for each in acls:
        talk.quietly("create_acls", 3, creations=[each])
    talk.until(lambda: len(talk.quietly("describe_acls", 3, **_filter(name)).resources) == 2, "the ACLs are there")
    return name, prefix


FILTERS: dict[str, dict[str, Any]] = {
    "all": {},
    "of a type": {"resource_type_filter": GROUP},
    "literal": {"pattern_type_filter": LITERAL},
    "prefixed": {"pattern_type_filter": PREFIXED},
    "matching": {"resource_type_filter": TOPIC, "pattern_type_filter": MATCH},
    "a host": {"host_filter": "h"},
    "an empty host": {"host_filter": ""},
    "an operation": {"operation": READ},
    "a permission": {"permission_type": DENY},
    "a principal": {"principal_filter": "User:carol"},
    "another principal": {"principal_filter": "User:nobody"},
    "a principal without a kind": {"principal_filter": "carol"},
    **{f"{field} {value}": {field: value} for field in
       ("resource_type_filter", "pattern_type_filter", "operation", "permission_type") for value in (0, 99, -1)},
}  # fmt: skip


@about("describe_acls")
def described(talk: Talk) -> None:
    name, prefix = _prepare(talk)
    for label, fields in FILTERS.items():
        talk.ask(label, **_filter(name, **fields))
    talk.ask("the prefix", **_filter(prefix))
    talk.ask("no name", **_filter(""))
    talk.ask("none there", **_filter(talk.named("zz")))


@about("delete_acls")
def deleted(talk: Talk) -> None:
    name, prefix = _prepare(talk)
    for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        for value in (0, 99):
            talk.ask(f"{field} {value}", filters=[_filter(name, **{field: value})])
    talk.ask("none there", filters=[_filter(talk.named("zz"))])
    talk.ask("one", filters=[_filter(name, host_filter="h")])
    talk.ask("two filters", filters=[_filter(name, permission_type=DENY), _filter(talk.named("zz"))])
    talk.ask("the same twice", filters=[_filter(prefix), _filter(prefix)])
    talk.ask(
        "a filter that is wrong and one that isn't", filters=[_filter(name, operation=0), _filter(name, operation=4)]
    )
    talk.ask("nothing", filters=[])
    talk.quietly("delete_acls", 3, filters=[_filter(name)])
