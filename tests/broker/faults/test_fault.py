"""A fault as callers give it: spelled canonically or refused in one sentence, and what it matches."""

import pytest

from broker.faults.fault import checked, fault_of
from shards.settings.errors import ConfigInvalid

PRODUCE, FETCH = 0, 1


def test_a_fault_is_spelled_canonically():
    given = {"kind": "error", "api": "produce,ListOffsets", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2, "ip": None}
    assert checked(given) == {
        "kind": "error", "api": ["Produce", "ListOffsets"], "times": 2, "error": "NOT_LEADER_OR_FOLLOWER"}  # fmt: skip
    address = {"kind": "disconnect", "ip": "::ffff:10.0.0.1", "connection": "[::1]:05", "reset": True}
    assert checked(address) == {"kind": "disconnect", "ip": "10.0.0.1", "connection": "[::1]:5", "reset": True}
    chance = checked({"kind": "blackhole", "probability": 1})
    assert chance == {"kind": "blackhole", "probability": 1.0, "seed": 0} and checked(chance) == chance


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "kind cannot be ''"),
        ({"kind": "explode"}, "must be one of error, disconnect, delay, blackhole, throttle."),
        ({"kind": "error"}, "error is missing: a fault of kind error needs it, such as REQUEST_TIMED_OUT."),
        ({"kind": "error", "error": "NOT_LEADER"}, "did you mean NOT_LEADER_OR_FOLLOWER?"),
        ({"kind": "error", "error": "NONE"}, "it is not an error of Kafka"),
        ({"kind": "delay", "delay_ms": 0}, "it must be a whole number of at least 1."),
        ({"kind": "delay", "delay_ms": True}, "it must be a whole number"),
        ({"kind": "blackhole", "delay_ms": 5}, "delay_ms is for faults of kind delay, and this is a blackhole."),
        ({"kind": "delay", "delay_ms": 5, "reset": True}, "reset is for faults of kind disconnect"),
        ({"kind": "blackhole", "api": "Prodcue"}, "it is not an API of Kafka; did you mean Produce?"),
        ({"kind": "blackhole", "api": 7}, "it must be the name of an API"),
        ({"kind": "blackhole", "topic": "orders"}, "topic is not a part of a fault"),
        ({"kind": "blackhole", "ip": "nowhere"}, "ip cannot be 'nowhere'"),
        ({"kind": "blackhole", "connection": "10.0.0.1"}, "must be the client's address and port"),
        ({"kind": "blackhole", "client_id": 5}, "it must be text"),
        ({"kind": "blackhole", "once": True, "times": 2}, "times can't be together with once"),
        ({"kind": "blackhole", "seed": 2}, "seed is for probability."),
        ({"kind": "blackhole", "probability": 2}, "it must be a number from 0 to 1."),
        ({"kind": "blackhole", "once": 1}, "it must be true or false."),
    ],
)
def test_a_wrong_fault_is_one_sentence(given, sentence):
    with pytest.raises(ConfigInvalid) as fault:
        checked(given)
    assert sentence in str(fault.value) and str(fault.value).endswith((".", "?"))


def matches(given, api=PRODUCE, client_id="app", ip="10.0.0.1", port=5):
    return fault_of("f", checked({"kind": "blackhole", **given})).matches(api, client_id, ip, port)


def test_what_is_not_named_matches_all_and_every_part_that_is_named_has_to_match():
    assert matches({}) and matches({}, api=None, client_id=None)
    assert (
        matches({"api": "Produce,Fetch"}, FETCH)
        and not matches({"api": "Fetch"})
        and not matches({"api": "Fetch"}, None)
    )
    assert (
        matches({"client_id": "a*"})
        and not matches({"client_id": "b*"})
        and not matches({"client_id": "a"}, PRODUCE, None)
    )
    assert matches({"ip": "10.0.0.1", "api": "Produce"}) and not matches({"ip": "10.0.0.2", "api": "Produce"})
    assert matches({"connection": "10.0.0.1:5"}) and not matches({"connection": "10.0.0.1:6"})


def test_a_disconnect_without_an_api_ends_connections():
    def ends(**given):
        return fault_of("f", checked({"kind": "disconnect", **given})).ends_connections

    assert ends(ip="10.0.0.1") and not ends(api="Metadata")
