"""The eight levels: the documented order by example, and every look-up against Kafka's nested questions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.limits.precedence import EntityNames, Match, QuotaTable

LEVELS: list[EntityNames] = [
    {"user": "alice", "client-id": "app"},
    {"user": "alice", "client-id": None},
    {"user": "alice"},
    {"user": None, "client-id": "app"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "app"},
    {"client-id": None},
]
KEYS = [
    ("alice", "app"),
    ("alice", "app"),
    ("alice", ""),
    ("alice", "app"),
    ("alice", "app"),
    ("alice", ""),
    ("", "app"),
]
KEYS.append(("", "app"))


@pytest.mark.parametrize("first", range(8))
def test_the_first_level_that_is_set_holds(first: int) -> None:
    table = QuotaTable()
    for level, entity in enumerate(LEVELS):
        table.update(entity, level + 1)
    for entity in LEVELS[:first]:
        table.update(entity, None)
    assert table.match("alice", "app") == Match(KEYS[first], LEVELS[first], first + 1)


@pytest.mark.parametrize("level", range(8))
def test_a_level_alone_in_use_decides_which_clients_share(level: int) -> None:
    table = QuotaTable()
    table.update(LEVELS[level], 5)
    assert table.match("alice", "app") == Match(KEYS[level], LEVELS[level], 5)
    shape = set(LEVELS[level])
    assert table.key("bob", "other") == ("bob" if "user" in shape else "", "other" if "client-id" in shape else "")


def test_before_the_first_quota_no_client_is_metered() -> None:
    table = QuotaTable()
    table.update({"user": "alice"}, None)  # removing what is not there is no first quota
    assert not table.in_use
    assert table.match("alice", "app") == Match(None, None, None)


def test_a_shape_is_in_use_until_its_last_quota_is_gone() -> None:
    table = QuotaTable()
    for name, value in (("alice", 5), ("alice", 6), ("bob", 5), ("carol", None), ("alice", None)):
        table.update({"user": name}, value)
    assert table.match("alice", "app") == Match(("alice", ""), None, None)
    table.update({"user": "bob"}, None)
    assert not table.in_use and table.match("alice", "app") == Match(None, None, None)
    table.update({"user": "alice", "client-id": None}, 5)
    assert table.key("bob", "other") == ("bob", "other")


def test_the_users_own_quota_comes_before_a_default_users_client_id() -> None:
    table = QuotaTable()
    table.update({"user": None, "client-id": "app"}, 4)
    table.update({"user": "alice"}, 3)
    assert table.match("alice", "app").limit == 3
    assert table.match("bob", "app").limit == 4


def test_an_empty_client_id_falls_to_the_users_quota_though_the_level_of_both_matched() -> None:
    table = QuotaTable()
    table.update({"user": "alice", "client-id": None}, 2)
    table.update({"user": "alice"}, 3)
    assert table.match("alice", "") == Match(("alice", ""), {"user": "alice"}, 3)


def test_a_name_that_looks_like_the_default_is_a_name() -> None:
    table = QuotaTable()
    table.update({"user": "<default>"}, 1)
    assert table.match("bob", "app").limit is None
    assert table.match("<default>", "app").limit == 1


@pytest.mark.parametrize("entity", [{}, {"ip": "10.0.0.1"}, {"user": "alice", "ip": "10.0.0.1"}, {"clientid": "app"}])
def test_an_entity_of_something_else_is_refused(entity: EntityNames) -> None:
    with pytest.raises(ValueError, match="user, client-id or both"):
        QuotaTable().update(entity, 1)


def test_a_version_rises_with_every_change() -> None:
    table = QuotaTable()
    versions = [table.version]
    for value in (1, 2, None):
        table.update({"user": "alice"}, value)
        versions.append(table.version)
    assert versions == sorted(set(versions))
    assert table.items() == []


NAMES = st.sampled_from(["", "a", "b"])
ENTITIES = st.dictionaries(st.sampled_from(["user", "client-id"]), st.sampled_from([None, "a", "b"]), min_size=1)


@given(st.lists(st.tuples(ENTITIES, st.one_of(st.none(), st.integers(1, 9))), max_size=25), NAMES, NAMES)
def test_every_look_up_is_kafkas(changes: list[tuple[EntityNames, int | None]], user: str, client_id: str) -> None:
    """DefaultQuotaCallback.quotaMetricTags and quotaLimit, in plain nested questions."""
    table = QuotaTable()
    quotas: dict[frozenset[tuple[str, str | None]], int] = {}
    for entity, value in changes:
        table.update(entity, value)
        if value is None:
            quotas.pop(frozenset(entity.items()), None)
        else:
            quotas[frozenset(entity.items())] = value
    shapes = {frozenset(name for name, _ in entity) for entity in quotas}

    def quota(**entity: str | None) -> int | None:
        return quotas.get(frozenset((name.replace("_", "-"), value) for name, value in entity.items()))

    def tags() -> tuple[str, str]:
        if len(shapes) <= 1:
            shape = next(iter(shapes), frozenset({"client-id"}))
            return (user if "user" in shape else "", client_id if "client-id" in shape else "")
        if quota(user=user, client_id=client_id) is not None or quota(user=user, client_id=None) is not None:
            return (user, client_id)
        if quota(user=user) is not None:
            return (user, "")
        if quota(user=None, client_id=client_id) is not None or quota(user=None, client_id=None) is not None:
            return (user, client_id)
        return (user, "") if quota(user=None) is not None else ("", client_id)

    def limit(key: tuple[str, str]) -> int | None:
        first, second = key
        places: list[dict[str, str | None]] = []
        if first and second:
            places = [{"user": u, "client_id": c} for u in (first, None) for c in (second, None)]
        elif first:
            places = [{"user": first}, {"user": None}]
        elif second:
            places = [{"client_id": second}, {"client_id": None}]
        return next((value for place in places if (value := quota(**place)) is not None), None)

    assert table.key(user, client_id) == tags()
    assert table.limit(tags()) == limit(tags())
    assert table.match(user, client_id).limit == (limit(tags()) if shapes else None)
    assert {frozenset(entity.items()): value for entity, value in table.items()} == quotas
