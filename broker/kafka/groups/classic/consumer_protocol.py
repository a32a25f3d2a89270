"""The join metadata of members of the consumer protocol (ConsumerProtocolSubscription), as far as groups need it."""

from __future__ import annotations

from broker.kafka.groups.classic.group import ClassicGroup


def subscriptions(group: ClassicGroup) -> set[str]:
    """The topics that the members ask for. Metadata of another protocol asks for none."""
    topics: set[str] = set()
    for member in group.members.values():
        for _, metadata in member.protocols:
            topics.update(_topics_of(metadata))
    return topics


def _topics_of(metadata: bytes) -> list[str]:
    """Version (i16), number of topics (i32), the topics (i16 length and UTF-8 each); what follows differs by version."""
    found: list[str] = []
    at = 6
    try:
        for _ in range(int.from_bytes(metadata[2:6], "big", signed=True)):
            length = int.from_bytes(metadata[at : at + 2], "big", signed=True)
            if length < 0 or at + 2 + length > len(metadata):
                return found
            found.append(metadata[at + 2 : at + 2 + length].decode())
            at += 2 + length
    except UnicodeDecodeError:
        return found
    return found
