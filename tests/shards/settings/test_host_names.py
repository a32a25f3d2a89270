"""Host names in overrides: which there can be, and the addresses that their numbers hold for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.limits.connection_limits import ConnectionLimits
from shards.settings.errors import ConfigInvalid
from shards.settings.host_names import host_name
from shards.settings.overrides import Overrides


@pytest.mark.parametrize("text", ["localhost", "Edge.Example.COM", "a-1.b_2.c3", "x." * 120 + "y", "edge.example.com."])
def test_a_host_name_is_kept_in_lower_case(text: str) -> None:
    assert host_name(text) == text.lower()
    assert Overrides.parse(f"{text}:7").entries == {text.lower(): 7}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.0.0.256",
        "10.0.0",
        "300",
        "0x7f000001",
        "a.0x7f",
        "-a.b",
        "a-.b",
        "a..b",
        "a b",
        "x" * 64,
        "y." * 130,
        "a/b",
    ],
)
def test_what_is_neither_an_address_nor_a_name_is_refused(text: str) -> None:
    assert host_name(text) is None
    with pytest.raises(ValueError, match="override"):
        Overrides.parse(f"{text}:7")


names = st.sampled_from(["a.example", "b.example", "c.example"])
addresses = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3", "2001:db8::1"])


@given(
    st.dictionaries(names, st.integers(0, 9)), st.dictionaries(addresses, st.integers(0, 9)),
    st.dictionaries(names, st.lists(addresses, unique=True)),
)  # fmt: skip
def test_a_hosts_number_holds_for_its_addresses_unless_they_have_their_own(
    by_name: dict[str, int], by_address: dict[str, int], dns: dict[str, list[str]]
) -> None:
    entries = [f"{name}:{n}" for name, n in by_name.items()]
    entries += [f"[{ip}]:{n}" if ":" in ip else f"{ip}:{n}" for ip, n in by_address.items()]
    overrides = Overrides.parse(entries)
    assert Overrides.parse(str(overrides)) == overrides and set(overrides.hosts) == set(by_name)
    resolved = overrides.resolved(dns)
    for ip in ("10.0.0.1", "10.0.0.2", "10.0.0.3", "2001:db8::1", "10.0.0.9"):
        of_hosts = [n for name, n in by_name.items() if ip in dns.get(name, ())]
        assert resolved.lookup(ip) == by_address.get(ip, min(of_hosts, default=None))
        assert overrides.lookup(ip) == by_address.get(ip)


def test_a_host_counts_as_the_networks_of_its_addresses() -> None:
    given_ = ConnectionLimits().given | {
        "kafka_connections_max_overrides": Overrides.parse("edge.example:7"), "turnstile.ipv6.prefix.length": 64,
    }  # fmt: skip
    limits = ConnectionLimits(given_, {"edge.example": ["2001:db8:0:1::9", "10.0.0.1"]})
    assert limits.rule_of("ip:2001:db8:0:1::").cap == limits.rule_of("ip:10.0.0.1").cap == 7
    assert limits.rule_of("ip:10.0.0.2").cap is None


def test_limits_without_a_cluster_take_no_host_names() -> None:
    with pytest.raises(ConfigInvalid, match=r"edge\.example is a host name, which a running cluster alone looks up"):
        ConnectionLimits().with_change("kafka_connections_max_overrides", "edge.example:7")
