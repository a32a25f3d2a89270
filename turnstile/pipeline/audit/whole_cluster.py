"""Connections to any broker, of which `turnstile.cluster.max.connections` bounds how many are open: counted as those of one broker,
EVERY_BROKER, whose limits are the settings of the whole cluster. All processes of a cluster have one clock."""

import numpy
import pyarrow

from shards.settings.broker_config import EVERY_BROKER


def of_cluster(table: pyarrow.Table) -> pyarrow.Table:
    """The same rows, as of EVERY_BROKER."""
    place = table.schema.get_field_index("broker")
    everywhere = pyarrow.array(numpy.full(table.num_rows, EVERY_BROKER, dtype="i4"))
    return table.set_column(place, table.schema.field(place), everywhere)


def broker_text(broker: int) -> str:
    """`broker 1`, or `the cluster`."""
    return "the cluster" if broker == EVERY_BROKER else f"broker {broker}"
