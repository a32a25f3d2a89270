"""The addresses of brokers that clients are to be told -> the delta to store: whole, or refused whole. Pure.

As in config_state.py, and:

no_two_brokers_at_one_address  After a change, no two brokers have the same address on a listener: a client would take them
    for one broker.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple, TypedDict

from shards.config.advertised import AUTO, addresses_of, advertised
from shards.config.config_state import Change, ConfigState, storable
from shards.config.setting_changes import listeners_of
from shards.settings.errors import ConfigInvalid


class AddressChange(NamedTuple):
    """`listener` None: the cluster's only one. `broker` None: all of them, with an address for each. `addresses` as
    addresses_of takes them; none: what was set live is forgotten, without a `listener` of all of them."""

    listener: str | None
    broker: int | None
    addresses: Sequence[str]


class AdvertisedAddress(TypedDict):
    """The advertised address of a listener of one broker, for the admin API."""

    broker: int
    listener: str
    address: Annotated[str, "host:port; `auto`: the address that the client reached."]
    port: int
    source: Annotated[str, "live: set live; start: as the cluster was started; listener: where it listens."]
    guess: Annotated[bool, "It follows from where the cluster listens, not from what was said."]


def advertised_delta(state: ConfigState, change: AddressChange) -> list[Change]:
    """The delta of a change. Raises ConfigInvalid."""
    if not change.addresses:
        return _forgotten(state, change)
    listener = _listener(state, change.listener)
    brokers = _brokers(state, change)
    addresses = addresses_of(change.addresses)
    if addresses == [AUTO]:
        addresses *= len(brokers)
    if len(addresses) != len(brokers):
        raise ConfigInvalid.saying(_count_sentence(len(addresses), brokers), name="addresses")
    wanted = {f"{broker}/{listener}": address for broker, address in zip(brokers, addresses, strict=True)}
    _check_distinct(state, listener, {**state.advertised, **wanted})
    return storable([
        ("advertised", key, address) for key, address in wanted.items() if address != state.advertised.get(key)
    ])  # fmt: skip


def _forgotten(state: ConfigState, change: AddressChange) -> list[Change]:
    """The addresses to forget: without a listener, of all listeners; also of listeners and brokers that only an earlier run had."""
    wanted = None if change.listener is None else change.listener.upper()
    if wanted == "":
        raise ConfigInvalid("listener", "", "name a listener, or leave it out for all of them")
    if not any(key.partition("/")[2] == wanted for key in state.advertised):
        wanted = wanted and _listener(state, wanted)
    return [
        ("advertised", key, None)
        for key in state.advertised
        if wanted in (None, key.partition("/")[2]) and str(change.broker) in ("None", key.partition("/")[0])
    ]


def _listener(state: ConfigState, asked: str | None) -> str:
    known = list(dict.fromkeys(listeners_of(state.static)))
    if asked is None:
        if len(known) == 1:
            return known[0]
        raise ConfigInvalid.saying(f"name the listener: {', '.join(known)}.", name="listener")
    name = asked.upper()
    if known and name not in known:
        raise ConfigInvalid("listener", asked[:100], f"this cluster has {', '.join(known)}")
    return name


def _brokers(state: ConfigState, change: AddressChange) -> Sequence[int]:
    if change.broker is None:
        return range(state.brokers)
    if not 0 <= change.broker < state.brokers:
        raise ConfigInvalid("broker", change.broker, f"this cluster has brokers 0 to {state.brokers - 1}")
    return [change.broker]


def _count_sentence(given: int, brokers: Sequence[int]) -> str:
    start = f"{given} address{'' if given == 1 else 'es'} can't be told for {len(brokers)} broker{'' if len(brokers) == 1 else 's'}"
    example = ",".join(["localhost:32801", *(str(32801 + n) for n in range(1, min(len(brokers), 4)))])
    return f"{start}: each needs its own, as in {example}{',...' if len(brokers) > 4 else ''}, or {AUTO}."


def _check_distinct(state: ConfigState, listener: str, live: Mapping[str, str]) -> None:
    """Raises ConfigInvalid where two brokers would have one address (no_two_brokers_at_one_address)."""
    seen: dict[str, int] = {}
    for broker in range(state.brokers):
        address = advertised(state.static, live, broker, listener).address
        other = seen.setdefault(str(address), broker)
        if other != broker and address.host != AUTO:
            raise ConfigInvalid(
                "address", address, f"brokers {other} and {broker} would have the same address on {listener}"
            )


def check_advertised_record(key: str, address: object) -> None:
    """Raises ConfigInvalid, ValueError for what no advertised_delta has made."""
    broker, _, listener = key.partition("/")
    if not (broker.isascii() and broker.isdigit() and listener) or not isinstance(address, str):
        raise ValueError("it is not an address of a broker's listener")
    if addresses_of([address]) != [address]:
        raise ValueError("it is not spelled canonically")


def advertised_rows(state: ConfigState) -> Iterator[AdvertisedAddress]:
    """Every listener of every broker, for the admin API."""
    for listener in dict.fromkeys(listeners_of(state.static)):
        for broker in range(state.brokers):
            address, source, is_guess = advertised(state.static, state.advertised, broker, listener)
            text = AUTO if address.host == AUTO else str(address)
            yield {"broker": broker, "listener": listener, "address": text, "port": address.port, "source": source,
                   "guess": is_guess}  # fmt: skip
