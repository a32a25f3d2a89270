"""Where the clients of a listener are told to connect: what was set live, else what the cluster was started with. Pure.

Records are `BROKER/LISTENER` -> "host:port", or AUTO: the address that the client reached, its connection's local one.

one_address_at_a_version  At one version each broker has one address on a listener, the same in every answer that names it;
    with AUTO, the same for all that reached the same address.
guesses_are_marked  `is_guess`: the host is the one that the client reached (AUTO), or localhost for a listener bound to every
    address. Clients behind a mapped port or a proxy may need another one.

A client that a proxy announced (shards/config/proxy_option.py) has reached the proxy's address.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from shards.settings.errors import ConfigInvalid

AUTO = "auto"
WILDCARDS = ("", "0.0.0.0", "::")
LIVE, START, BOUND = "live", "start", "listener"
"""The source of an address: it was set live, the cluster was started with it, or it is where the listener is bound."""
_SETTING = "advertised.listeners"
_NAME = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?"
)
_NUMBERS = re.compile(r"[0-9.]+")
_EXAMPLE = "such as localhost:32801"


class Address(NamedTuple):
    """`host` without the brackets of an IPv6 address."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class Advertised(NamedTuple):
    """`address.host` is AUTO for the address that the client reached; `source`: LIVE, START or BOUND."""

    address: Address
    source: str
    is_guess: bool


# ---- how it is written


def addresses_of(texts: Iterable[str]) -> list[str]:
    """host:port, AUTO, or several of them with commas; a port alone is on the host before it: `localhost:32801,32802`.

    Canonical spelling: names in small letters, without a dot at the end. Raises ConfigInvalid.
    """
    found: list[str] = []
    host = ""
    for word in (word.strip() for text in texts for word in text.split(",")):
        if word == AUTO:
            found.append(AUTO)
        else:
            address = _address(f"{host}:{word}" if host and word.isdigit() else word)
            host = str(address).rpartition(":")[0]
            found.append(str(address))
    return found


def _address(text: str) -> Address:
    """Raises ConfigInvalid."""
    host, colon, port = text.rpartition(":")
    if (
        "://" in text
        or not colon
        or not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65535)
    ):
        raise _wrong(text, f"it must be host:port without a scheme, with a port from 1 to 65535, {_EXAMPLE}, or {AUTO}")
    bare = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    if bare in WILDCARDS:
        raise _wrong(text, f"clients can't connect to {host or 'no host'}; name the host that they reach, {_EXAMPLE}")
    if ":" in bare:
        if bare == host:
            raise _wrong(text, "an IPv6 address needs its brackets, as in [::1]:32801")
        try:
            return Address(str(IPv6Address(bare)), int(port))
        except ValueError:
            raise _wrong(text, f"{bare} is not an IPv6 address") from None
    if not _NAME.fullmatch(bare):
        raise _wrong(text, f"{bare!r} is not a host name; give host:port, {_EXAMPLE}")
    if _NUMBERS.fullmatch(bare) and not _is_ipv4(bare):
        raise _wrong(text, f"{bare} is not an IPv4 address")
    return Address(bare.lower().removesuffix("."), int(port))


def _is_ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


def _wrong(text: str, rule: str) -> ConfigInvalid:
    return ConfigInvalid("address", text[:300], rule)


def listeners_as_advertised(text: str, listeners: Collection[str], brokers: int = 1) -> str:
    """`advertised.listeners` of the command line in canonical spelling, with the ports of broker 0. `listeners`: empty if they are
    not known. `brokers`: broker b has the port plus b, and the last one's is checked.

    Raises ConfigInvalid, as Kafka does, for a name that is no listener: no client would get its address.
    """
    found = []
    for entry in (entry.strip() for entry in text.split(",")):
        name, separator, address = entry.partition("://")
        name = name.upper()
        if not separator:
            raise ConfigInvalid(_SETTING, entry[:300], "it must be NAME://host:port, such as EDGE://localhost:32801")
        if listeners and name not in listeners:
            raise ConfigInvalid(_SETTING, entry[:300], f"this cluster has the listeners {', '.join(listeners)}")
        canonical = addresses_of([address])[0]
        if canonical != AUTO:
            _of_broker(_parse_address(canonical), brokers - 1, _SETTING, entry)
        found.append(f"{name}://{canonical}")
    return ",".join(found)


