"""Codecs that the tests of this folder use are compiled before: the first request of a version would be answered later."""

import pytest

from broker.wire import wire

METADATA, FIND_COORDINATOR, API_VERSIONS, DELETE_GROUPS = 3, 10, 18, 42


@pytest.fixture(scope="session", autouse=True)
def compiled():
    for key in (METADATA, FIND_COORDINATOR, API_VERSIONS, DELETE_GROUPS):
        for version in range(wire.APIS[key].min_version, wire.APIS[key].max_version + 1):
            wire.compile_api(key, version)
