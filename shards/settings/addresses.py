"""The spelling of IP addresses, and the address that a client counts as."""

from socket import AF_INET, AF_INET6, inet_ntop, inet_pton

IPV6_BITS = 128
_MAPPED = bytes(10) + b"\xff\xff"  # the 96 bits before the IPv4 address in a v4-mapped IPv6 address (RFC 4291, 2.5.5.2)


def normalise_ip(text: str) -> str:
    """The one spelling of an IP address that pools, quotas and overrides are keyed by; ValueError if it is none.

    v4-mapped IPv6 becomes IPv4, IPv6 is compressed and lower case, and a zone (`%eth0`) is dropped: the same peer on
    another interface counts as the same address.
    """
    packed = packed_address(text)
    return inet_ntop(AF_INET if len(packed) == 4 else AF_INET6, packed)


def counted_address(text: str, ipv6_prefix: int) -> str:
    """The address that a client counts as: its own in its one spelling, and of an IPv6 one the first of its network of so many
    bits, so that all clients of the network count as one. ValueError if it is none."""
    packed = packed_address(text)
    if len(packed) == 4:
        return inet_ntop(AF_INET, packed)
    shift = IPV6_BITS - ipv6_prefix
    return inet_ntop(AF_INET6, (int.from_bytes(packed) >> shift << shift).to_bytes(16) if shift else packed)


def packed_address(text: str) -> bytes:
    """The 4 or 16 bytes of an address; of a v4-mapped IPv6 one the 4 of IPv4. ValueError if it is none."""
    if ":" not in text:
        try:
            return inet_pton(AF_INET, text)
        except (OSError, ValueError):
            raise ValueError(f"{text!r} is not an IP address") from None
    try:
        packed = inet_pton(AF_INET6, text.partition("%")[0])
    except (OSError, ValueError):
        raise ValueError(f"{text!r} is not an IP address") from None
    return packed[12:] if packed.startswith(_MAPPED) else packed
