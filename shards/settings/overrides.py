"""Per-IP numbers for addresses and networks: `10.0.0.1:5`, `10.0.0.0/8:100`, `[2001:db8::1]:5`, `[2001:db8::]/32:5`.

Used for `kafka_connections_max_overrides`, `kafka_connection_rate_limit_overrides` and
`max.connections.per.ip.overrides`. Of several entries that cover an address, the most specific one holds; a network's
number holds for each address in it, not for all of them together. A host name, `edge.example.com:5`, stands for the addresses that
DNS has for it (host_names.py).
"""

from collections.abc import Iterable, Mapping
from socket import AF_INET, AF_INET6, inet_ntop

from shards.settings.addresses import IPV6_BITS, counted_address, packed_address
from shards.settings.host_names import HostAddresses, host_name
from shards.settings.override_entries import (
    Override,
    OverrideEntries,
    json_of,
    number_in,
    numbers_of,
    split_commas,
    strings_of,
)

_BITS = {AF_INET: 32, AF_INET6: IPV6_BITS}
_LARGEST = 2**63 - 1  # both vocabularies keep these numbers in 64 signed bits


class Overrides(OverrideEntries):
    """The numbers that hold for addresses; immutable. `lookup` costs at most a dict probe per distinct prefix length."""

    __slots__ = ("_exact", "_v4", "_v6", "hosts")

    def __init__(self, entries: Mapping[str, int]) -> None:
        """`entries`: normalised address, `network/length` or host name -> number, as `parse` makes them."""
        super().__init__(entries)
        self._exact: dict[str, int] = {}
        v4: dict[int, dict[int, int]] = {}
        v6: dict[int, dict[int, int]] = {}
        self.hosts: tuple[str, ...] = tuple(key for key in self.entries if is_host(key))
        for key, value in self.entries.items():
            if is_host(key):
                continue
            address, slash, length = key.partition("/")
            if not slash:
                self._exact[address] = value
                continue
            packed = packed_address(address)
            shift = len(packed) * 8 - int(length)
            (v4 if len(packed) == 4 else v6).setdefault(shift, {})[int.from_bytes(packed) >> shift] = value
        self._v4 = sorted(v4.items())  # least shift first: the longest prefix is found first
        self._v6 = sorted(v6.items())

    @classmethod
    def parse(cls, entries: Iterable[str] | str) -> "Overrides":
        """The overrides of a list of entries, or of its text: JSON or comma-separated. ValueError names the first bad entry."""
        return cls(numbers_of(_split(entries) if isinstance(entries, str) else entries, _parse_entry))

    def resolved(self, addresses: HostAddresses) -> "Overrides":
        """The overrides without host names: each number holds for the host's addresses, of several hosts of one address the
        smallest, and an entry of the address itself goes before them."""
        if not self.hosts:
            return self
        numbers: dict[str, int] = {}
        for host in self.hosts:
            for ip in addresses.get(host, ()):
                numbers[ip] = min(self.entries[host], numbers.get(ip, self.entries[host]))
        return Overrides(numbers | {key: n for key, n in self.entries.items() if not is_host(key)})

    def counted_by(self, ipv6_prefix: int) -> "Overrides":
        """The overrides for addresses that count as `counted_address` says: of several that count as one the smallest number
        holds."""
        if ipv6_prefix == IPV6_BITS or not any(":" in key for key in self.entries):
            return self
        numbers: dict[str, int] = {}
        for key, value in self.entries.items():
            address, slash, length = key.partition("/")
            is_wider = ":" not in key or (slash and int(length) <= ipv6_prefix)
            counted = key if is_wider else counted_address(address, ipv6_prefix)
            numbers[counted] = min(value, numbers.get(counted, value))
        return Overrides(numbers)

    def lookup(self, ip: str) -> int | None:
        """The number that holds for `ip`, None where no entry covers it. `ip` is an address, in any spelling."""
        value = self._exact.get(ip)
        if value is not None:
            return value
        if ":" not in ip:
            if not self._v4:
                return None
            address = int.from_bytes(packed_address(ip))
            networks = self._v4
        else:
            packed = packed_address(ip)
            value = self._exact.get(inet_ntop(AF_INET if len(packed) == 4 else AF_INET6, packed))
            if value is not None:
                return value
            address = int.from_bytes(packed)
            networks = self._v4 if len(packed) == 4 else self._v6
        for shift, by_prefix in networks:
            value = by_prefix.get(address >> shift)
            if value is not None:
                return value
        return None

    def listed(self) -> list[str]:
        """The entries, each as it is written."""
        return [f"{_spelled(key)}:{value}" for key, value in self.entries.items()]


