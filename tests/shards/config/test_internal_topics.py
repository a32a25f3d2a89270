"""Internal topics: however they are created, they have the partitions and leaders that the coordinators need."""

from __future__ import annotations

import pytest

from shards.config.config_state import ConfigState
from shards.config.internal_topics import CONFIGS, GROUP_METADATA, TRANSACTION_STATE
from shards.config.topic_changes import create_partitions, create_topics, delete_topics
from shards.ownership import PARTITIONS, bucket_leaders


@pytest.mark.parametrize("name", [GROUP_METADATA, TRANSACTION_STATE])
def test_an_internal_topic_has_its_partitions_and_leaders_however_it_is_made(name: str) -> None:
    for partitions in (-1, PARTITIONS):
        now = ConfigState(3, {})
        now.put(create_topics(now, [["t", 2, {}]])[0])
        delta, results = create_topics(now, [[name, partitions, {}]])
        assert results == [["", ""]]
        now.put(delta)
        assert now.topics[name]["leaders"] == bucket_leaders(3)
        assert now.topics[name]["configs"] == CONFIGS[name]
        now.put(create_topics(now, [["u", 1, {}]])[0])
        assert now.topics["u"]["leaders"] == [2]  # those of others go on where they were
        assert create_partitions(now, [[name, 60]])[1][0][0] == "INVALID_PARTITIONS"
        assert delete_topics(now, [name]) == ([("topic", name, None)], [["", ""]])


def test_an_internal_topic_of_another_shape_is_refused() -> None:
    now = ConfigState(3, {})
    wanted = [[GROUP_METADATA, 3, {}], [GROUP_METADATA, 1, {}, [0]], ["t", 1, {}]]
    delta, results = create_topics(now, wanted)
    assert [result[0] for result in results] == ["INVALID_PARTITIONS", "INVALID_PARTITIONS", ""]
    assert [name for _, name, _ in delta] == ["t"]
