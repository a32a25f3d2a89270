"""Every config of Kafka 4.3 as a row: those that nothing here obeys, beside the rows of broker_settings.py and topic_settings.py.

Their names, types, ranges, defaults and documentation are Kafka's own: kafka_configs.tsv, which scripts/make_kafka_configs.py
writes from Kafka's ConfigDefs. A password is described and can't be set: nothing here needs one, and nothing keeps one safe.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pkgutil import get_data

from shards.settings.config_key import ConfigKey, shown
from shards.settings.config_types import (
    BOOLEAN,
    CLASS,
    SECRET,
    TEXT,
    ConfigType,
    ValueType,
    number,
    one_of,
    whole,
    words,
)
from shards.settings.ranges import INT_MAX, LONG_MAX, SHORT_MAX

_RANGE = re.compile(r"\[(?P<low>-?[0-9]+),\.\.\.(?:,(?P<high>-?[0-9]+))?\](?P<also> or -1)?")
_CHOICES = re.compile(r"\[(?P<choices>[A-Za-z_0-9]+(?:, [A-Za-z_0-9]+)*)\]")
_WIDTHS = {"SHORT": (-(2**15), SHORT_MAX), "INT": (-(2**31), INT_MAX), "LONG": (-(2**63), LONG_MAX)}
_MOST = sys.float_info.max


def rows(scope: str) -> Iterator[ConfigKey]:
    """The configs of a "broker", a "topic" or a "group"."""
    table = get_data(__name__.rpartition(".")[0], "kafka_configs.tsv")  # also out of the zip that is shipped to workers
    assert table is not None
    for line in table.decode().splitlines():
        if line.startswith(f"{scope}\t"):
            _, name, kafka_type, default, validator, changes, doc = line.split("\t")
            kind = _kind(kafka_type, validator)
            value = None if default == "\\N" or kind is SECRET else kind.parse(default)
            yield shown(name, kind, value, doc, dynamic=changes == "dynamic" and kind is not SECRET)


def _parse_offset_reset(text: str) -> str:
    if text not in ("latest", "earliest") and not _BY_DURATION.fullmatch(text):
        raise ValueError("it must be latest, earliest or by_duration:PnDTnHnMn.nS")
    return text


_BY_DURATION = re.compile(
    r"by_duration:P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+([.][0-9]{1,9})?S)?)?"
)
_OFFSET_RESET = ValueType(ConfigType.STRING, "string", _parse_offset_reset)


@cache  # most are of a few dozen kinds
def _kind(kafka_type: str, validator: str) -> ValueType:
    span = _RANGE.fullmatch(validator)
    if kafka_type in _WIDTHS:
        low, high = _WIDTHS[kafka_type]
        if span is None:
            return whole(low, high)
        also = (-1,) if span["also"] else ()
        return whole(int(span["low"]), high if span["high"] is None else int(span["high"]), also=also, most=high)
    if kafka_type == "DOUBLE":
        return number(-_MOST, _MOST) if span is None else number(int(span["low"]), int(span["high"] or _MOST))
    if "by_duration:" in validator:
        return _OFFSET_RESET
    choices = _CHOICES.fullmatch(validator)
    named = tuple(choices["choices"].split(", ")) if choices else ()
    if kafka_type == "LIST":
        return words(*named)
    if kafka_type == "STRING" and named:
        return one_of(*named)
    return {"BOOLEAN": BOOLEAN, "PASSWORD": SECRET, "CLASS": CLASS}.get(kafka_type, TEXT)