NO_OVERRIDES = Overrides({})


def _split(text: str) -> list[str]:
    text = text.strip()
    if not text.startswith("["):
        return split_commas(text)
    parsed = json_of(text)
    if parsed is None:
        # `[2001:db8::1]:5` also starts with a bracket, but its bracket closes before the colon and the number.
        if text.endswith("]"):
            raise ValueError(f"overrides {text!r} are neither a JSON list of strings nor comma-separated")
        return split_commas(text)
    return strings_of(text, parsed, "10.0.0.1:5")


def _parse_entry(entry: str) -> Override:
    text = entry.strip()
    target, colon, number = text.rpartition(":")
    if not colon or not target:
        raise ValueError(f"override {entry!r} is not of the form ip:number, network/length:number or host:number")
    count = number_in(entry, number, 0, _LARGEST)
    return Override(_parse_target(entry, target), count)


def _parse_target(entry: str, target: str) -> str:
    """`10.0.0.1`, `10.0.0.0/8`, `[v6]`, `[v6]/32` or `[v6/32]` -> the key in `entries`."""
    if target.startswith("["):
        inside, bracket, outside = target[1:].partition("]")
        if not bracket or (outside and not outside.startswith("/")) or ("/" in inside and outside):
            raise ValueError(
                f"override {entry!r}: write an IPv6 address as [address]:number or [address]/length:number"
            )
        target = inside + outside
    elif ":" in target:
        raise ValueError(
            f"override {entry!r}: write an IPv6 address in brackets, [address]:number, "
            "because its last group and the number cannot be told apart"
        )
    address, slash, length = target.partition("/")
    try:
        packed = packed_address(address)
    except ValueError:
        host = None if slash or "[" in entry else host_name(address)
        if host is None:
            raise ValueError(f"override {entry!r}: {address!r} is neither an IP address nor a host name") from None
        return host
    family = AF_INET if len(packed) == 4 else AF_INET6
    if not slash:
        return inet_ntop(family, packed)
    bits = _prefix_length(entry, length, _BITS[family], mapped=family == AF_INET and ":" in address)
    if int.from_bytes(packed) & ((1 << (_BITS[family] - bits)) - 1):
        network = (int.from_bytes(packed) >> (_BITS[family] - bits)) << (_BITS[family] - bits)
        proper = f"{inet_ntop(family, network.to_bytes(len(packed)))}/{bits}"
        raise ValueError(f"override {entry!r}: {target} has bits beyond its prefix; the network is {proper}")
    if bits == _BITS[family]:
        return inet_ntop(family, packed)
    return f"{inet_ntop(family, packed)}/{bits}"


def _prefix_length(entry: str, text: str, most: int, *, mapped: bool) -> int:
    """A length written for a v4-mapped network counts the 96 bits of the mapping too."""
    offset = 96 if mapped else 0
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and offset <= int(text) <= most + offset):
        raise ValueError(f"override {entry!r}: prefix length {text!r} is not a number from {offset} to {most + offset}")
    return int(text) - offset


def is_host(key: str) -> bool:
    """True for the key of an entry that is a host name: that of an address has a colon, or its last part is a number."""
    return ":" not in key and "/" not in key and not key.rpartition(".")[2].isdigit()


def _spelled(key: str) -> str:
    if ":" not in key:
        return key
    address, slash, length = key.partition("/")
    return f"[{address}]{slash}{length}"
