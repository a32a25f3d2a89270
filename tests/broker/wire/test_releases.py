"""Releases whose place a cluster can take: what both have, and what the releases themselves list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.wire.apis import APIS
from broker.wire.releases import VersionRange, ranges_of
from shards.settings.features import features_as
from shards.settings.releases import GROUP_VERSION, METADATA_VERSION, OWN_VERSION, RELEASES, SHARE_VERSION

PRODUCE, FETCH, API_VERSIONS, CONSUMER_GROUP_HEARTBEAT = 0, 1, 18, 68


@pytest.mark.parametrize("release", RELEASES)
def test_the_table_has_every_release(release):
    ranges = ranges_of(release)
    assert {PRODUCE, FETCH, API_VERSIONS} <= ranges.keys()
    assert all(each.least <= each.most for each in ranges.values())
    assert all(features_as(release)[name].most <= features_as(OWN_VERSION)[name].most for name in features_as(release))


def test_releases_list_what_is_known_of_them():
    assert ranges_of("2.8")[FETCH] == (0, 12), "topic ids came with 3.1, KIP-516"
    assert ranges_of("3.1")[FETCH] == (0, 13)
    assert ranges_of("redpanda-24.3")[FETCH] == (4, 11)
    assert CONSUMER_GROUP_HEARTBEAT not in ranges_of("3.6") and CONSUMER_GROUP_HEARTBEAT in ranges_of("4.0")


def test_features_came_one_after_the_other():
    assert features_as("2.8") == features_as("redpanda-24.3") == {}
    assert features_as("3.3").keys() == {METADATA_VERSION}
    assert GROUP_VERSION in features_as("4.0") and SHARE_VERSION not in features_as("4.0")
    assert (features_as("4.1")[SHARE_VERSION].default, features_as("4.2")[SHARE_VERSION].default) == (0, 1)


@pytest.mark.parametrize("release", RELEASES)
def test_something_of_every_api_that_old_clients_need_is_served(release):
    ranges = ranges_of(release)
    for key in (PRODUCE, FETCH, 2, 3, 8, 9, 10, 11, 12, 13, 14, API_VERSIONS, 19, 22):
        ours = VersionRange(APIS[key].min_version, APIS[key].max_version)
        assert ours.within(ranges[key]) is not None, key


versions = st.builds(lambda low, more: VersionRange(low, low + more), st.integers(0, 20), st.integers(0, 20))


@given(versions, versions, st.integers(0, 40))
def test_what_both_have_is_what_each_has(one, other, version):
    both = one.within(other)
    in_both = one.least <= version <= one.most and other.least <= version <= other.most
    assert in_both == (both is not None and both.least <= version <= both.most)
