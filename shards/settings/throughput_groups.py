"""`kafka_throughput_control`: groups of clients to whom the throughput limits of a node do not apply. Pure.

    [{"name": "backup", "client_id": "backup-[0-9]+"}, {"name": "unnamed", "client_id": "+empty"}]

A client belongs to the first group whose `client_id`, a regular expression of RE2, matches the whole of its client id; `+empty`
matches clients that have none; a group without `client_id` has every client. Limits of a group's own do not exist: belonging to
one is the exemption.

Source: ThroughputControlGroup (Redpanda 24.3), `kafka_throughput_control` of 26.2.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from shards.settings.patterns import BadPattern, whole

EMPTY = "+empty"
_KEYS = {"name", "client_id"}


class ThroughputGroup(NamedTuple):
    """A group. `client_id`: an expression, EMPTY, or None for every client."""

    name: str | None
    client_id: str | None

    def has(self, client_id: str | None) -> bool:
        """True if a client of this id (None: it tells none) belongs to it."""
        if self.client_id is None:
            return True
        if self.client_id == EMPTY:
            return client_id is None
        return client_id is not None and whole(self.client_id)(client_id)


ThroughputGroups: TypeAlias = tuple[ThroughputGroup, ...]


def is_exempt(groups: Iterable[ThroughputGroup], client_id: str | None) -> bool:
    """True if any group has the client."""
    return any(group.has(client_id) for group in groups)


def parse_groups(text: str) -> ThroughputGroups:
    """The groups of a JSON list. ValueError, with the rule that it breaks."""
    try:
        listed = json.loads(text.strip() or "[]")
    except ValueError:
        raise ValueError('it must be a JSON list of groups, as [{"name": "a", "client_id": "b-.*"}]') from None
    if not isinstance(listed, list):
        raise ValueError("it must be a list of groups")
    groups = tuple(map(_parse_group, listed))
    names = [group.name for group in groups if group.name is not None]
    if len(set(names)) < len(names):
        raise ValueError("the names of its groups must be unique")
    return groups


def _parse_group(group: object) -> ThroughputGroup:
    if not isinstance(group, dict) or group.keys() - _KEYS:
        raise ValueError(
            "each group must be an object of name and client_id, both optional; a group has no limits of its own"
        )
    name, client_id = group.get("name"), group.get("client_id")
    for value in (name, client_id):
        if value is not None and (not isinstance(value, str) or not value):
            raise ValueError("the name and client_id of a group must be text, and not empty")
    if client_id is not None and client_id.startswith("+") and client_id != EMPTY:
        raise ValueError(f"a client_id that begins with + must be {EMPTY}")
    if client_id is not None and client_id != EMPTY:
        try:
            whole(client_id)
        except BadPattern as fault:
            raise ValueError(f"{client_id!r} is not a regular expression of RE2: {fault}") from None
    return ThroughputGroup(name, client_id)


def spell_groups(groups: Iterable[ThroughputGroup]) -> str:
    """The canonical JSON."""
    rows = [{key: value for key, value in group._asdict().items() if value is not None} for group in groups]
    return json.dumps(rows, ensure_ascii=False)
