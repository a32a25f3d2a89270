"""MetricsData as clients push it, written here field by field, and what is no MetricsData."""

import random
import struct

import pytest

from broker.admin.otlp import NotOtlp, metrics_of


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def text(number: int, value: bytes | str) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fixed(number: int, form: str, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack(form, value)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def attribute(field: int, name: str, value: bytes) -> bytes:
    return text(field, text(1, name) + text(2, value))


def data(*metrics: bytes, resource: bytes = b"") -> bytes:
    return text(1, text(1, resource) + text(2, b"".join(text(2, metric) for metric in metrics)))


AT = fixed(3, "<Q", 1_700_000_000_123_000_000)


def test_gauges_and_sums_are_read_with_their_resource() -> None:
    point = attribute(7, "node", text(1, "b0")) + AT + fixed(4, "<d", 1.5)
    gauge = text(1, "latency") + text(3, "ms") + text(5, text(1, point))
    total = text(1, "records") + text(7, text(1, fixed(6, "<q", -3)) + number(2, 1) + number(3, 1))
    made = data(gauge, total, resource=attribute(1, "client_rack", text(1, "r1")) + attribute(1, "n", number(3, -2)))
    resource = {"client_rack": "r1", "n": -2}
    assert metrics_of(made) == [
        {"name": "latency", "type": "gauge", "unit": "ms", "resource": resource, "attributes": {"node": "b0"},
         "at_ms": 1_700_000_000_123, "value": 1.5},
        {"name": "records", "type": "sum", "temporality": "delta", "resource": resource, "value": -3},
    ]  # fmt: skip


def test_histograms_and_summaries_are_read() -> None:
    counts = text(6, struct.pack("<2Q", 1, 2)) + text(7, struct.pack("<d", 10))
    histogram = text(1, "h") + text(9, text(1, fixed(4, "<Q", 3) + fixed(5, "<d", 9.0) + counts) + number(2, 2))
    quantile = text(6, fixed(1, "<d", 0.5) + fixed(2, "<d", 7.0))
    summary = text(1, "s") + text(11, text(1, fixed(4, "<Q", 3) + fixed(5, "<d", float("nan")) + quantile))
    assert metrics_of(data(histogram, summary)) == [
        {"name": "h", "type": "histogram", "temporality": "cumulative", "count": 3, "sum": 9.0, "bucket_counts": [1, 2],
         "explicit_bounds": [10.0]},
        {"name": "s", "type": "summary", "count": 3, "quantiles": [[0.5, 7.0]]},
    ]  # fmt: skip


def test_empty_push_has_no_metrics() -> None:
    assert metrics_of(b"") == metrics_of(data()) == []


WRONG = [b"\xff", b"\x0a\x05ab", b"\x0b", b"\x08" + b"\xff" * 10, data(text(1, b"\xff") + text(5, text(1, AT)))]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_metrics_data(wrong: bytes) -> None:
    with pytest.raises(NotOtlp):
        metrics_of(wrong)


def test_other_bytes_are_metrics_or_not_and_nothing_else() -> None:
    chance = random.Random(7)
    point = attribute(7, "node", text(1, "b0")) + AT + fixed(4, "<d", 1.5)
    right = data(text(1, "latency") + text(5, text(1, point)), text(1, "h") + text(9, text(1, fixed(4, "<Q", 3))))
    for _ in range(2000):
        wrong = bytearray(right)
        for _ in range(chance.randint(1, 4)):
            wrong[chance.randrange(len(wrong))] = chance.randrange(256)
        try:
            metrics_of(bytes(wrong))
        except NotOtlp:
            continue
