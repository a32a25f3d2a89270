"""The one spelling of a quota's entity for people, as the command line takes it: `user=alice client-id=<default>`."""

from __future__ import annotations

from collections.abc import Mapping

ENTITY_TYPES = ("ip", "user", "client-id")
DEFAULT = "<default>"
"""As the name in a quota entity: every name of that type that has no quota of its own."""


def entity_words(entity: Mapping[str, str | None]) -> list[str]:
    """`["user=alice", "client-id=<default>"]`, of names by type; None is DEFAULT."""
    ordered = [kind for kind in ENTITY_TYPES if kind in entity]
    return [f"{kind}={DEFAULT if entity[kind] is None else entity[kind]}" for kind in ordered]


def entity_text(entity: Mapping[str, str | None]) -> str:
    """`user=alice client-id=<default>`."""
    return " ".join(entity_words(entity))
