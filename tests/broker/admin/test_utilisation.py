"""utilisation.py: how many addresses are close to their caps, from what their homes say and what is open."""

import pytest

from broker.admin.uses import CONNECTIONS, Use
from broker.admin.utilisation import AddressesAtHome, Closest, utilised
from shards.limits.utilisation import CloseLimits


def close_of(homes, open_of):
    uses = [Use(broker, CONNECTIONS, f"ip:{ip}", used, 10, "a cap") for (broker, ip), used in open_of.items()]
    rows = utilised(uses, Closest(homes, [], [], [], {})).close
    return {row["broker"]: (row["high"], row["near"], row["full"], row["limits"]) for row in rows}


def test_tokens_that_are_only_cached_do_not_count():
    homes = [AddressesAtHome(0, ["a", "b", "c"], CloseLimits(high=3, near=3, full=2, limits=9))]
    assert close_of(homes, {(0, "a"): 10, (0, "b"): 8, (0, "c"): 7}) == {0: (2, 1, 1, 9)}


def test_what_is_open_on_another_broker_does_not_count():
    homes = [AddressesAtHome(broker, ["a"], CloseLimits(1, 0, 0, 1)) for broker in (0, 1)]
    assert close_of(homes, {(0, "a"): 8, (1, "a"): 2}) == {0: (1, 0, 0, 1), 1: (0, 0, 0, 1)}


@pytest.mark.parametrize("more", [1, 5000])
def test_where_a_home_names_too_few_its_own_count_is_told(more):
    counted = CloseLimits(1 + more, more, 1, 9000)
    assert close_of([AddressesAtHome(0, ["a"], counted)], {(0, "a"): 0}) == {0: tuple(counted)}
