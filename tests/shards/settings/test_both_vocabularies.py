"""Of a limit that both vocabularies have, the tighter one rules, whatever else is set."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.config.image import ClusterImage
from shards.settings.both_vocabularies import SAME_LIMITS, tightened
from shards.settings.config_def import BROKER


def test_each_has_a_definition_of_both_names():
    for name, same in SAME_LIMITS.items():
        assert BROKER[name].default is None, "unset it changes nothing"
        assert isinstance(BROKER[same.kafka].default, int)


@given(st.sampled_from(sorted(SAME_LIMITS)), st.integers(1, 2**31 - 1), st.integers(1, 2**31 - 1) | st.none())
def test_a_redpanda_limit_tightens_and_never_loosens(name, kafkas, redpandas):
    same = SAME_LIMITS[name]
    other = {"max.connections": 7}
    found = tightened({same.kafka: kafkas, name: redpandas, **other})
    expected = kafkas if redpandas is None else same.tighter(kafkas, redpandas)
    assert found == {same.kafka: expected, name: redpandas, **other}


@pytest.mark.parametrize(("batch_bytes", "ruling"), [("1000", 1000), ("9000000", 1_048_588)])
def test_a_topic_without_a_config_of_its_own_obeys_the_tighter_one(batch_bytes, ruling):
    image = ClusterImage()
    topic = {"id": "0" * 31 + "1", "leaders": [0], "configs": {}}
    image.apply(1, [("topic", "t", topic), ("setting", "/kafka_batch_max_bytes", batch_bytes)])
    assert image.topic_get("t", "max.message.bytes") == ruling
