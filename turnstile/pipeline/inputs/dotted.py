"""Plain IPv4 addresses of many texts at once, by numpy: a log of ten million connections has some hundred thousand of them.

plain_is_read_as_inet_pton_reads_it  what is plain is read as `socket.inet_pton` reads it: four numbers of up to three digits,
    up to 255, without leading zeros
other_forms_are_not_plain  a text of any other form is not plain, be it an address or not
"""

from typing import NamedTuple

import numpy
import pyarrow

from turnstile.pipeline.events.arrays import Array

_DOT, _ZERO = ord("."), ord("0")


class PlainNumbers(NamedTuple):
    """Unsigned numbers of 64 bits, and whether each is written plainly."""

    values: Array
    is_plain: Array


def dotted(texts: pyarrow.StringArray) -> PlainNumbers:
    """The 32 bits of each text; `texts` must have no nulls."""
    bits, is_plain = numpy.zeros(len(texts), "u8"), numpy.zeros(len(texts), dtype=bool)
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None or not data.size:
        return PlainNumbers(bits, is_plain)
    bounds = numpy.frombuffer(offsets, "i4")[texts.offset : texts.offset + len(texts) + 1].astype("i8")
    letters = numpy.frombuffer(data, "u1")[: bounds[-1]]
    is_dot = letters == _DOT
    is_other = ~is_dot & (letters - numpy.uint8(_ZERO) > 9)  # below "0" it wraps round, to above 9
    dots, others = (numpy.concatenate(([0], numpy.cumsum(each))) for each in (is_dot, is_other))
    begins, ends = bounds[:-1], bounds[1:]
    places = numpy.flatnonzero((dots[ends] - dots[begins] == 3) & (others[ends] == others[begins]))
    of_dots = numpy.flatnonzero(is_dot)[dots[begins[places]][:, None] + numpy.arange(3)]
    first = numpy.column_stack([begins[places], of_dots + 1])
    after = numpy.column_stack([of_dots, ends[places]])
    numbers, is_fine = _numbers(letters, first, after)
    is_plain[places] = is_fine.all(axis=1)
    bits[places] = numbers @ (numpy.uint64(1) << numpy.array([24, 16, 8, 0], "u8"))
    return PlainNumbers(bits, is_plain)


def _numbers(letters: Array, first: Array, after: Array) -> PlainNumbers:
    """The numbers from `first` until before `after` (digits alone)."""
    size = after - first
    last = len(letters) - 1
    values = numpy.zeros(first.shape, "u8")
    for place, worth in enumerate((1, 10, 100)):
        digit = letters[numpy.maximum(after - 1 - place, 0)].astype("u8") - _ZERO
        values += numpy.where(size > place, digit * numpy.uint64(worth), numpy.uint64(0))
    is_padded = (size > 1) & (letters[numpy.minimum(first, last)] == _ZERO)
    return PlainNumbers(values, (size >= 1) & (size <= 3) & (values <= 255) & ~is_padded)
