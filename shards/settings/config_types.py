"""The types of settings: how a value is read, checked, and spelled back the one canonical way.

For every kind: `parse(spell(v)) == v`, and `spell(parse(text))` is stable. `parse` raises ValueError with the rule,
worded to follow "NAME cannot be VALUE: ". Numbers follow Java's ranges, as Kafka's ConfigDef types do.
"""

import json
import re
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, TypeAlias, cast

from shards.settings.api_keys import API_KEYS
from shards.settings.override_entries import json_of, split_commas
from shards.settings.overrides import NO_OVERRIDES, Overrides
from shards.settings.ranges import INT_MAX, LONG_MAX, SHORT_MAX
from shards.settings.throughput_groups import ThroughputGroups, parse_groups, spell_groups
from shards.settings.user_overrides import NO_USER_OVERRIDES, UserOverrides

Cost: TypeAlias = tuple[tuple[str, float, float], ...]  # (API name or "*", microseconds a request, microseconds a KiB)
Value: TypeAlias = (
    int | float | bool | str | tuple[str, ...] | Overrides | UserOverrides | Cost | ThroughputGroups | None
)
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")


class ConfigType(IntEnum):
    """Type numbers of a DescribeConfigs response (Kafka: DescribeConfigsResponse.ConfigType)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ValueType(NamedTuple):
    """One kind of value. `json_type` is what Redpanda's schema calls it; `choices` are offered to people and tools."""

    kafka: ConfigType
    json_type: str
    parse: Callable[[str], Value]
    spell: Callable[[Value], str] = str
    items: str | None = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    also: tuple[int, ...] = ()
    """Numbers beside those from `low` to `high`."""


def whole(
    low: int = -(2**31), high: int = INT_MAX, *, also: tuple[int, ...] = (), most: int | None = None
) -> ValueType:
    """A whole number from low to high (or one of `also`). `most`: the largest of the type that Kafka keeps it in, if that is
    not what `high` says."""
    or_also = "".join(f" or {n}" for n in also)
    rule = f"it must be a whole number from {low} to {high}{or_also}"

    def parse(text: str) -> int:
        stripped = text.strip()
        if not _WHOLE.fullmatch(stripped):
            raise ValueError(rule)
        number = int(stripped)
        if not low <= number <= high and number not in also:
            raise ValueError(rule)
        return number

    width = high if most is None else most
    kind = ConfigType.LONG if width > INT_MAX else ConfigType.SHORT if width == SHORT_MAX else ConfigType.INT
    return ValueType(kind, "integer", parse, low=low, high=high, also=also)


def long(low: int = -(2**63), *, also: tuple[int, ...] = ()) -> ValueType:
    """A whole number of at least low (or one of `also`) that Kafka keeps in 64 bits."""
    return whole(low, LONG_MAX, also=also)


def number(low: float, high: float) -> ValueType:
    """A finite number from low to high."""
    rule = f"it must be a number from {low:g} to {high:g}"

    def parse(text: str) -> float:
        try:
            value = float(text.strip())
        except ValueError:
            raise ValueError(rule) from None
        if not low <= value <= high:  # also refuses NaN
            raise ValueError(rule)
        return value

    return ValueType(ConfigType.DOUBLE, "number", parse, low=low, high=high)


