"""The connections over TLS, whose number `turnstile.max.ssl.connections` limits. A connection is over TLS if its listener had TLS
in the configuration version under which it was admitted or refused."""

import numpy
import pyarrow

from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.timeline import Timeline


def over_tls(timeline: Timeline, table: pyarrow.Table) -> pyarrow.Table:
    """The rows of connections over TLS. `table` has the columns broker, version and listener."""
    return table.filter(pyarrow.array(are_over_tls(timeline, table)))


def are_over_tls(timeline: Timeline, table: pyarrow.Table) -> arrays.Array:
    """True for each row whose connection is over TLS."""
    listener, names = arrays.codes(table, "listener")
    places = [arrays.numbers(table, "broker"), arrays.numbers(table, "version"), listener]

    def is_over_tls(place: tuple[int, ...]) -> int:
        broker, version, name = place
        return names[name] in timeline.limits(version, broker).ssl

    return arrays.looked_up(places, is_over_tls).astype(numpy.bool_)
