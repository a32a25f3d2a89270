"""The addresses of the host names in overrides: looked up before the setting is in force, and again at intervals, as DNS changes.

host_records_are_of_overrides  A record `host` is of a name that an override has: of the command line, of a live change, or of an
    observed one. Its value is the sorted addresses, so that DNS may tell them in any order.
silent_names_starve_none  A name that DNS is silent about holds up others by WITHIN_S for each AT_ONCE of such names.
names_without_answer_keep_addresses  A name that DNS does not answer for keeps the addresses it had. One that never had any is
    refused in a live change, as by Kafka; of the command line or an earlier run, its number holds for no address: a note says so.
"""

import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import trio

from shards.config.config_state import Change, ConfigState
from shards.config.messages import SettingChange
from shards.settings.addresses import normalise_ip
from shards.settings.config_def import BROKER, parse
from shards.settings.errors import ConfigInvalid
from shards.settings.overrides import Overrides

HOST = "host"
WITHIN_S = 5.0
AT_ONCE = 50
MOST_NAMES = 200
"""The most host names in all overrides of a change."""
_threads = trio.CapacityLimiter(1000)
"""Threads of its own: the system's resolver may keep a thread for longer than WITHIN_S, and others would wait for it."""
MOST_ADDRESSES = 1000
_OF_ADDRESSES = {name for name, setting in BROKER.items() if isinstance(setting.default, Overrides)}
"""The settings whose overrides are of addresses, and so may name hosts."""
LookUp = Callable[[str], Awaitable[list[str]]]


class LookedUp(NamedTuple):
    """The addresses of those names that have some, and why the others have none."""

    addresses: dict[str, list[str]]
    faults: dict[str, str]


async def addresses_of(name: str) -> list[str]:
    """The addresses that the system's resolver has for a host, sorted. Raises OSError."""
    look_up = partial(socket.getaddrinfo, name, None, type=socket.SOCK_STREAM)
    found = await trio.to_thread.run_sync(look_up, abandon_on_cancel=True, limiter=_threads)
    return sorted({normalise_ip(str(address[0])) for *_, address in found})[:MOST_ADDRESSES]


async def looked_up(names: Iterable[str], look_up: LookUp) -> LookedUp:
    """AT_ONCE at a time, each for at most WITHIN_S from when it is asked (silent_names_starve_none)."""
    found = LookedUp({}, {})
    turns = trio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        try:
            async with turns:
                with trio.fail_after(WITHIN_S):
                    found.addresses[name] = await look_up(name)
        except trio.TooSlowError:
            found.faults[name] = f"DNS has not answered within {WITHIN_S:.0f} s"
        except (OSError, UnicodeError) as fault:
            found.faults[name] = str(getattr(fault, "strerror", None) or fault)

    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(one, name)
    return found


def _names_in_changes(changes: Sequence[SettingChange]) -> dict[str, str]:
    """The host names in the overrides of a change, and the setting of each; a setting that can't be is passed over here."""
    found: dict[str, str] = {}
    for _, name, value in changes:
        if value is not None:
            found |= dict.fromkeys(_names_in(name, value), name)
    return found


def names_in_state(state: ConfigState) -> set[str]:
    """The host names in all overrides that there are (host_records_are_of_overrides)."""
    tables = ({**state.static, **state.settings}, state.observed)
    texts = ((key.partition("/")[2], text) for table in tables for key, text in table.items())
    return {host for name, text in texts for host in _names_in(name, text)}


async def with_hosts(
    state: ConfigState,
    changes: Sequence[SettingChange],
    make: Callable[[], list[Change]],
    look_up: LookUp,
    *,
    may_lack: bool = False,
) -> Callable[[], list[Change]]:
    """`make`, which makes the delta of `changes`, and the addresses of host names that their overrides have. Raises ConfigInvalid
    where a name has no address, unless it `may_lack` one."""
    names = _names_in_changes(changes)
    if not names:
        return make
    if len(names) > MOST_NAMES:
        raise ConfigInvalid(next(iter(names.values())), None, f"names {len(names)} hosts, of at most {MOST_NAMES}")
    found = await looked_up(names, look_up)
    lacking = [name for name in found.faults if name not in state.hosts]
    if lacking and not may_lack:
        why = f"names host {lacking[0]}, which has no address: {found.faults[lacking[0]]}"
        raise ConfigInvalid(names[lacking[0]], None, why)
    return lambda: [*make(), *_hosts_delta(state, found.addresses)]


def followed_delta(state: ConfigState, found: LookedUp) -> list[Change]:
    """The changes of addresses, and the records of names that no override has any more, which go."""
    names = names_in_state(state)
    gone: list[Change] = [(HOST, name, None) for name in state.hosts if name not in names]
    return [
        *_hosts_delta(state, {name: addresses for name, addresses in found.addresses.items() if name in names}),
        *gone,
    ]


def _hosts_delta(state: ConfigState, addresses: Mapping[str, Sequence[str]]) -> list[Change]:
    """The records of names whose addresses are others than before."""
    return [(HOST, name, list(ips)) for name, ips in addresses.items() if state.hosts.get(name) != list(ips)]


def _names_in(name: str, text: str) -> tuple[str, ...]:
    try:
        value = parse(BROKER[name], name, text) if name in _OF_ADDRESSES else None
    except ConfigInvalid:
        return ()
    return value.hosts if isinstance(value, Overrides) else ()