def _parse_boolean(text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("it must be true or false")


BOOLEAN = ValueType(ConfigType.BOOLEAN, "boolean", _parse_boolean, lambda value: "true" if value else "false",
               choices=("true", "false"))  # fmt: skip
TEXT = ValueType(ConfigType.STRING, "string", lambda text: text.strip())
CLASS = ValueType(ConfigType.CLASS, "string", lambda text: text.strip())


def _refuse_secret(text: str) -> Value:
    raise ValueError("it is a password that Turnstile has no use for")


SECRET = ValueType(ConfigType.PASSWORD, "string", _refuse_secret)

HIDDEN = "[hidden]"
"""The text that is shown for a password (Kafka: Password.HIDDEN)."""
PASSWORD = ValueType(ConfigType.PASSWORD, "string", lambda text: HIDDEN if text.strip() else "")
"""A password that is set with the cluster. Its value as a setting is only that there is one: what is stored, pushed,
journaled and shown does not have it. A process that needs it is handed it by the one that read the command line."""


def one_of(*choices: str) -> ValueType:
    """One of these words; case counts, as in Kafka."""

    def parse(text: str) -> str:
        if text.strip() not in choices:
            raise ValueError(f"it must be one of {', '.join(choices)}")
        return text.strip()

    return ValueType(ConfigType.STRING, "string", parse, choices=choices)


def words(*choices: str) -> ValueType:
    """A list of words, JSON or comma-separated; spelled comma-separated. Without choices any word will do."""

    def parse(text: str) -> tuple[str, ...]:
        found = tuple(_split(text))
        for word in found:
            if choices and word not in choices:
                raise ValueError(f"each entry must be one of {', '.join(choices)}")
            if not word or "," in word or word.startswith("["):
                raise ValueError("its entries must not be empty, have a comma or begin with [")
        return found

    return ValueType(ConfigType.LIST, "array", parse, _spell_words, items="string", choices=choices)


def _spell_words(value: Value) -> str:
    assert isinstance(value, tuple)
    return ",".join(str(word) for word in value)


def _split(text: str) -> list[str]:
    stripped = text.strip()
    if not stripped.startswith("["):
        return split_commas(stripped)
    parts = json_of(stripped)
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError("it must be a JSON list of strings, or words separated by commas")
    return [part.strip() for part in parts]


def overrides(low: int, high: int, kafka: ConfigType = ConfigType.LIST) -> ValueType:
    """Entries `ip:number`, `network/length:number`, `[v6]:number`, each number from low to high."""

    def parse(text: str) -> Overrides:
        found = Overrides.parse(text)
        for key, count in found.entries.items():
            if not low <= count <= high:
                raise ValueError(f"the number for {key} must be from {low} to {high}")
        return found or NO_OVERRIDES

    return ValueType(kafka, "array", parse, items="string")


def user_overrides(low: int, high: int) -> ValueType:
    """Entries `user:number`, each number from low to high."""

    def parse(text: str) -> UserOverrides:
        return UserOverrides.parse(text, low, high) or NO_USER_OVERRIDES

    return ValueType(ConfigType.LIST, "array", parse, items="string")


_MOST_BITS = 4096  # Python refuses to spell much longer numbers

_COST = re.compile(r"(?P<api>\*|[A-Za-z]+)=(?P<fixed>[0-9.]+(?:us|ms|s))?\+?(?:(?P<per_kib>[0-9.]+(?:us|ms|s))/KiB)?")
_UNIT_US = {"us": 1.0, "ms": 1e3, "s": 1e6}


_MOST_COST_US = 3600e6
_APIS = {key.replace("_", ""): "".join(map(str.capitalize, key.split("_"))) for key in API_KEYS}
"""The names of Kafka's APIs, by themselves in small letters."""


def _parse_cost(text: str) -> Cost:
    rule = (
        "it must be a list such as Produce=2ms+1us/KiB,*=100us (units us, ms, s; at most 3600s; * is every other API)"
    )
    found: dict[str, tuple[float, float]] = {}
    for part in _split(text):
        match = _COST.fullmatch(part.replace(" ", ""))
        if match is None or not (match["fixed"] or match["per_kib"]):
            raise ValueError(f"{part}: {rule}")
        api = "*" if match["api"] == "*" else _APIS.get(match["api"].lower())
        if api is None:
            raise ValueError(f"{match['api']} is not an API that a broker answers, such as Produce, Fetch or Metadata")
        if api in found:
            raise ValueError(f"{api} is given twice")
        try:
            found[api] = (_microseconds(match["fixed"]), _microseconds(match["per_kib"]))
        except ValueError:
            raise ValueError(f"{part}: {rule}") from None
    return tuple((api, fixed, per_kib) for api, (fixed, per_kib) in found.items())


def _microseconds(text: str | None) -> float:
    if not text:
        return 0.0
    digits = text.rstrip("ums")
    found = float(digits) * _UNIT_US[text[len(digits) :]]
    if found > _MOST_COST_US:
        raise ValueError(text)
    return found


def _spell_cost(value: Value) -> str:
    parts = []
    for api, fixed, per_kib in cast(Cost, value):
        terms = [_spell_us(fixed)] if fixed or not per_kib else []
        terms += [_spell_us(per_kib) + "/KiB"] if per_kib else []
        parts.append(f"{api}={'+'.join(terms)}")
    return ",".join(parts)


def _spell_us(us: float) -> str:
    for unit in ("s", "ms"):
        if us and (us / _UNIT_US[unit]).is_integer():
            return f"{int(us / _UNIT_US[unit])}{unit}"
    return f"{int(us) if float(us).is_integer() else us!r}us"


COST = ValueType(ConfigType.LIST, "string", _parse_cost, _spell_cost)
THROUGHPUT_GROUPS = ValueType(ConfigType.STRING, "array", parse_groups,
               lambda value: spell_groups(cast(ThroughputGroups, value)), items="object")  # fmt: skip
"""Groups of clients in JSON (throughput_groups.py). To Kafka's tools it is text: they would split a list at its commas."""


def text_of(value: object) -> str:
    """A JSON value as the text a setting is given in: a list as JSON, a whole number without a fraction."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() <= _MOST_BITS else "a number of very many digits"
    return json.dumps(value)
