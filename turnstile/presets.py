"""The limits that managed clusters publish: a table (presets.tsv), and the settings that emulate a part of it. Pure.

Columns of the table
    preset         the cluster, such as msk-serverless
    limit          in the vendor's words
    value, unit    a number, or `unknown` where the page has none; a part of a megabyte may stand behind the point
    scope          cluster, broker, ip, connection, topic, partition or request
    on_exceed      what happens beyond it, by the vendor's page: refuse, close, delay, throttle, error:NAME, sasl-error:TEXT,
                   unknown
    setting        the setting of ours that does it; nothing: it is not emulated
    per_unit       of clusters that grow in units: the part of one, such as `20 per eCKU`; `value` is then that of the largest
                   cluster, where the page has it and no size has to be chosen, else that of one unit
    enforced_since the day from which the vendor enforces it, where it says one
    source, read   the vendor's page, and the month in which it was read
    note           what is to be known beside that, such as what happens here where the page does not say it

clusters_share_evenly  A value of a whole cluster is that of a setting which holds for all brokers together
    (turnstile.cluster.max.connections, turnstile.cluster.max.connection.creation.rate). Where there is none that does what the
    row says, it is divided evenly over the brokers, rounded down, and at least 1: a broker enforces its share alone.
megabytes_are_a_million_bytes  A rate in MB/s is one of 1,000,000 bytes.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Final, NamedTuple

from shards.settings.config_def import broker_setting

_BYTES: Final = {"MB/s": 1_000_000}


class PresetLimit(NamedTuple):
    """One row of the table."""

    preset: str
    limit: str
    value: str
    unit: str
    scope: str
    on_exceed: str
    setting: str
    per_unit: str
    enforced_since: str
    source: str
    read: str
    note: str

    @property
    def is_emulated(self) -> bool:
        return bool(self.setting)

    def value_of_broker(self, brokers: int) -> int:
        """The value of `setting` in a cluster of so many brokers (clusters_share_evenly)."""
        whole = int(Decimal(self.value) * _BYTES.get(self.unit, 1))
        return max(whole // brokers, 1) if self.is_divided else whole

    @property
    def is_divided(self) -> bool:
        """True if each broker enforces a share of the cluster's value (clusters_share_evenly)."""
        return self.is_emulated and self.scope == "cluster" and not broker_setting(self.setting).of_cluster

    def sentence(self, brokers: int) -> str:
        """A remark beside value and setting in a cluster of so many brokers; "" if there is none."""
        part, _, unit = self.per_unit.partition(" per ")
        size = f"of one {unit}" if part == self.value else f"of the largest cluster, {self.per_unit}"
        share = (
            "divided evenly where there are more brokers"
            if brokers == 1
            else f"divided evenly over {brokers} brokers, rounded down"
        )
        since = f"enforced since {self.enforced_since}"
        applies = (size, self.per_unit), (since, self.enforced_since), (self.note, self.note), (share, self.is_divided)
        return "; ".join(remark for remark, is_so in applies if is_so)


@cache
def presets() -> Mapping[str, tuple[PresetLimit, ...]]:
    """The limits of each cluster, by its name, in the order of the table."""
    text = resources.files("turnstile").joinpath("presets.tsv").read_text("utf-8")
    found: dict[str, list[PresetLimit]] = {}
    for row in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        found.setdefault(row["preset"], []).append(PresetLimit(**row))
    return MappingProxyType({name: tuple(rows) for name, rows in found.items()})


def settings_like(name: str, brokers: int) -> dict[str, str]:
    """The settings that emulate a cluster. Raises KeyError."""
    return {row.setting: str(row.value_of_broker(brokers)) for row in presets()[name] if row.is_emulated}


def note_of(name: str, brokers: int) -> str:
    """The note of `turnstile up --like` on it, for so many brokers."""
    rows = presets()[name]
    emulated = sum(row.is_emulated for row in rows)
    lists = f"turnstile presets {name}{f' --brokers {brokers}' if brokers > 1 else ''}"
    return f"like {name}: {emulated} of its {len(rows)} published limits are emulated; `{lists}` lists all"
