"""Where clients are told to connect: how it is written, which word counts, and what a change may not do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.config.advertised import (
    AUTO,
    BOUND,
    LIVE,
    START,
    Address,
    addresses_of,
    advertised,
    auto_listeners,
    spelled,
)
from shards.config.advertised_changes import AddressChange, advertised_delta, advertised_rows, check_advertised_record
from shards.config.cluster_plan import ListenerEndpoint
from shards.config.config_state import ConfigState
from shards.config.image import ClusterImage
from shards.config.setting_changes import static_settings
from shards.config.store_recovery import usable_records
from shards.settings.errors import ConfigInvalid


def cluster(brokers: int = 3, host: str = "127.0.0.1", *options: str, settings: str = "") -> ConfigState:
    """Listeners EDGE, with these options, and IN; as `--listener EDGE=host:9092,OPTIONS --set advertised.listeners=SETTINGS`."""
    endpoints = [
        ListenerEndpoint(broker, name, host, port + broker, options if name == "EDGE" else ())
        for broker in range(brokers)
        for name, port in (("EDGE", 9092), ("IN", 9192))
    ]
    pairs = [("advertised.listeners", settings)] if settings else []
    return ConfigState(brokers, static_settings(pairs, endpoints))


def change(state: ConfigState, listener: str | None, *addresses: str, broker: int | None = None) -> None:
    state.put(advertised_delta(state, AddressChange(listener, broker, addresses)))


def told(state: ConfigState, listener: str = "EDGE") -> list[str]:
    rows = [row for row in advertised_rows(state) if row["listener"] == listener]
    return [f"{row['address']} {row['source']}{' guess' if row['guess'] else ''}" for row in rows]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["localhost:1"], ["localhost:1"]),
        (["localhost:32801,32802", "b.example:3"], ["localhost:32801", "localhost:32802", "b.example:3"]),
        ([" a_b:1 , 2", "[::1]:5,6"], ["a_b:1", "a_b:2", "[::1]:5", "[::1]:6"]),
        (["[0:0::1]:05"], ["[::1]:5"]),
        (["auto", "a:1,auto"], ["auto", "a:1", "auto"]),
        (["LocalHost:1", "b.Example.:2", "10.0.0.9:3"], ["localhost:1", "b.example:2", "10.0.0.9:3"]),
    ],
)
def test_addresses_as_they_are_written(texts: list[str], found: list[str]) -> None:
    assert addresses_of(texts) == found
    assert addresses_of(found) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it must be host:port"), ("localhost", "it must be host:port"), ("32801", "it must be host:port"),
        ("localhost:0", "1 to 65535"), ("localhost:65536", "1 to 65535"), ("localhost:x", "1 to 65535"),
        ("localhost:²", "1 to 65535"), ("http://localhost:1", "without a scheme"), ("EDGE://a:1", "without a scheme"),
        ("0.0.0.0:1", "can't connect to 0.0.0.0"), ("[::]:1", r"can't connect to \[::\]"), (":1", "no host"),
        ("::1:1", "brackets"), ("[::g]:1", "not an IPv6 address"), ("a b:1", "not a host name"),
        ("-a:1", "not a host name"), ("ä:1", "not a host name"), ("x" * 254 + ":1", "not a host name"),
        ("AUTO", "it must be host:port"), ("999.999.1.1:1", "not an IPv4 address"), ("10.0.0:1", "not an IPv4 address"),
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_in_one_sentence(text: str, why: str) -> None:
    with pytest.raises(ConfigInvalid, match=why):
        addresses_of([text])


@given(st.text(max_size=20))
def test_any_text_is_an_address_or_is_refused(text: str) -> None:
    try:
        found = addresses_of([text])
    except ConfigInvalid:
        return
    assert addresses_of(found) == found


def test_what_was_set_live_goes_before_what_the_cluster_was_started_with() -> None:
    state = cluster(settings="EDGE://host:100")
    assert told(state) == ["host:100 start", "host:101 start", "host:102 start"]
    assert told(state, "IN") == ["127.0.0.1:9192 listener", "127.0.0.1:9193 listener", "127.0.0.1:9194 listener"]
    change(state, "edge", "localhost:1,2,3")
    change(state, "EDGE", AUTO, broker=1)
    assert told(state) == ["localhost:1 live", "auto live guess", "localhost:3 live"]
    change(state, "EDGE")
    assert told(state) == ["host:100 start", "host:101 start", "host:102 start"]


def test_a_listener_bound_to_every_address_is_told_as_localhost_which_is_a_guess() -> None:
    assert told(cluster(1, "0.0.0.0")) == ["localhost:9092 listener guess"]
    assert told(cluster(1, "::")) == ["localhost:9092 listener guess"]


def test_a_listener_may_say_at_the_start_what_it_advertises() -> None:
    assert told(cluster(2, "0.0.0.0", "advertise=auto")) == ["auto start guess"] * 2
    assert told(cluster(2, "0.0.0.0", "sasl", "advertise=h:5")) == ["h:5 start", "h:6 start"]


@pytest.mark.parametrize(
    ("text", "why"),
    [("EGDE://a:1", "has the listeners EDGE, IN"), ("a:1", "must be NAME://host:port"), ("", "must be NAME://host:port"),
     ("EDGE://0.0.0.0:1", "can't connect to 0.0.0.0"), ("EDGE://a:1,IN://b", "must be host:port")],
)  # fmt: skip
def test_advertised_listeners_that_no_client_could_use_are_refused_at_the_start(text: str, why: str) -> None:
    if text:
        with pytest.raises(ConfigInvalid, match=why):
            cluster(1, settings=text)
    assert told(cluster(1, settings="edge://a:1, IN://auto")) == ["a:1 start"]
    assert told(cluster(2, settings="edge://a:65534, IN://auto")) == ["a:65534 start", "a:65535 start"]
    with pytest.raises(ConfigInvalid, match="broker 1 would have port 65536"):
        cluster(2, settings="edge://a:65535")
    with pytest.raises(ConfigInvalid, match="broker 1 would have port 65536"):
        cluster(2, "127.0.0.1", "advertise=a:65535")


def test_a_listeners_option_is_told_in_canonical_spelling() -> None:
    assert told(cluster(2, "127.0.0.1", "advertise=B.Example.:09")) == ["b.example:9 start", "b.example:10 start"]


def test_of_auto_the_port_is_the_one_that_the_broker_is_bound_to() -> None:
    state = cluster(2)
    change(state, "IN", AUTO)
    assert advertised(state.static, state.advertised, 1, "IN") == (Address(AUTO, 9193), LIVE, True)
    assert advertised(state.static, state.advertised, 1, "EDGE").source == BOUND
    assert advertised(cluster(1, settings="IN://auto").static, {}, 0, "IN") == (Address(AUTO, 9192), START, True)
    assert auto_listeners(state.static, state.advertised) == {"IN"}
    assert auto_listeners(cluster(1, "::", "advertise=auto").static, {}) == {"EDGE"}


def test_the_only_listener_needs_no_name() -> None:
    state = ConfigState(1, static_settings([], [ListenerEndpoint(0, "PLAINTEXT", "0.0.0.0", 9092)]))
    change(state, None, "localhost:32801")
    assert told(state, "PLAINTEXT") == ["localhost:32801 live"]
    with pytest.raises(ConfigInvalid, match=r"name the listener: EDGE, IN\."):
        change(cluster(1), None, "localhost:1")


@pytest.mark.parametrize(
    ("listener", "addresses", "broker", "why"),
    [
        ("EDGE", ["a:1"], None, "1 address can't be told for 3 brokers"),
        ("EDGE", ["a:1,2,3,4"], None, "4 addresses can't be told for 3 brokers"),
        ("EDGE", ["a:1,2"], 0, "2 addresses can't be told for 1 broker:"),
        ("EDGE", ["a:1,2,1"], None, "brokers 0 and 2 would have the same address"),
        ("EDGE", ["127.0.0.1:9093"], 0, "brokers 0 and 1 would have the same address"),
        ("OUT", ["auto"], None, "this cluster has EDGE, IN"),
        ("EDGE", ["a:1"], 3, "brokers 0 to 2"),
        ("OUT", [], None, "this cluster has EDGE, IN"),
    ],
)
def test_a_change_that_can_not_be_is_refused_whole(
    listener: str, addresses: list[str], broker: int | None, why: str
) -> None:
    state = cluster()
    with pytest.raises(ConfigInvalid, match=why):
        change(state, listener, *addresses, broker=broker)
    assert state.advertised == {}


def test_a_change_of_nothing_is_no_change() -> None:
    state = cluster(1)
    change(state, "EDGE", "a:1")
    assert advertised_delta(state, AddressChange("EDGE", None, ["a:1"])) == []
    assert advertised_delta(state, AddressChange("IN", None, [])) == []


def test_what_an_earlier_run_has_stored_of_a_listener_or_broker_that_is_gone_can_be_forgotten() -> None:
    state = cluster(1)
    state.put([("advertised", "0/OLD", "a:1"), ("advertised", "2/EDGE", "a:2"), ("advertised", "0/EDGE", "a:3")])
    assert told(state) == ["a:3 live"]
    change(state, "old")
    assert state.advertised == {"2/EDGE": "a:2", "0/EDGE": "a:3"}
    change(state, "EDGE", broker=0)
    assert state.advertised == {"2/EDGE": "a:2"}
    change(state, None)
    assert state.advertised == {}


def test_records_are_read_back_and_others_left_out() -> None:
    state = cluster()
    change(state, "EDGE", "localhost:1,2,3")
    change(state, "IN", "auto")
    records = [("advertised", key, address) for key, address in state.advertised.items()]
    assert usable_records(records) == (records, [])
    for key, address in (("0/E", "a"), ("x/E", "a:1"), ("0", "a:1"), ("0/E", 5), ("0/E", "a:1,2"), ("0/E", " a:1")):
        with pytest.raises((ConfigInvalid, ValueError)):
            check_advertised_record(key, address)


def test_image_follows_advertised_addresses() -> None:
    state, image = cluster(), ClusterImage(1)
    image.apply(1, state.dump(), whole=True)
    assert spelled(image.static, image.advertised, 1) is None
    image.apply(2, advertised_delta(state, AddressChange("IN", None, ["auto"])))
    assert image.auto_listeners == {"IN"}
    assert spelled(image.static, image.advertised, 1) == "EDGE://127.0.0.1:9093,IN://auto"
    image.apply(3, state.dump(), whole=True)
    assert image.auto_listeners == frozenset() and image.advertised == {}
