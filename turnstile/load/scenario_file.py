"""Scenario files: TOML in, a Scenario out. The shipped ones lie in load/scenarios; docs/load.md lists every key."""

from __future__ import annotations

import tomllib
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from turnstile.load.sources import Sources
from turnstile.load.spec import UNTIL_THE_END, ClientGroup, LoadScenario, SpecInvalid, Traffic
from turnstile.load.suggestion import Suggestion
from turnstile.settings import as_quota, as_settings

SHIPPED = Path(__file__).parent / "scenarios"
NOT_KEYS = ("recorded", "suggested")
"""Fields that no key of a file gives: connections of a log, and what [limits] and [[quota]] make."""
TABLES = {"group": (ClientGroup, "groups"), "traffic": (Traffic, "traffic")}
"""Lists of tables by their keys: the class of an entry, and the field of the scenario that has them."""

Table = TypeVar("Table", LoadScenario, ClientGroup, Traffic)


def shipped() -> list[LoadScenario]:
    """The scenarios that come with Turnstile, by name."""
    return [read(path) for path in sorted(SHIPPED.glob("*.toml"))]


def names() -> list[str]:
    """The names of the scenarios that come with Turnstile."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def find(name: str) -> LoadScenario:
    """A shipped scenario by its name, or a file by its path. Raises SpecInvalid."""
    path = SHIPPED / f"{name}.toml" if "/" not in name and not name.endswith(".toml") else Path(name)
    if not path.exists():
        near = get_close_matches(name, names(), n=1)
        rather = f"did you mean {near[0]}?" if near else f"give a file, or one of {', '.join(names())}."
        raise SpecInvalid(f"There is no scenario {name!r}: {rather}")
    return read(path)


def read(path: Path) -> LoadScenario:
    """A scenario from its file. Raises SpecInvalid, naming the file, for what is not one."""
    try:
        document = tomllib.loads(path.read_text())
        return build(document, path.stem)
    except (tomllib.TOMLDecodeError, SpecInvalid, UnicodeDecodeError, OSError) as wrong:
        raise SpecInvalid(f"{path}: {wrong}") from None
    except RecursionError:
        raise SpecInvalid(f"{path}: it is nested too deeply.") from None


def build(document: dict[str, object], name: str) -> LoadScenario:
    """A scenario from a parsed document. Raises SpecInvalid."""
    settings: dict[str, object] = {"name": name}
    for key, value in document.items():
        if key in TABLES:
            kind, field = TABLES[key]
            if not isinstance(value, list):
                raise SpecInvalid(f"[{key}] must be [[{key}]]: there can be several.")
            settings[field] = tuple(_make(kind, entry, key) for entry in value)
        elif key not in ("limits", "quota"):
            settings[key] = value
    made = _make(LoadScenario, settings, "the file")
    return replace(made, suggested=_suggestion(document))


def _suggestion(document: dict[str, object]) -> Suggestion:
    limits, quotas = document.get("limits", {}), document.get("quota", [])
    if not isinstance(limits, dict) or not isinstance(quotas, list):
        raise SpecInvalid("limits must be a table, [limits], and quotas a list of them, [[quota]].")
    try:
        return Suggestion(as_settings(limits), tuple(as_quota(entry) for entry in quotas))
    except ValueError as wrong:
        raise SpecInvalid(f"{wrong}.") from None


def _make(kind: type[Table], entry: dict[str, Any], where: str) -> Table:
    known = {field.name: field.type for field in fields(kind)} if entry else {}
    entry = dict(entry)
    for key, value in entry.items():
        if key not in known or key in NOT_KEYS:
            raise SpecInvalid(f"{where}: there is no key {key!r}.")
        if key == "hold_s" and value == "end":
            entry[key] = UNTIL_THE_END
        elif key == "sources":
            entry[key] = _sources(value)
        elif not _fits(value, str(known[key])):
            raise SpecInvalid(f"{where}: {key} can't be {value!r}.")
    if kind is ClientGroup and "clients" not in entry and {"rate", "duration_s"} <= entry.keys():
        entry["clients"] = max(1, round(entry["rate"] * entry["duration_s"]))
    try:
        return kind(**entry)
    except TypeError as wrong:
        raise SpecInvalid(f"{where}: {wrong}.") from None


def _sources(text: object) -> Sources:
    try:
        return Sources(str(text))
    except ValueError as wrong:
        raise SpecInvalid(str(wrong)) from None


def _fits(value: object, declared: str) -> bool:
    if isinstance(value, bool):
        return "bool" in declared
    if isinstance(value, int):
        return "int" in declared or "float" in declared
    if isinstance(value, float):
        return "float" in declared
    return isinstance(value, tuple) or ("str" in declared and isinstance(value, str))
