"""Connections over TLS, of which `turnstile.max.ssl.connections` bounds how many are open: those of listeners that had TLS by the
version under which they were decided about."""

import numpy
import pyarrow

from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.timeline import Timeline


def over_tls(timeline: Timeline, table: pyarrow.Table) -> pyarrow.Table:
    """The rows that are over TLS, of a table with broker, version and listener."""
    return table.filter(pyarrow.array(are_over_tls(timeline, table)))


def are_over_tls(timeline: Timeline, table: pyarrow.Table) -> arrays.Array:
    """Of each row whether it is over TLS."""
    listener, names = arrays.codes(table, "listener")
    places = [arrays.numbers(table, "broker"), arrays.numbers(table, "version"), listener]

    def is_over_tls(place: tuple[int, ...]) -> int:
        broker, version, name = place
        return names[name] in timeline.limits(version, broker).ssl

    return arrays.looked_up(places, is_over_tls).astype(numpy.bool_)
