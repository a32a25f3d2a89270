"""Decodes the telemetry that clients pushed, OTLP's MetricsData. Only fields that Kafka clients fill are read.

Numbers of fields are those of opentelemetry/proto/metrics/v1/metrics.proto and common/v1/common.proto. A field that is not known
is skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from broker.admin.protobuf import LENGTH, NotProtobuf, fields

_SHAPES = {5: "gauge", 7: "sum", 9: "histogram", 10: "exponential_histogram", 11: "summary"}
_TEMPORALITIES = {1: "delta", 2: "cumulative"}
MOST_METRICS = 10_000
MOST_BYTES = 4 << 20


class NotOtlp(ValueError):
    """The bytes are not MetricsData, or more than MOST_BYTES."""


def metrics_of(data: bytes) -> list[dict[str, object]]:
    """Every point of every metric, in order, at most MOST_METRICS: name, type, unit, temporality, resource, attributes, at_ms, and
    `value` or, of a distribution, count, sum and its buckets or quantiles. Empty fields are left out. Raises NotOtlp."""
    if len(data) > MOST_BYTES:
        raise NotOtlp(f"it is longer than {MOST_BYTES} bytes")
    found: list[dict[str, object]] = []
    try:
        for resource in _messages(data, 1):
            about = _attributes(_first(resource, 1), 1)
            for scope in _messages(resource, 2):
                for metric in _messages(scope, 2):
                    found += _points(metric, about)
                    if len(found) >= MOST_METRICS:
                        return found[:MOST_METRICS]
    except (NotProtobuf, struct.error, IndexError, UnicodeDecodeError, TypeError, AttributeError) as fault:
        raise NotOtlp(f"it is not MetricsData: {fault}") from None
    return found


def _points(metric: bytes, about: Mapping[str, object]) -> Iterator[dict[str, object]]:
    texts = {number: value for number, kind, value in fields(metric) if kind == LENGTH}
    for number, shape in _SHAPES.items():
        if number not in texts:
            continue
        body = texts[number]
        temporality = _TEMPORALITIES.get(_first(body, 2, 0)) if shape in ("sum", "histogram") else None
        for point in _messages(body, 1):
            row = {
                "name": _text(texts.get(1, b"")),
                "type": shape,
                "unit": _text(texts.get(3, b"")),
                "temporality": temporality,
                "resource": dict(about),
                **(_number(point) if shape in ("gauge", "sum") else _distribution(point, shape)),
            }
            yield {name: value for name, value in row.items() if value not in (None, "", {}, [])}


def _number(point: bytes) -> dict[str, object]:
    """The fields of a NumberDataPoint."""
    row: dict[str, object] = {"attributes": _attributes(point, 7), "at_ms": _at_ms(point), "value": None}
    for number, _, value in fields(point):
        if number == 4:
            row["value"] = _double(value)
        elif number == 6:
            row["value"] = struct.unpack("<q", value)[0]
    return row


def _distribution(point: bytes, shape: str) -> dict[str, object]:
    """The fields that all distributions have, and the buckets of a histogram or the quantiles of a summary."""
    row: dict[str, object] = {
        "attributes": _attributes(point, 9 if shape == "histogram" else 7 if shape == "summary" else 1),
        "at_ms": _at_ms(point),
        "count": struct.unpack("<Q", _first(point, 4, bytes(8)))[0],
        "sum": _double(_first(point, 5, bytes(8))),
    }
    if shape == "histogram":
        row["bucket_counts"] = _packed(point, 6, "<Q")
        row["explicit_bounds"] = _packed(point, 7, "<d")
    elif shape == "summary":
        row["quantiles"] = [[_double(_first(each, n, bytes(8))) for n in (1, 2)] for each in _messages(point, 6)]
    return row


def _at_ms(point: bytes) -> int | None:
    at_ns: int = struct.unpack("<Q", _first(point, 3, bytes(8)))[0]
    return at_ns // 1_000_000 or None


def _attributes(message: bytes, number: int) -> dict[str, object]:
    """The KeyValues of field `number`; those whose value is a list or a map are left out."""
    values = {}
    for pair in _messages(message, number):
        for kind, _, value in fields(_first(pair, 2, b"")):
            if kind in _VALUES:
                values[_text(_first(pair, 1, b""))] = _VALUES[kind](value)
    return values


def _messages(message: bytes, number: int) -> Iterator[bytes]:
    """The messages in a repeated field."""
    return (value for each, kind, value in fields(message) if each == number and kind == LENGTH)


def _first(message: bytes, number: int, default: object = b"") -> Any:
    return next((value for each, _, value in fields(message) if each == number), default)


def _packed(message: bytes, number: int, form: str) -> list[object]:
    found = b"".join(value for each, _, value in fields(message) if each == number)
    return [value for (value,) in struct.iter_unpack(form, found)]


def _double(value: bytes) -> float | None:
    """The number; None for NaN and infinities, which JSON cannot write."""
    number: float = struct.unpack("<d", value)[0]
    return number if number - number == 0 else None


def _text(value: bytes) -> str:
    return value.decode()


_VALUES: dict[int, Callable[[Any], Any]] = {1: _text, 2: bool, 3: lambda value: value - (value >> 63 << 64), 4: _double}
"""The readers of an AnyValue, by the number of its field."""
