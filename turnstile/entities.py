"""The one spelling of a quota's entity for people, as the command line takes it: `user=alice client-id=<default>`."""

from __future__ import annotations

from collections.abc import Mapping

ENTITY_TYPES = ("ip", "user", "client-id", "client-id-prefix")
DEFAULT = "<default>"
"""This stands, as a name in a quota entity, for every name of the type without a quota of its own."""


def entity_name(text: str) -> str | None:
    """A name in an entity as people write it; None for DEFAULT, as Kafka has it."""
    return None if text == DEFAULT else text


def entity_names(entity: Mapping[str, str | None]) -> dict[str, str]:
    """`{"user": "alice", "client-id": "<default>"}`, the reverse of entity_name for each type, in the order of ENTITY_TYPES."""
    named = ((kind, entity[kind]) for kind in ENTITY_TYPES if kind in entity)
    return {kind: DEFAULT if name is None else name for kind, name in named}


def entity_words(entity: Mapping[str, str | None]) -> list[str]:
    """`["user=alice", "client-id=<default>"]`, of names by type; None is DEFAULT."""
    return [f"{kind}={name}" for kind, name in entity_names(entity).items()]


def entity_text(entity: Mapping[str, str | None]) -> str:
    """`user=alice client-id=<default>`."""
    return " ".join(entity_words(entity))
