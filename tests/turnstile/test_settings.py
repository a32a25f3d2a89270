"""Names and values of settings as Python programs write them."""

import pytest

from shards.settings.config_def import BROKER
from shards.settings.config_key import REDPANDA
from turnstile.settings import REDPANDAS, SHORT, as_setting, as_text


def test_every_setting_of_redpanda_keeps_its_name():
    named = {name for name, row in BROKER.items() if row.vocabulary == REDPANDA}
    assert {name for name in named if not name.startswith("kafka_")} == REDPANDAS
    assert {as_setting(name) for name in named} == named


@pytest.mark.parametrize(
    ("name", "setting"), [("max_connections_per_ip", "max.connections.per.ip"), ("per_ip", SHORT["per_ip"])]
)
def test_other_names_are_short_ones_or_kafkas(name, setting):
    assert as_setting(name) == setting


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (5, "5"), (["a", "b"], "a,b"), ({"::1": 5}, "[::1]:5"), ([{"name": "a"}], '[{"name": "a"}]')],
)
def test_values_have_the_text_that_a_setting_is_given_in(value, text):
    assert as_text(value) == text
