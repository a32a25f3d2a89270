"""Prometheus' text format, version 0.0.4: families of samples, under exactly the names that they were given.

prometheus_client would write `x_total` for a counter `x`, as OpenMetrics demands. Redpanda writes its counters' names as they
are (Seastar knows the text format only), and its dashboards and alerts ask for these names. So this page is served as text 0.0.4,
whatever a scraper accepts; Prometheus reads it by its Content-Type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Kind(Enum):
    """The kind of a family, as its TYPE line has it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Sample(NamedTuple):
    """One line; `suffix` follows the family's name: _bucket, _count or _sum of a histogram, else ""."""

    suffix: str
    labels: Mapping[str, str]
    value: float


@dataclass
class Family:
    """All samples of one name."""

    kind: Kind
    help: str
    samples: list[Sample] = field(default_factory=list)


class Page:
    """Families in the order in which they first occur."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def add(self, kind: Kind, name: str, help: str, labels: Mapping[str, str], value: float) -> None:
        """Another sample of a counter or gauge."""
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = Family(kind, help)
        family.samples.append(Sample("", labels, value))

    def histogram(self, name: str, help: str, buckets: Sequence[tuple[str, float]], sum_value: float) -> None:
        """`buckets`: (upper bound, count so far), the last bound being +Inf."""
        family = self._families[name] = Family(Kind.HISTOGRAM, help)
        family.samples += [Sample("_bucket", {"le": bound}, count) for bound, count in buckets]
        family.samples += [Sample("_count", {}, buckets[-1][1]), Sample("_sum", {}, sum_value)]

    def render(self) -> bytes:
        """The whole page."""
        return "".join(line for name, family in self._families.items() for line in _lines(name, family)).encode(
            "utf-8", "backslashreplace"
        )


def _lines(name: str, family: Family) -> Iterable[str]:
    yield f"# HELP {name} {_escape(family.help)}\n# TYPE {name} {family.kind.value}\n"
    for suffix, labels, value in family.samples:
        pairs = ",".join(f'{label}="{_escape_label(text)}"' for label, text in sorted(labels.items()))
        yield f"{name}{suffix}{{{pairs}}} {float(value)!r}\n" if pairs else f"{name}{suffix} {float(value)!r}\n"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _escape_label(text: str) -> str:
    return _escape(text).replace('"', r"\"")
