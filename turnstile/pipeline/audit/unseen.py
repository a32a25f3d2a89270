"""Connections that may have held tokens without an event in the journal: when a process dies, those that it had in flight, or had
admitted and not yet journaled, leave no trace. Checks report nothing that such connections could explain."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shards.settings.broker_config import EVERY_BROKER
from turnstile.pipeline.events.survey import Process, Survey

SLACK_NS = 3_000_000_000
"""Longer than a connection waits for its tokens (a second), for a pass of a loop and for the way of a message."""


class Unseen(NamedTuple):
    """The times at which connections may have held tokens that the journal doesn't show: broker -> (from, until) around each
    death, of EVERY_BROKER around all of them, and from `end_ns` on everywhere."""

    spans: Mapping[int, Sequence[tuple[int, int]]]
    end_ns: int

    def contains(self, broker: int, at_ns: int) -> bool:
        """True if a refusal at that instant can't be judged."""
        if at_ns > self.end_ns:
            return True
        return any(low <= at_ns <= high for low, high in self.spans.get(broker, ()))


class Death(NamedTuple):
    """A process that is gone: its last event, and the time from which it is known to be dead."""

    broker: int
    shard: int
    epoch: int
    last_ns: int
    known_ns: int


def deaths(found: Survey) -> list[Death]:
    """The deaths of all processes that are gone."""
    dead = []
    lost = found.lost
    successor: Process | None = None
    for each in sorted(found.processes, reverse=True):
        known = [successor.first_ns] if successor is not None and successor[:2] == each[:2] else []
        known += [lost[each[:3]]] if each[:3] in lost else []
        if known and each.broker >= 0:
            dead.append(Death(*each[:3], each.last_ns, max(each.last_ns, min(known))))
        successor = each
    return dead


def unseen_in(found: Survey) -> Unseen:
    """The times at which connections may have held tokens that the journal doesn't show."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for death in deaths(found):
        for broker in (death.broker, EVERY_BROKER):
            spans.setdefault(broker, []).append((death.last_ns - SLACK_NS, death.known_ns + SLACK_NS))
    return Unseen(spans, max(each.last_ns for each in found.processes) - SLACK_NS)
