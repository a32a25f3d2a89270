"""Expectations of a run's result, for CI: `refused<1%`, `p99<50ms`, `office.admitted>=300`, `broken==0`.

    [GROUP.]NAME OPERATOR NUMBER[%|ms|s]

NAME is a count (attempted, admitted, refused, broken, connect_errors, closed_by_broker, unanswered), of which % is a share
of what was attempted; or p50, p99, max of the time until a connection was admitted, refuse_p50, refuse_p99, refuse_max of
the time until it was refused, in ms.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnstile.load.output import RunJson, TallyJson

_COUNTS = ("attempted", "admitted", "refused", "broken", "connect_errors", "closed_by_broker", "unanswered")
_TIMES = ("p50", "p99", "max", "refuse_p50", "refuse_p99", "refuse_max")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
}  # fmt: skip
_SHAPE = re.compile(r"\s*(?:(.+)\.)?([a-z_0-9]+)\s*(<=|>=|==|<|>)\s*([0-9]+(?:\.[0-9]+)?)\s*(%|ms|s)?\s*")


class ExpectationInvalid(ValueError):
    """The text is no expectation; one sentence."""


@dataclass(frozen=True)
class Expectation:
    """`text` as it was given, and what it says; `limit` in ms, or as a count, or as a percentage if `is_share`."""

    text: str
    group: str | None
    name: str
    relation: Callable[[float, float], bool]
    limit: float
    is_share: bool

    def judge(self, result: RunJson) -> str | None:
        """The reason why the result (output.as_json) misses it; None when it doesn't."""
        numbers: TallyJson | None = result if self.group is None else result["groups"].get(self.group)
        if numbers is None:
            return f"{self.text}: there is no group {self.group!r}"
        value = _value(numbers, self.name)
        if value is None:
            return f"{self.text}: no connection was {'refused' if self.name.startswith('refuse_') else 'admitted'}"
        if self.is_share:
            value = 100 * value / numbers["attempted"] if numbers["attempted"] else 0.0
        if self.relation(value, self.limit):
            return None
        unit = "%" if self.is_share else " ms" if self.name in _TIMES else ""
        return (
            f"{self.text}: it was {value:.10g}{unit}"
            if value == int(value)
            else f"{self.text}: it was {value:.2f}{unit}"
        )


def _value(numbers: TallyJson, name: str) -> float | None:
    if name in _COUNTS:
        counts = {key: value for key, value in numbers.items() if isinstance(value, int)}
        return float(counts[name])
    which = name.removeprefix("refuse_")
    times = numbers["connect_ms"] if which == name else numbers["refuse_ms"]
    return times.get(which)


def parse(text: str) -> Expectation:
    """Raises ExpectationInvalid."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise ExpectationInvalid(f"{text!r} is not of the form refused<1% or p99<50ms")
    group, name, relation, number, unit = match.groups()
    if name not in _COUNTS and name not in _TIMES:
        raise ExpectationInvalid(f"{text!r}: {name} is none of {', '.join((*_COUNTS, *_TIMES))}")
    if unit and (unit == "%") is not (name in _COUNTS):
        raise ExpectationInvalid(f"{text!r}: {name} is not in {unit}")
    limit = float(number) * (1000 if unit == "s" else 1)
    return Expectation(text, group, name, _OPERATORS[relation], limit, unit == "%")
