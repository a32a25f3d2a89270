"""Connections to any broker, of which `turnstile.cluster.max.connections` bounds how many are open: counted as those of one broker,
EVERY_BROKER, whose limits are the settings of the whole cluster. All processes of a cluster have one clock. The shards of that
broker are those of all brokers, numbered as its tokens have them (shards/tokens/cluster_pool.py)."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy
import pyarrow

from shards.limits.caps import CLUSTER
from shards.ownership import member_of
from shards.settings.broker_config import EVERY_BROKER
from turnstile.pipeline.audit.moves import BAD
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.sequence import Incarnation
from turnstile.pipeline.events.survey import Span, Survey


def of_cluster(table: pyarrow.Table) -> pyarrow.Table:
    """The rows with EVERY_BROKER as their broker."""
    place = table.schema.get_field_index("broker")
    everywhere = pyarrow.array(numpy.full(table.num_rows, EVERY_BROKER, dtype="i4"))
    return table.set_column(place, table.schema.field(place), everywhere)


class Members(NamedTuple):
    """The shards of a cluster as those of EVERY_BROKER. `numbers`: of each incarnation; `spans`: of the incarnations that they
    are."""

    numbers: Mapping[Incarnation, int]
    spans: Mapping[Incarnation, Span]


def members(seen: Survey) -> Members | None:
    """The members of the cluster; None where the journal does not say how many brokers there were, and shards of each."""
    numbers: dict[Incarnation, int] = {}
    spans: dict[Incarnation, Span] = {}
    for place, span in seen.cluster_spans().items():
        if not span.shards:
            return None
        number = numbers[place] = member_of(place[:2], seen.starts[place]["shards"])
        spans[EVERY_BROKER, number, place[2]] = span
    return Members(numbers, spans)


def as_members(numbers: Mapping[Incarnation, int], table: pyarrow.Table) -> pyarrow.Table:
    """The rows of shards, as of members of EVERY_BROKER."""
    places = [arrays.numbers(table, name) for name in ("broker", "shard", "epoch")]
    members = arrays.looked_up(places, partial(_number, numbers))
    at = table.schema.get_field_index("shard")
    numbered = table.set_column(at, table.schema.field(at), pyarrow.array(members.astype("i4")))
    return of_cluster(numbered.filter(pyarrow.array(members >= 0)))


def moves_of_cluster(numbers: Mapping[Incarnation, int], table: pyarrow.Table) -> pyarrow.Table:
    """The moves of the cluster's tokens in moves.MOVES, and those that can't be read, by member. Their peers are members
    already."""
    is_mine = arrays.is_one_of(table, "pool", (CLUSTER,)) | arrays.is_one_of(table, "what", (BAD,))
    return as_members(numbers, table.filter(pyarrow.array(is_mine)))


def _number(numbers: Mapping[Incarnation, int], key: tuple[int, ...]) -> int:
    return numbers.get((key[0], key[1], key[2]), -1)


def broker_text(broker: int) -> str:
    """`broker 1`, or `the cluster`."""
    return "the cluster" if broker == EVERY_BROKER else f"broker {broker}"
