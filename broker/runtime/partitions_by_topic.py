"""Partitions as (topic, number), as Kafka's messages have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def by_topic(places: Iterable[tuple[T, int]]) -> dict[T, list[int]]:
    """Topic, or its id -> numbers of its partitions, both in the order in which they come."""
    topics: dict[T, list[int]] = {}
    for topic, number in places:
        topics.setdefault(topic, []).append(number)
    return topics