def _of_broker(address: Address, broker: int, setting: str, text: str) -> Address:
    """The address of a broker by that of broker 0: its port plus `broker`. Raises ConfigInvalid, about `setting` and its value
    `text`, beyond 65535."""
    port = address.port + broker
    if port > 65535:
        raise ConfigInvalid(setting, text[:300], f"broker {broker} would have port {port}, and 65535 is the last")
    return address._replace(port=port)


# ---- what is in force


def advertised(static: Mapping[str, str], live: Mapping[str, str], broker: int, listener: str) -> Advertised:
    """Where clients of `listener` are told that `broker` is. `static` as of setting_changes.static_settings; `live`: the records.

    `advertised.listeners` of the command line is for all brokers: broker b has the port plus b, as with `--listener`. A
    listener bound to every address is told as localhost.
    """
    bound = _parse(static.get(f"{broker}/listeners", "")).get(listener, Address("", 0))
    record = live.get(f"{broker}/{listener}")
    if record is not None:
        found = Address(AUTO, 0) if record == AUTO else _parse_address(record)
        return _told(found, bound, LIVE)
    shared = _parse(static.get(f"/{_SETTING}", "")).get(listener)
    if shared is not None:
        return _told(Address(shared.host, shared.port + broker), bound, START)
    own = _parse(static.get(f"{broker}/{_SETTING}", "")).get(listener, bound)
    if own != bound:
        return _told(own, bound, START)
    everywhere = bound.host in WILDCARDS
    return Advertised(Address("localhost" if everywhere else bound.host, bound.port), BOUND, everywhere)


def _told(address: Address, bound: Address, source: str) -> Advertised:
    if address.host == AUTO:
        return Advertised(Address(AUTO, bound.port), source, True)
    if address.host in WILDCARDS:
        return Advertised(Address("localhost", address.port), source, True)
    return Advertised(address, source, False)


def spelled(static: Mapping[str, str], live: Mapping[str, str], broker: int) -> str | None:
    """`advertised.listeners` of a broker with what was set live; None when nothing was."""
    if not any(key.startswith(f"{broker}/") for key in live):
        return None
    names = _parse(static.get(f"{broker}/listeners", ""))
    found = {name: advertised(static, live, broker, name).address for name in names}
    return ",".join(f"{name}://{AUTO if each.host == AUTO else each}" for name, each in found.items())


def auto_listeners(static: Mapping[str, str], live: Mapping[str, str]) -> frozenset[str]:
    """The listeners on which at least one broker advertises AUTO."""
    found = {key.partition("/")[2] for key, address in live.items() if address == AUTO}
    for key, text in static.items():
        if key.partition("/")[2] == _SETTING:
            found |= {name for name, address in _parse(text).items() if address.host == AUTO}
    return frozenset(found)


def advertised_text(listener: str, bound: str, option: str | None, broker: int) -> str:
    """The entry of `advertised.listeners` for a listener's option `advertise=...`, in canonical spelling; None: where it is bound.

    Raises ConfigInvalid.
    """
    if option is None:
        return f"{listener}://{bound}"
    canonical = addresses_of([option])[0]
    if canonical == AUTO:
        return f"{listener}://{AUTO}"
    return f"{listener}://{_of_broker(_parse_address(canonical), broker, 'advertise', option)}"


def _parse_address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host.strip("[]"), int(port))


@lru_cache(maxsize=256)
def _parse(text: str) -> dict[str, Address]:
    """`NAME://host:port,...` by name; an entry that can't be read is left out (the settings were validated before)."""
    found = {}
    for entry in text.split(","):
        name, separator, address = entry.strip().partition("://")
        host, _, port = address.rpartition(":")
        if separator and address == AUTO:
            found[name] = Address(AUTO, 0)
        elif separator and port.isdigit():
            found[name] = Address(host.strip("[]"), int(port))
    return found
