"""The entities that a plan counts connections of: each client address, or each user that logs in. Kafka's names of these entity
types are `ip` and `user`.

In a log an entity is text; on its way to a replay it is columns of numbers, or coded text (replay_pieces.py); in a replay it
is a number, its place among the distinct ones.

one_entity_one_slot  all connections of an entity go to one slot, whichever task read them
numbers_are_in_order  entities are numbered in the order of `rank`, without gaps
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy
import pyarrow
import pyarrow.compute

from shards.settings.addresses import IPV6_BITS
from turnstile.pipeline.events.arrays import Array
from turnstile.pipeline.inputs.addresses import NOT_AN_ADDRESS, Addresses, DistinctNetworks, is_ipv4, numbers, parse

NO_USER = "no user"


class Entities(Protocol):
    """Distinct entities by number."""

    def __getitem__(self, place: int, /) -> str: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def networks(self, places: Array, /) -> DistinctNetworks:
        """The networks of the entities at `places`; users have none."""


class EntityColumns(NamedTuple):
    """Columns that stand for the text of entities, and whether each text is an entity at all."""

    columns: dict[str, Any]
    is_usable: Array


class DistinctEntities(NamedTuple):
    """The distinct entities of many connections, and the number of each connection's."""

    entities: Entities
    codes: Array


class EntityType(Protocol):
    """`name`: Kafka's. `missing`: why a row without an entity is put aside; `unusable`: why one whose text is not an entity is."""

    @property
    def name(self) -> str: ...
    @property
    def noun(self) -> str: ...
    @property
    def has_networks(self) -> bool: ...
    @property
    def brokers_limit_it(self) -> bool:
        """True if Kafka and Redpanda limit such entities, too."""

    @property
    def missing(self) -> str: ...
    @property
    def unusable(self) -> str: ...

    def columns(self, texts: pyarrow.Array, /) -> EntityColumns:
        """The columns of entities, from a column of text that is null where a row has none."""

    def slots(self, rows: pyarrow.Table, count: int, /) -> Array:
        """The slot, less than `count`, of each row that has the columns."""

    def distinct(self, rows: pyarrow.Table, /) -> DistinctEntities:
        """The distinct entities in rows that have the columns."""

    def rank(self, name: str, /) -> Any:
        """A sort key: names in its order are in the order of their numbers."""


class Ips:
    """Client addresses: `high` and `low`, the halves of their 128 bits. Those of one IPv6 network of `ipv6_prefix` bits count as
    the first of it, as by turnstile.ipv6.prefix.length."""

    name, noun, has_networks = "ip", "address", True
    missing, unusable = "no client address", NOT_AN_ADDRESS

    def __init__(self, ipv6_prefix: int = IPV6_BITS) -> None:
        self.ipv6_prefix = ipv6_prefix

    @property
    def brokers_limit_it(self) -> bool:
        return self.ipv6_prefix == IPV6_BITS

    def columns(self, texts: pyarrow.Array) -> EntityColumns:
        high, low, is_address = numbers(texts)
        if self.ipv6_prefix < IPV6_BITS:
            of_v6 = ~is_ipv4(high, low)
            kept = ((1 << self.ipv6_prefix) - 1) << (IPV6_BITS - self.ipv6_prefix)
            for half, bits in ((high, kept >> 64), (low, kept & (1 << 64) - 1)):
                half[of_v6] &= numpy.uint64(bits)
        return EntityColumns({"high": high, "low": low}, is_address)

    def slots(self, rows: pyarrow.Table, count: int) -> Array:
        """A hash, so that neighbouring addresses are spread over the slots."""
        mixed = (rows["high"].to_numpy() ^ rows["low"].to_numpy()) * numpy.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> numpy.uint64(29))) * numpy.uint64(0xBF58476D1CE4E5B9) >> numpy.uint64(33)
        slots: Array = mixed % numpy.uint64(count)
        return slots

    def distinct(self, rows: pyarrow.Table) -> DistinctEntities:
        return DistinctEntities(*Addresses.of(rows["high"].to_numpy(), rows["low"].to_numpy()))

    def rank(self, name: str) -> Any:
        return parse(name) or (0, 0)


class Users:
    """Distinct users, in order of their names."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def __getitem__(self, place: int) -> str:
        return self._names[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def networks(self, places: Array) -> DistinctNetworks:
        return DistinctNetworks(places[:0], places[:0])


class _User:
    """Users by the name that they log in by: `user`, coded text."""

    name, noun, has_networks, brokers_limit_it = "user", "user", False, False
    missing, unusable = NO_USER, NO_USER

    def columns(self, texts: pyarrow.Array) -> EntityColumns:
        is_named = pyarrow.compute.fill_null(pyarrow.compute.not_equal(texts, ""), False)
        return EntityColumns({"user": texts.dictionary_encode()}, is_named.to_numpy(zero_copy_only=False))

    def slots(self, rows: pyarrow.Table, count: int) -> Array:
        coded = rows["user"].unify_dictionaries().combine_chunks()
        # Not hash(): each process has its own.
        of_name = numpy.array([zlib.crc32(name.encode()) % count for name in coded.dictionary.to_pylist()], "i8")
        slots: Array = of_name[coded.indices.to_numpy()]
        return slots

    def distinct(self, rows: pyarrow.Table) -> DistinctEntities:
        coded = rows["user"].unify_dictionaries().combine_chunks()
        used, codes = numpy.unique(coded.indices.to_numpy(), return_inverse=True)
        names = coded.dictionary.take(pyarrow.array(used))
        order = pyarrow.compute.sort_indices(names).to_numpy()
        place = numpy.empty(len(order), "i8")
        place[order] = numpy.arange(len(order))
        return DistinctEntities(Users(names.take(pyarrow.array(order)).to_pylist()), place[codes])

    def rank(self, name: str) -> Any:
        return name


IP: EntityType = Ips()
USER: EntityType = _User()
