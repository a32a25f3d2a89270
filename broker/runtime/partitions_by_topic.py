"""Partitions as (topic, number), as Kafka's messages have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def by_topic(places: Iterable[Sequence[Any]]) -> dict[Any, list[int]]:
    """Topic, or its id -> numbers of its partitions, both in the order in which they come."""
    topics: dict[Any, list[int]] = {}
    for topic, number in places:
        topics.setdefault(topic, []).append(number)
    return topics
