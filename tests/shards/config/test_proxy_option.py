"""Which options of a listener say what of its proxies, and which peers are trusted."""

import pytest

from shards.config.proxy_option import proxy_notes, proxy_option
from shards.settings.errors import ConfigInvalid


def option(*options):
    return proxy_option("EDGE", options)


def test_a_listener_without_it_has_none():
    assert option() is None and option("sasl", "tls", "cert=x", "advertise=auto") is None


def test_peers_of_trusted_networks_are_trusted_and_no_others():
    found = option("tls", "proxy=required", "trusted=127.0.0.0/8+10.1.2.3+2001:db8::/32")
    assert found.required
    assert all(map(found.trusts, ("127.9.9.9", "10.1.2.3", "2001:db8:1::")))
    assert not any(map(found.trusts, ("10.1.2.4", "128.0.0.1", "2001:db9::", "::1")))


def test_a_mapped_network_is_that_of_ipv4():
    assert option("proxy=required", "trusted=::ffff:10.0.0.0/104").trusts("10.9.9.9")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("proxy=required",), "it needs trusted="),
        (("proxy=required", "trusted="), "it needs trusted="),
        (("trusted=10.0.0.0/8",), "it must be proxy=required or proxy=allowed"),
        (("proxy=on", "trusted=10.0.0.0/8"), "'proxy=on': it must be proxy=required or proxy=allowed"),
        (("proxy=required", "trusted=10.0.0.1/8"), "no bit set beyond its length"),
        (("proxy=required", "trusted=10.0.0.0/8+"), "'trusted=': it must be an address, or a network"),
        (("proxy=required", "trusted=proxy.example"), "'trusted=proxy.example': it must be an address"),
    ],
)
def test_what_can_not_be_is_said(options, sentence):
    with pytest.raises(ConfigInvalid) as caught:
        option(*options)
    assert str(caught.value).startswith("listener EDGE cannot be ") and sentence in str(caught.value)


def test_what_lets_clients_forge_is_noted():
    assert proxy_notes("EDGE", option("proxy=required", "trusted=10.0.0.0/8")) == []
    (allowed,) = proxy_notes("EDGE", option("proxy=allowed", "trusted=10.0.0.0/8"))
    assert "proxy=allowed: any client of a trusted network can announce itself as any address" in allowed
    (everybody,) = proxy_notes("EDGE", option("proxy=required", "trusted=10.0.0.0/8+::/0"))
    assert "trusts every address" in everybody
