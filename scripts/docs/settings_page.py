"""The page of settings, from the rows that the broker itself reads: shards/settings/."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scripts.docs.markdown import code, plain, slug, table
from shards.settings.broker_settings import COORDINATING, METERING, SERVING
from shards.settings.config_def import BROKER, TOPIC
from shards.settings.config_key import KAFKA, REDPANDA, TURNSTILE, ConfigKey
from shards.settings.config_types import COST, ConfigType, ValueType
from shards.settings.limiting_settings import LIMITING, THROUGHPUT
from shards.settings.overrides import Overrides
from shards.settings.ranges import INT_MAX, LONG_MAX, UINT32_MAX
from shards.settings.redpanda_controller import CONTROLLER
from shards.settings.redpanda_topics import TOPIC_ROOM
from shards.settings.resource_settings import CLIENT_METRICS, GROUP
from shards.settings.user_overrides import UserOverrides
from turnstile.quantities import duration

PLACE = "reference/settings.md"
_SOURCES = {KAFKA: "Kafka's", REDPANDA: "Redpanda's", TURNSTILE: "Turnstile's own"}
_UNITS = {
    ".ms": "milliseconds", "_ms": "milliseconds", ".seconds": "seconds", ".minutes": "minutes", ".hours": "hours",
    ".bytes": "bytes", "_bytes": "bytes", "buffer.size": "bytes",
    "creation.rate": "connections a second", "_rate_limit": "connections a second",
}  # fmt: skip
"""Unit of a number, by the end of its setting's name; any other number is a count."""
_WIDTHS = {INT_MAX: "32 bit", LONG_MAX: "64 bit", UINT32_MAX: "unsigned 32 bit"}
_HEAD = """# Every setting

Look up what a setting means, which values it takes, what holds without it, and whether it changes while the cluster runs.
This page is made from the definitions that the broker reads. [Limits and settings](../configuration.md) says how settings
are set and how they work together; `turnstile config list --all` shows them all with their values.

*Live*: `turnstile config set` changes it on a running cluster. *At the start*: `turnstile up --set`, a file or a variable gives it.
"""
_SECTIONS: tuple[tuple[str, str, Sequence[ConfigKey]], ...] = (
    ("Limits of connections", "What a client may open, and how fast.", LIMITING),
    ("Throughput of a broker", "What all clients of a broker together may send and receive.", THROUGHPUT),
    ("Operations of the controller", "How many changes a second it takes.", CONTROLLER),
    ("Windows and time limits", "How rates are averaged, and how long a connection or a session lasts.", METERING),
    ("Requests and records", "What requests may be, and how partitions are kept.", SERVING),
    ("Room for topics", "How many topics and partitions there may be, by Redpanda's names.", TOPIC_ROOM),
    ("Coordinators", "Groups, transactions, logins and telemetry.", COORDINATING),
    ("Configs of a topic", "Without its own, the broker's setting counts.", list(TOPIC.values())),
    ("Configs of a group", "Without its own, the broker's setting counts.", list(GROUP.values())),
    ("Configs of a client metrics resource", "Which metrics clients push (KIP-714).", list(CLIENT_METRICS.values())),
)


def settings_page(mentions: Mapping[str, Sequence[str]]) -> str:
    """The page. `mentions`: the links to the pages that name a setting, as Markdown, by the setting's name."""
    parts = [_HEAD]
    for title, about, rows in _SECTIONS:
        obeyed = [row for row in rows if row.emulated and not row.told]
        parts += [f"## {title}\n", f"{about}\n", *(_entry(row, mentions.get(row.name, ())) for row in obeyed)]
    told = [row for row in BROKER.values() if row.told]
    parts += [
        "## Told by the cluster\n",
        "These can be read and not be set: they say how the cluster was started.\n",
        table(["setting", "says"], ([code(row.name), plain(row.doc)] for row in told)),
        "## Not emulated\n",
        "Kafka's tools look for these, so they are checked, stored and shown, and nothing acts on them.\n",
        table(["setting", "of a", "value", "default"], _not_emulated()),
    ]
    return "\n".join(parts)


def targets() -> dict[str, str]:
    """{setting of a broker that something obeys: anchor of its entry}."""
    return {row.name: f"#{slug(row.name)}" for row in BROKER.values() if row.emulated and not row.told}


def _entry(row: ConfigKey, mentioned: Sequence[str]) -> str:
    live = "live" if row.dynamic else "at the start"
    others = {name: target for name, target in targets().items() if name != row.name}
    facts = " · ".join([_SOURCES[row.vocabulary], range_of(row), f"default {default_of(row)}", live])
    lines = [f"### {row.name}\n", plain(row.doc, others) + "\n", facts + "\n"]
    if row.per_listener:
        lines.append(f"Of one listener: `listener.name.<listener>.{row.name}`.\n")
    if row.broker_names:
        lines.append(
            f"Without it: {', then '.join(plain(name, others) for name, _ in row.broker_names)} of the broker.\n"
        )
    if mentioned:
        lines.append(f"More: {', '.join(mentioned)}.\n")
    return "\n".join(lines)


def range_of(row: ConfigKey) -> str:
    """Type, range and unit: `whole number from 0 (32 bit), milliseconds`."""
    kind = row.kind
    if isinstance(row.default, Overrides):
        return "list of address:number"
    if isinstance(row.default, UserOverrides):
        return "list of user:number"
    if kind is COST:
        return "list of API=cost"
    if kind.choices:
        named = ", ".join(code(choice) if choice else "nothing" for choice in kind.choices)
        return named if kind.json_type == "boolean" else f"list of {named}" if kind.items else f"one of {named}"
    if kind.low is not None:
        unit = unit_of(row.name)
        return _span(kind) + (f", {unit}" if unit else "")
    if kind.items:
        return "list of words"
    return {ConfigType.PASSWORD: "password", ConfigType.CLASS: "name of a class"}.get(kind.kafka, "text")


def _span(kind: ValueType) -> str:
    """`whole number from 0 to 10`; where the largest number is that of the type, the type's width instead."""
    low, high = kind.low, kind.high
    assert low is not None and high is not None
    number = "whole number" if kind.json_type == "integer" else "number"
    least = f" from {low:,}" if abs(low) <= INT_MAX else ""
    width = next((width for largest, width in _WIDTHS.items() if high == largest), "")
    most = f" ({width})" if width else f" to {high:,}" if high <= LONG_MAX else ""
    return f"{number}{least}{most}{', or -1' if low > -1 and _takes(kind, '-1') else ''}"


def _takes(kind: ValueType, text: str) -> bool:
    try:
        kind.parse(text)
    except ValueError:
        return False
    return True


def unit_of(name: str) -> str:
    """The unit of a number, by its setting's name; "" for a count."""
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


def default_of(row: ConfigKey) -> str:
    """The default, as code; a long time in words, too."""
    if row.default is None:
        return "none"
    text = row.kind.spell(row.default)
    if not text:
        return "empty"
    if row.default in (INT_MAX, LONG_MAX):
        return f"{code(text)} (no limit)"
    if unit_of(row.name) == "milliseconds" and isinstance(row.default, int) and row.default >= 1000:
        return f"{code(text)} ({duration(row.default)})"
    return code(text)


def _not_emulated() -> Iterable[Sequence[str]]:
    for scope, rows in (("broker", BROKER), ("topic", TOPIC), ("group", GROUP)):
        for name in sorted(rows):
            row = rows[name]
            if not row.emulated:
                yield code(name), scope, range_of(row), _short(default_of(row))


def _short(text: str) -> str:
    return text if len(text) < 60 else f"{text[:56]}...`"
