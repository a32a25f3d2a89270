"""The one spelling of numbers for people: counts, rates, bytes, percent, times, and how much of a limit is used.

Every display uses it, and commands read it: tables, `turnstile top`, the pytest plugin. broker/admin/page/quantities.js is the
same for the live page, and one table of cases holds both to it (tests/support/quantities.json).

three_significant_digits  Three significant digits, no trailing zeros; counts below 100,000 are exact.
decimal_prefixes  Prefixes are decimal, as quotas and rates are: 1 kB/s is 1,000 bytes a second.
percent_rounded_down  Percent of a limit are rounded down, so that 100 % is said only of a limit that is reached.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from shards.limits.utilisation import utilisation

_EXACT_BELOW = 100_000
_PREFIXES = ("", "k", "M", "G", "T")
_WRITTEN = re.compile(
    r"(?P<number>[-+.\d_]+(?:[eE][-+]?\d+)?) ?(?:(?P<prefix>[kKMGT]?)(?P<binary>(?<=[KMGT])i)?B?(?:/s)?|%)"
)


def count(value: float) -> str:
    """`950`, `12,345`, `1.23M`; a fraction only below 10: `0.5`."""
    if abs(value) < 10 and value != int(value):
        return f"{value:.1f}".removesuffix(".0")
    if round(abs(value)) < _EXACT_BELOW:
        return f"{round(value):,}"
    return _scaled(value, "")


def plural(noun: str, number: float) -> str:
    """`connection` where the number is 1, else `connections`; `addresses` of an `address`."""
    return noun if number == 1 else noun + ("es" if noun.endswith("s") else "s")


def per_second(value: float) -> str:
    """Connections, requests or mutations a second: `12/s`, `0.5/s`."""
    return f"{count(value)}/s"


def byte_rate(value: float) -> str:
    """Bytes a second: `950 B/s`, `111 kB/s`, `1.05 MB/s`."""
    return f"{_scaled(value, ' ')}B/s"


def percent(value: float) -> str:
    """`50 %`, `0.5 %`: a request_percentage, in which 100 is one thread."""
    return f"{_digits(value)} %"


def duration(ms: float) -> str:
    """`250 ms`, `3.4 s`, `12 min`, `2.5 h`, `1.2 d`."""
    if round(ms) < 1000:
        return f"{round(ms)} ms"
    for unit, size, below in (("s", 1e3, 60), ("min", 6e4, 60), ("h", 3.6e6, 24), ("d", 8.64e7, math.inf)):
        if ms / size < below:
            return f"{_tenths(ms / size)} {unit}"
    raise ValueError(ms)


QUOTAS: dict[str, Callable[[float], str]] = {
    "connection_creation_rate": per_second,
    "producer_byte_rate": byte_rate,
    "consumer_byte_rate": byte_rate,
    "request_percentage": percent,
    "controller_mutation_rate": per_second,
}
"""The spelling of a value of each quota, by the quota's key."""


def use(used: float, limit: float | None, spell: Callable[[float], str] = count) -> str:
    """`111 kB/s of 100 kB/s (111 %)`; `3, no limit` where there is none."""
    if limit is None:
        return f"{spell(used)}, no limit"
    share = utilisation(used, limit)
    text = "over" if math.isinf(share) else f"{math.floor(share * 100 + 1e-9):,} %"
    return f"{spell(used)} of {spell(limit)} ({text})"


def written(text: str) -> float:
    """The number that a person wrote in these spellings: `1000000`, `1MB/s`, `512KiB`, `1.5M`, `50%`.

    Prefixes are decimal (decimal_prefixes) but for Ki, Mi, Gi and Ti, which are powers of 1,024. Raises ValueError for any
    other text.
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    power = _PREFIXES.index((found["prefix"] or "").replace("K", "k"))
    unit: int = (1024 if found["binary"] else 1000) ** power
    return float(found["number"]) * unit


def _scaled(value: float, space: str) -> str:
    """Three digits and a decimal prefix, such as `1.05 M`."""
    scaled, power = float(value), 0
    while abs(float(f"{scaled:.3g}")) >= 1000 and power < len(_PREFIXES) - 1:
        scaled, power = scaled / 1000, power + 1
    return f"{_digits(scaled)}{space}{_PREFIXES[power]}"


def _digits(value: float) -> str:
    """Three significant digits, the whole part always in full: `0.001`, `1.05`, `12.3`, `1234`."""
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.9995 else 4
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def _tenths(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < 10 else f"{value:.0f}"
