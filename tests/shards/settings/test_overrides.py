"""Parsing overrides and finding the one that holds for an address, against a plain scan with `ipaddress`."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.settings.addresses import normalise_ip
from shards.settings.overrides import NO_OVERRIDES, Overrides


def test_an_exact_entry_a_network_and_nothing() -> None:
    overrides = Overrides.parse(["10.0.0.1:5", "10.0.0.0/8:100", "10.1.0.0/16:7"])
    assert overrides.lookup("10.0.0.1") == 5
    assert overrides.lookup("10.1.2.3") == 7
    assert overrides.lookup("10.2.0.1") == 100
    assert overrides.lookup("11.0.0.1") is None


def test_zero_is_a_number_like_any_other() -> None:
    assert Overrides.parse("10.0.0.1:0,10.0.0.0/24:3").lookup("10.0.0.1") == 0


@pytest.mark.parametrize("text", ["[2001:db8::]/32:5", "[2001:db8::/32]:5", "[2001:DB8:0::]/32:5"])
def test_an_ipv6_network_in_either_spelling(text: str) -> None:
    overrides = Overrides.parse(text)
    assert overrides.entries == {"2001:db8::/32": 5}
    assert overrides.lookup("2001:db8:1::1") == 5
    assert overrides.lookup("2001:db9::1") is None


def test_v4_mapped_counts_as_ipv4_on_both_sides() -> None:
    assert Overrides.parse("[::ffff:10.0.0.1]:5").lookup("10.0.0.1") == 5
    assert Overrides.parse("10.0.0.1:5").lookup("::ffff:10.0.0.1") == 5
    assert Overrides.parse("[::ffff:10.0.0.0]/104:5") == Overrides.parse("10.0.0.0/8:5")
    assert Overrides.parse("[::]/0:5").lookup("10.0.0.1") is None


def test_a_json_list_and_a_comma_separated_one_read_the_same() -> None:
    assert Overrides.parse('["10.0.0.1:5", "[::1]:6"]') == Overrides.parse("10.0.0.1:5, [::1]:6")
    assert Overrides.parse("[::1]:6,10.0.0.1:5") == Overrides.parse(["10.0.0.1:5", "[::1]:6"])
    assert Overrides.parse("") == Overrides.parse("[]") == Overrides.parse([]) == NO_OVERRIDES
    assert not NO_OVERRIDES


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("10.0.0.1", "not of the form"),
        ("10.0.0.1:", "not a whole number"),
        ("10.0.0.1:-1", "not a whole number"),
        ("10.0.0.1:1.5", "not a whole number"),
        ("10.0.0.1:²", "not a whole number"),
        (f"10.0.0.1:{2**63}", "not a whole number"),
        (":5", "not of the form"),
        ("", "not of the form"),
        ("example..com:5", "neither an IP address nor a host name"),
        ("example.com/8:5", "neither an IP address nor a host name"),
        ("[example.com]:5", "neither an IP address nor a host name"),
        ("10.0.0:5", "neither an IP address nor a host name"),
        ("010.0.0.1:5", "neither an IP address nor a host name"),
        ("2001:db8::1:5", "in brackets"),
        ("[2001:db8::1:5", "write an IPv6 address as"),
        ("[2001:db8::1]x:5", "write an IPv6 address as"),
        ("[2001:db8::1]", "not of the form|not a whole number"),
        ("10.0.0.1/8:5", "the network is 10.0.0.0/8"),
        ("10.0.0.0/33:5", "prefix length"),
        ("10.0.0.0/:5", "prefix length"),
        ("[2001:db8::]/129:5", "prefix length"),
        ("[::ffff:10.0.0.0]/8:5", "prefix length"),
    ],
)
def test_a_bad_entry_is_named_with_what_is_wrong(entry: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        Overrides.parse(["10.9.9.9:1", entry])
    assert repr(entry) in str(error.value)


@pytest.mark.parametrize("text", ['["10.0.0.1:5"', "[1, 2]", '{"a": 1}', '["10.0.0.1:5", 3]'])
def test_a_list_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="overrid"):
        Overrides.parse(text)


def test_one_address_twice_must_agree() -> None:
    assert len(Overrides.parse("10.0.0.1:5,::ffff:10.0.0.1:5".replace("::ffff:10.0.0.1", "[::ffff:10.0.0.1]"))) == 1
    with pytest.raises(ValueError, match=r"listed twice, with 5 and with 6"):
        Overrides.parse("10.0.0.1:5,10.0.0.1/32:6")


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::FFFF:10.0.0.1", "10.0.0.1"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_an_address_has_one_spelling(text: str, normal: str) -> None:
    assert normalise_ip(text) == normal


@pytest.mark.parametrize("text", ["", "localhost", "10.0.0.1 ", "10.0.0.256", "1:2", "10.0.0.1\0", "%eth0", "ä.b.c.d"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an IP address"):
        normalise_ip(text)


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

ADDRESSES = st.one_of(
    st.integers(0, 2**32 - 1).map(lambda n: ipaddress.ip_address(n & 0x0F0F0F0F)),
    st.integers(0, 2**128 - 1).map(lambda n: ipaddress.IPv6Address((0x20010DB8 << 96) | (n & 0xF << 90) | (n & 3))),
)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    address = draw(ADDRESSES)
    return ipaddress.ip_network(f"{address}/{draw(st.integers(0, address.max_prefixlen))}", strict=False)


@given(st.dictionaries(networks(), st.integers(0, 2**63 - 1), max_size=12), st.lists(ADDRESSES, min_size=1, max_size=8))
def test_lookup_finds_what_a_scan_for_the_longest_prefix_finds(
    entries: dict[ipaddress.IPv4Network | ipaddress.IPv6Network, int],
    addresses: list[ipaddress.IPv4Address | ipaddress.IPv6Address],
) -> None:
    texts = [
        f"{network}:{value}" if network.version == 4 else f"[{network.network_address}]/{network.prefixlen}:{value}"
        for network, value in entries.items()
    ]
    overrides = Overrides.parse(texts)
    assert Overrides.parse(str(overrides)) == overrides
    for address in addresses:
        covering = [n for n in entries if n.version == address.version and address in n]
        expected = entries[max(covering, key=lambda n: n.prefixlen)] if covering else None
        assert overrides.lookup(str(address)) == expected
        if address.version == 4:
            assert overrides.lookup(f"::ffff:{address}") == expected


@given(st.text(alphabet='0123456789abcdef.:/[]%, "', max_size=40))
def test_any_text_is_parsed_or_refused_with_a_sentence(text: str) -> None:
    try:
        overrides = Overrides.parse(text)
    except ValueError as error:
        assert "overrid" in str(error)
    else:
        assert Overrides.parse(str(overrides)) == overrides
