"""Redpanda's rules for client quotas: the table of its documents, rule by rule, and on generated quotas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.limits.redpanda_precedence import NO_RULE, BucketKey, RedpandaQuotaTable

ALICE, BOB, APP, APP_1 = "alice", "bob", "app", "app-1"
RULES = [
    ({"user": ALICE, "client-id": APP_1}, BucketKey(ALICE, APP_1, None)),
    ({"user": ALICE, "client-id-prefix": APP}, BucketKey(ALICE, None, APP)),
    ({"user": ALICE, "client-id": None}, BucketKey(ALICE, APP_1, None)),
    ({"user": ALICE}, BucketKey(ALICE, None, None)),
    ({"user": None, "client-id": APP_1}, BucketKey(ALICE, APP_1, None)),
    ({"user": None, "client-id-prefix": APP}, BucketKey(ALICE, None, APP)),
    ({"user": None, "client-id": None}, BucketKey(ALICE, APP_1, None)),
    ({"user": None}, BucketKey(ALICE, None, None)),
    ({"client-id": APP_1}, BucketKey(None, APP_1, None)),
    ({"client-id-prefix": APP}, BucketKey(None, None, APP)),
    ({"client-id": None}, BucketKey(None, APP_1, None)),
]
"""Of alice's app-1: the entity of each rule, in their order, and whose bucket it is."""
USERS = ["", ALICE, BOB]
IDS = ["", "a", APP, APP_1, "b"]
PREFIXES = ["a", APP, "app-"]


def entity(names):
    return tuple(sorted(names.items()))


def table(quotas):
    return RedpandaQuotaTable((entity(names), value) for names, value in quotas)


@pytest.mark.parametrize("first", range(len(RULES)))
def test_of_all_rules_that_are_left_the_first_holds(first):
    quotas = [(names, float(at)) for at, (names, _) in enumerate(RULES, 1)]
    found = table(quotas[first:]).match(ALICE, APP_1)
    names, key = RULES[first]
    assert found == (first + 1, names, first + 1.0, key)


def test_redpandas_own_example():
    quotas = table([({"user": ALICE, "client-id": APP_1}, 5e6), ({"user": ALICE}, 1e7), ({"client-id": APP_1}, 2e7)])
    found = [quotas.match(user, client).rule for user in (ALICE, BOB) for client in (APP_1, "app-2")]
    assert found == [1, 4, 9, NO_RULE]


def test_a_client_that_has_not_logged_in_is_no_default_user():
    of_users = [(names, 1.0) for names, _ in RULES if "user" in names]
    assert table(of_users).match("", APP_1).rule == NO_RULE
    assert table([*of_users, ({"client-id": None}, 2.0)]).match("", APP_1).rule == 11


def test_a_client_without_an_id_is_under_the_default_and_under_no_prefix():
    quotas = table([({"client-id-prefix": "a"}, 1.0), ({"client-id": None}, 2.0)])
    assert quotas.match("", "") == (11, {"client-id": None}, 2.0, BucketKey(None, "", None))
    assert table([({"user": ALICE}, 1.0)]).match(ALICE, "").key == BucketKey(ALICE, None, None)


def test_of_several_prefixes_the_longest_counts():
    quotas = table([({"client-id-prefix": prefix}, float(len(prefix))) for prefix in PREFIXES])
    found = [quotas.match("", client).limit for client in ("a", "apps", "app-x", "b")]
    assert found == [1.0, 3.0, 4.0, None]


def test_long_names_stay_apart_and_bounded():
    long = "x" * 30_000
    found = table([({"client-id": None}, 1.0)]).match("", long)
    other = table([({"client-id": None}, 1.0)]).match("", long + "y")
    assert found.key != other.key and len(found.key.client_id) < 200
    assert table([({"client-id": long}, 3.0)]).match("", long).limit == 3.0


ENTITIES = st.builds(
    lambda user, client: {**user, **client},
    st.sampled_from([{}, {"user": ALICE}, {"user": BOB}, {"user": None}]),
    st.sampled_from([{}, {"client-id": None}, *({"client-id": each} for each in IDS[1:]),
                     *({"client-id-prefix": each} for each in PREFIXES)]),
).filter(bool)  # fmt: skip
QUOTAS = st.dictionaries(ENTITIES.map(entity), st.integers(1, 99).map(float), max_size=12)


def in_words(quotas, user, client):
    """The rules as the table of Redpanda's documents has them, one after the other."""
    prefixes = sorted((each for each in PREFIXES if client.startswith(each)), key=len, reverse=True)
    parts = [
        [{"client-id": client}] * bool(client),
        [{"client-id-prefix": each} for each in prefixes],
        [{"client-id": None}],
        [{}],
    ]
    whose = [{"user": user}, {"user": None}] if user else []
    rule = 0 if user else 8
    for of_user in [*whose, {}]:
        for place, clients in enumerate(parts):
            rule += 1
            for each in clients:
                names = entity({**of_user, **each})
                if names in quotas:
                    shares = place == 3
                    key = BucketKey(user if of_user else None, None if shares or place == 1 else client,
                                    each["client-id-prefix"] if place == 1 else None)  # fmt: skip
                    return rule, quotas[names], key
    return NO_RULE, None, None


@given(QUOTAS, st.sampled_from(USERS), st.sampled_from(IDS))
def test_generated_quotas_hold_by_the_table(quotas, user, client):
    table = RedpandaQuotaTable(quotas.items())
    rule, named, limit, key = table.match(user, client)
    assert (rule, limit, key) == in_words(quotas, user, client)
    assert table.in_use == bool(quotas)
    if key is not None:
        assert quotas[entity(named)] == limit
        assert table.limit(key) == limit, "the bucket has the quota of the rule by which its clients come to it"
