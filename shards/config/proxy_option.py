"""`proxy=required,trusted=NETWORK+NETWORK`: which peers of a listener speak the PROXY protocol. Pure.

never_guessed  With `proxy=required` a peer of a trusted network has to send the header, and no other peer's is taken: what
    a connection is follows from its address alone. Only `proxy=allowed` looks at the first bytes, and only of trusted peers.

Source: HAProxy's doc/proxy-protocol.txt, section 2 ("MUST not try to guess"); `tcp-request connection expect-proxy layer4`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from shards.settings.errors import ConfigInvalid

PROXY, TRUSTED = "proxy", "trusted"
REQUIRED, ALLOWED = "required", "allowed"
_EXAMPLE = "proxy=required,trusted=127.0.0.0/8+10.0.0.0/8"
_KNOWN_PEERS = 4096


class ProxyOption:
    """`required`: a trusted peer has to send the header; else it may. `networks`: what is trusted."""

    def __init__(self, networks: Collection[IPv4Network | IPv6Network], *, required: bool) -> None:
        self.required = required
        self.networks = tuple(networks)
        self.trusts = lru_cache(maxsize=_KNOWN_PEERS)(self._trusts)
        """True if an address, in the spelling of `normalise_ip`, is of a trusted network."""

    def _trusts(self, ip: str) -> bool:
        address = ip_address(ip)
        return any(address in network for network in self.networks)

    @property
    def trusts_everybody(self) -> bool:
        """True if some family has no address that is not trusted."""
        return any(network.prefixlen == 0 for network in self.networks)


def proxy_option(listener: str, options: Collection[str]) -> ProxyOption | None:
    """The proxy option among a listener's options, as `--listener` has them; None where its peers are its clients. Raises
    ConfigInvalid."""
    given = dict(option.split("=", 1) for option in options if option.startswith((f"{PROXY}=", f"{TRUSTED}=")))
    if not given:
        return None
    mode = given.get(PROXY)
    if mode not in (REQUIRED, ALLOWED):
        text = f"{PROXY}={mode}" if mode is not None else f"{TRUSTED}={given[TRUSTED]}"
        raise _wrong(
            listener,
            text,
            f"it must be {PROXY}={REQUIRED} or {PROXY}={ALLOWED}, with {TRUSTED}=NETWORK, as in {_EXAMPLE}",
        )
    if not given.get(TRUSTED):
        raise _wrong(listener, f"{PROXY}={mode}", f"it needs {TRUSTED}=, the networks of its proxies, as in {_EXAMPLE}")
    return ProxyOption([_network(listener, text) for text in given[TRUSTED].split("+")], required=mode == REQUIRED)


def _network(listener: str, text: str) -> IPv4Network | IPv6Network:
    """A network in the notation of KIP-1276. Raises ConfigInvalid."""
    try:
        network = ip_network(text.strip())
    except ValueError:
        raise _wrong(
            listener,
            f"{TRUSTED}={text}",
            "it must be an address, or a network such as 10.0.0.0/8 with no bit set beyond its length",
        ) from None
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None and network.prefixlen >= 96:
        return IPv4Network((network.network_address.ipv4_mapped, network.prefixlen - 96))
    return network


def _wrong(listener: str, text: str, rule: str) -> ConfigInvalid:
    return ConfigInvalid(f"listener {listener}", text[:300], rule)


def proxy_notes(listener: str, option: ProxyOption) -> list[str]:
    """Notes on it for people: where a client can say that it is another one."""
    notes = []
    if not option.required:
        notes.append(
            f"listener {listener} has proxy=allowed: any client of a trusted network can announce itself as any address, and "
            "one that announces nothing counts as itself; proxy=required lets proxies alone announce clients"
        )
    if option.trusts_everybody:
        notes.append(f"listener {listener} trusts every address: each client can announce itself as any address")
    return notes
