"""The addresses that clients count as: IPv6 networks (turnstile.ipv6.prefix.length), and what overrides and quotas say of them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.limits.connection_limits import ConnectionLimits
from shards.limits.ip_quotas import IpQuotaTable
from shards.limits.quota_entities import CONNECTION_RATE
from shards.settings.addresses import counted_address
from shards.settings.overrides import Overrides

addresses = st.one_of(st.ip_addresses(v=6), st.ip_addresses(v=4))


@given(addresses, st.integers(1, 128))
def test_an_ipv6_client_counts_as_the_first_address_of_its_network(
    address: IPv4Address | IPv6Address, length: int
) -> None:
    counted = counted_address(str(address), length)
    if isinstance(address, IPv4Address):
        assert counted == str(address)
    elif address.ipv4_mapped is not None:
        assert counted == str(address.ipv4_mapped)
    else:
        assert IPv6Address(counted) == ip_network(f"{address}/{length}", strict=False).network_address
    assert counted_address(counted, length) == counted


@given(st.dictionaries(st.ip_addresses(v=6, network="2001:db8::/62"), st.integers(0, 9), min_size=1, max_size=6))
def test_of_overrides_of_one_network_the_smallest_holds(numbers: dict[IPv6Address, int]) -> None:
    limits = ConnectionLimits().with_change("kafka_connections_max_per_ip", "100")
    limits = limits.with_change("kafka_connections_max_overrides", ",".join(f"[{ip}]:{n}" for ip, n in numbers.items()))
    by_network = ConnectionLimits({**limits.given, "turnstile.ipv6.prefix.length": 64})
    for ip in numbers:
        alike = [n for other, n in numbers.items() if int(other) >> 64 == int(ip) >> 64]
        assert by_network.rule_of(f"ip:{by_network.counted(str(ip))}").cap == min(alike)
    assert by_network.rule_of(f"ip:{by_network.counted('2001:db8:ffff::1')}").cap == 100


@pytest.mark.parametrize(
    ("entry", "cap"),
    [
        ("[2001:db8::]/32:7", 7), ("[2001:db8:0:1::]/64:7", 7), ("[2001:db8:0:1:8000::]/65:7", 7),
        ("[2001:db8:0:1::9]:7", 7), ("[2001:db8:0:2::]/64:7", None), ("10.0.0.0/8:7", None),
    ],
)  # fmt: skip
def test_an_override_covers_the_networks_that_it_has_an_address_of(entry: str, cap: int | None) -> None:
    assert Overrides.parse(entry).counted_by(64).lookup("2001:db8:0:1::") == cap


def test_the_quota_of_an_address_is_that_of_its_network() -> None:
    def quota(ip: str | None, per_s: float) -> tuple[tuple[tuple[str, str | None], ...], dict[str, float]]:
        return (("ip", ip),), {CONNECTION_RATE: per_s}

    rows = [quota("2001:db8::1", 5), quota("2001:db8:0:1::", 3), quota("10.0.0.1", 9), quota(None, 7)]
    assert IpQuotaTable(rows).counted_by(56).by_ip == {"2001:db8::": 3, "10.0.0.1": 9, None: 7}
