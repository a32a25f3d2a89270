"""The shares of drivers in the clients of a group, and the addresses that each uses.

Without addresses of the workers' hosts, a driver plays every n-th client, as the processes of one machine do, from the
scenario's own addresses, which each host then needs: loopback ones, for example. With them, they stand for the scenario's:

each_client_once   every client is played by one driver
one_address        an address of the scenario is one address of one host, in every group; the drivers of that host share its
                   clients, so that a limit for an address meets as many connections as on one machine
own_addresses      a driver connects from addresses that its host has
"""

from __future__ import annotations

import ipaddress
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from turnstile.load.sources import SourceAddresses
from turnstile.load.spec import ClientGroup


class Company:
    """The addresses of all drivers' hosts, in turn, and the drivers that have each."""

    def __init__(self, usable: Sequence[Sequence[str]]) -> None:
        """`usable`: of each driver, the addresses that it may use."""
        self.drivers = len(usable)
        holders: dict[str, list[int]] = {}
        for driver, addresses in enumerate(usable):
            for address in addresses:
                holders.setdefault(address, []).append(driver)
        hosts: dict[tuple[int, ...], list[str]] = {}
        for address, drivers in holders.items():
            hosts.setdefault(tuple(drivers), []).append(address)
        self.addresses: list[str] = []
        self._holders: list[Sequence[int]] = []
        self._places: list[int] = []
        """The place of each address among those of the same drivers."""
        for place, row in enumerate(zip_longest(*hosts.values())):
            for of_host, address in zip(hosts, row, strict=True):
                if address is not None:
                    self.addresses.append(address)
                    self._holders.append(of_host)
                    self._places.append(place)

    def __bool__(self) -> bool:
        return bool(self.addresses)

    def driver_of(self, address: int, turn: int) -> int:
        """The driver that plays the `turn`-th client of an address, which is given by its place in `addresses`."""
        holders = self._holders[address]
        return holders[(turn + self._places[address]) % len(holders)]


class Numbering:
    """The addresses that the groups of a scenario name, numbered: one that two groups name has one number."""

    def __init__(self, sources: Sequence[SourceAddresses]) -> None:
        self._firsts: list[tuple[int, int]] = []
        self._numbers: list[int] = []
        number = 0
        for version in (4, 6):
            networks = [network for each in sources for network in each.networks if network.version == version]
            for network in sorted(ipaddress.collapse_addresses(networks)):  # type: ignore[type-var]
                self._firsts.append((version, int(network.network_address)))
                self._numbers.append(number)
                number += network.num_addresses

    def of(self, address: str) -> int:
        """The number of an address that one of the groups names."""
        found = ipaddress.ip_address(address)
        at = bisect_right(self._firsts, (found.version, int(found))) - 1
        return self._numbers[at] + int(found) - self._firsts[at][1]


class StandIns:
    """Addresses of hosts that stand for a group's own; an index as in the group's own."""

    def __init__(self, own: SourceAddresses | None, numbering: Numbering, company: Company) -> None:
        """`own`: None where the group leaves its addresses to the kernel: then each host's stand for themselves."""
        self.networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        self.text = f"{len(company.addresses):,} addresses of the workers"
        self.version = ipaddress.ip_address(company.addresses[0]).version
        self._own = own
        self._numbering = numbering
        self._addresses = company.addresses
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._addresses) if self._own is None else len(self._own)

    def __contains__(self, address: object) -> bool:
        return address in self._addresses

    def __getitem__(self, index: int) -> str:
        return self._addresses[self.place(index)]

    def place(self, index: int) -> int:
        """The index of it among the company's addresses."""
        index %= len(self)
        if self._own is None:
            return index
        known = self._places.get(index)
        if known is None:
            known = self._places[index] = self._numbering.of(self._own[index]) % len(self._addresses)
        return known


@dataclass(frozen=True)
class DriversGroup(ClientGroup):
    """A group as one driver plays it: from addresses of its host."""

    own_clients: Sequence[int] = ()
    """The numbers of the clients, in order."""

    def share(self, process: int, processes: int) -> Sequence[int]:
        """Own clients, however many drivers there are."""
        return self.own_clients


def of_driver(group: ClientGroup, numbering: Numbering, company: Company, driver: int) -> ClientGroup:
    """The group as that driver plays it."""
    if not company:
        return group
    sources = StandIns(group.sources, numbering, company)
    size = len(sources)
    clients = array("L")
    for client in range(group.clients):
        index = client if group.recorded is None else group.recorded.address[client]
        if company.driver_of(sources.place(index), client // size) == driver:
            clients.append(client)
    return DriversGroup(**{**vars(group), "sources": sources, "own_clients": clients})
