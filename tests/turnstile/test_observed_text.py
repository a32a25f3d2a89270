"""What observed caps would have done, in words."""

from __future__ import annotations

from typing import Any

import pytest

from turnstile.observed_text import observed_line, observed_lines, would_have


def told(**changed: Any) -> dict[str, Any]:
    nothing = {"refused": 0, "waited": 0, "undecided": 0, "addresses": 0, "more": False, "caps": []}
    return {**nothing, "set": {"kafka_connections_max_per_ip": 50}, "brokers": {}, "quotas": None, **changed}


@pytest.mark.parametrize(
    ("counted", "sentence"),
    [
        ({}, "would have refused 0 connections"),
        ({"refused": 1, "addresses": 1}, "would have refused 1 connection of 1 address"),
        ({"refused": 1204, "addresses": 9}, "would have refused 1,204 connections of 9 addresses"),
        ({"refused": 1204, "addresses": 256, "more": True}, "would have refused 1,204 connections of at least 256 addresses"),
        ({"waited": 3, "addresses": 2}, "would have made 3 connections of 2 addresses wait"),
        ({"waited": 3, "undecided": 1}, "would have made 3 connections wait; 1 connection could not be decided"),
        ({"refused": 2, "waited": 1}, "would have refused 2 connections, and would have made 1 wait"),
        ({"refused": 2, "waited": 1, "addresses": 2},
         "would have refused 2 connections, and would have made 1 wait, of 2 addresses"),
        ({"undecided": 4}, "would have refused 0 connections; 4 connections could not be decided"),
    ],
)  # fmt: skip
def test_a_count_is_a_sentence(counted: dict[str, Any], sentence: str) -> None:
    assert would_have(told(**counted)) == sentence


def test_every_value_is_named_with_what_it_would_have_done() -> None:
    caps = [
        {"limit": "kafka_connections_max_per_ip", "value": 50, "waits": False, "count": 7},
        {"limit": "max.connections", "value": 9, "waits": True, "count": 1},
    ]
    observed = {
        "set": {"kafka_connections_max_overrides": ["10.0.0.1:5", "10.0.0.2:6"]},
        "brokers": {"1": {"max.connections": 9}},
    }
    lines = observed_lines(told(refused=7, waited=1, addresses=2, caps=caps, **observed))
    assert lines[1:] == [
        "  observed: kafka_connections_max_overrides = 10.0.0.1:5,10.0.0.2:6",
        "  observed: max.connections = 9 (broker 1)",
        "  kafka_connections_max_per_ip = 50: 7 connections would be refused",
        "  max.connections = 9: 1 connection would have waited",
    ]


def test_one_line_names_what_is_observed() -> None:
    assert observed_line(told()) == "kafka_connections_max_per_ip = 50 would have refused 0 connections"
    more = told(brokers={"0": {"max.connections": 9}, "1": {"max.connections": 8}})
    assert observed_line(more).startswith("kafka_connections_max_per_ip = 50, 2 of single brokers would have")


def test_observed_quotas_of_addresses_stand_with_the_caps_and_those_of_clients_do_not() -> None:
    rows = [
        {"entity": {"ip": None}, "values": {"connection_creation_rate": 10.0}},
        {"entity": {"user": "alice"}, "values": {"producer_byte_rate": 1e6}},
    ]
    quotas = {"set": rows, "requests": 0, "throttle_ms": 0, "more": False, "quotas": [], "clients": []}
    only_quotas = told(set={}, quotas=quotas, refused=3, addresses=1)
    assert "  observed: ip=<default> connection_creation_rate = 10" in observed_lines(only_quotas)
    assert observed_line(only_quotas) == (
        "ip=<default> connection_creation_rate = 10 would have refused 3 connections of 1 address; "
        "1 client quota would have throttled 0 requests"
    )
    of_clients = told(set={}, quotas={**quotas, "set": rows[1:]})
    assert observed_line(of_clients) == "1 client quota would have throttled 0 requests"
