"""Client addresses as numbers: parsed once for each distinct spelling, by the C library's own rules.

one_client_in_both_families  an address is 128 bits, in two numbers; an IPv4 address is its v4-mapped IPv6 address, so both
    spellings are one client
no_address_is_guessed  a text that is no address is none: no guess, no pattern that nearly fits ("10.0.0.256", "10.0.0", ":")
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from turnstile.pipeline.events.arrays import Array
from turnstile.pipeline.inputs.dotted import dotted

MAPPED = 0xFFFF
"""Bits 32 to 47 of an IPv4 address as v4-mapped IPv6; above them are zeros."""
NOT_AN_ADDRESS = "the client address is not an IP address"


class AddressBits(NamedTuple):
    """The high and the low 64 bits of an address as IPv6."""

    high: int
    low: int


_KNOWN_AT_MOST = 1_000_000
_known: dict[str, AddressBits | None] = {}
"""Spelling -> address, in this worker process. A log has far fewer addresses than rows, and tasks follow each other."""


def parse(text: str) -> AddressBits | None:
    """The bits of an address in any spelling, its zone left out; None for what is no address."""
    plain = text.strip().partition("%")[0]
    try:
        if ":" not in plain:
            return AddressBits(0, MAPPED << 32 | int.from_bytes(socket.inet_pton(socket.AF_INET, plain)))
        high, low = struct.unpack(">QQ", socket.inet_pton(socket.AF_INET6, plain))
    except (OSError, ValueError):
        return None
    return AddressBits(high, low)


def name(high: int, low: int) -> str:
    """The spelling that limits are keyed by."""
    if high == 0 and low >> 32 == MAPPED:
        return str(IPv4Address(low & 0xFFFFFFFF))
    return str(IPv6Address(high << 64 | low))


class AddressColumns(NamedTuple):
    """high and low 64 bits (unsigned) of each text, and whether it is an address at all."""

    high: Array
    low: Array
    is_address: Array


def numbers(texts: pyarrow.Array) -> AddressColumns:
    """The addresses of a column of text. Null is none."""
    coded = pyarrow.compute.dictionary_encode(texts)
    distinct = coded.dictionary
    codes = pyarrow.compute.fill_null(coded.indices, len(distinct)).to_numpy(zero_copy_only=False)
    high, low = numpy.zeros((2, len(distinct) + 1), "u8")
    is_address = numpy.zeros(len(distinct) + 1, dtype=bool)
    bits, is_address[:-1] = dotted(distinct)
    low[:-1] = numpy.where(is_address[:-1], bits | numpy.uint64(MAPPED << 32), numpy.uint64(0))
    rest = numpy.flatnonzero(~is_address[:-1])
    for place, text in zip(rest.tolist(), distinct.take(pyarrow.array(rest)).to_pylist(), strict=True):
        found = _parsed(text)
        if found is not None:
            high[place], low[place] = found
            is_address[place] = True
    return AddressColumns(high[codes], low[codes], is_address[codes])


def is_ipv4(high: Array, low: Array) -> Array:
    """True for each address that is an IPv4 one."""
    found: Array = (high == 0) & (low >> numpy.uint64(32) == MAPPED)
    return found


def _parsed(text: str) -> AddressBits | None:
    """`parse`, once for each text of a while."""
    if text not in _known:
        if len(_known) >= _KNOWN_AT_MOST:
            _known.clear()
        _known[text] = parse(text)
    return _known[text]


class DistinctNetworks(NamedTuple):
    """/24s of IPv4 addresses, /64s of IPv6 ones, as numbers."""

    v4: Array
    v6: Array


class DistinctAddresses(NamedTuple):
    """The distinct ones of many addresses, in order of their bits, and the place of each of the many among them."""

    addresses: Addresses
    codes: Array


class Addresses:
    """Distinct addresses, spelled when they are asked for."""

    def __init__(self, high: Array, low: Array) -> None:
        self.high, self.low = high, low

    @classmethod
    def of(cls, high: Array, low: Array) -> DistinctAddresses:
        """The distinct ones of many."""
        if not high.any():
            distinct, codes = numpy.unique(low, return_inverse=True)
            return DistinctAddresses(cls(numpy.zeros(len(distinct), "u8"), distinct), codes)
        order = numpy.lexsort((low, high))
        is_new = numpy.ones(len(order), dtype=bool)
        is_new[1:] = (high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1])
        codes = numpy.empty(len(order), dtype="i8")
        codes[order] = numpy.cumsum(is_new) - 1
        return DistinctAddresses(cls(high[order][is_new], low[order][is_new]), codes)

    def __iter__(self) -> Iterator[str]:
        return map(name, self.high.tolist(), self.low.tolist())

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, place: int) -> str:
        """The spelling of one."""
        return name(int(self.high[place]), int(self.low[place]))

    def networks(self, places: Array) -> DistinctNetworks:
        """The networks of the addresses at `places`."""
        high, low = self.high[places], self.low[places]
        is_v4 = is_ipv4(high, low)
        v4 = numpy.unique((low[is_v4] & numpy.uint64(0xFFFFFFFF)) >> numpy.uint64(8))
        return DistinctNetworks(v4.astype("i8"), numpy.unique(high[~is_v4]).view("i8"))
