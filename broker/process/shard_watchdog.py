"""Heartbeats from the coordinator to its shards: each is asked twice a second, and one that stays silent is ended.

unresponsive_until_answered  A shard is unresponsive from LATE_S after a question it has not answered, until it answers.
ended_without_progress  It is ended once it has neither answered a question nor made progress for the timeout
    (`turnstile.shard.timeout.ms`), which begins when a question is sent. Progress counts only while the shard starts or applies a
    version, which can take long; a shard that does neither must answer, or it hangs. It counts for MOST_BUSY_S after the last
    answer: a shard that spins is ended, too.
waits_for_a_cpu_do_not_count  Time during which the coordinator itself did not run does not count, nor does time for which a shard
    was ready to run and got no CPU.

Pure: the coordinator's process asks, reads the clock, and ends processes.
"""

from __future__ import annotations

from dataclasses import dataclass

from shards.ownership import BrokerShard

EVERY_S = 0.5
LATE_S = 0.5
MOST_BUSY_S = 600.0
_OVERSLEPT_S = 1.0
LEAVING = ("leaving",)
"""The message of a shard that ends in good order to the coordinator: all its connections are closed."""


@dataclass(eq=False)
class _Watch:
    """`answered_s`: when it answered last; `alive_s`: the last answer or progress; `asked_s`: when the unanswered ping was
    sent, if any."""

    answered_s: float
    alive_s: float
    asked_s: float | None = None


class ShardWatchdog:
    """The shards of a cluster as their answers show them. Times are of one clock, in seconds."""

    def __init__(self, members: list[BrokerShard], *, now_s: float) -> None:
        self._watches = {member: _Watch(now_s, now_s) for member in members}
        self._looked_s = now_s

    def begin_ping(self, member: BrokerShard, *, now_s: float) -> bool:
        """True if to ask the shard now: no earlier question is open. It counts as asked."""
        watch = self._watches[member]
        if watch.asked_s is not None:
            return False
        watch.asked_s = watch.alive_s = now_s
        return True

    def answered(self, member: BrokerShard, *, now_s: float) -> None:
        """The shard has answered, or a new incarnation of it has come up."""
        self._watches[member] = _Watch(now_s, now_s)

    def lost(self, member: BrokerShard, *, now_s: float) -> None:
        """The link of a shard has ended: the open ping gets no answer, and the next incarnation has the whole timeout."""
        self._watches[member] = _Watch(now_s, now_s)

    def progressed(self, member: BrokerShard, *, now_s: float) -> None:
        """A shard is starting or applying a version, and makes progress (ended_without_progress)."""
        watch = self._watches[member]
        if now_s - watch.answered_s < MOST_BUSY_S:
            watch.alive_s = now_s

    def waited(self, member: BrokerShard, seconds: float, *, now_s: float) -> None:
        """Since the last look the shard was ready to run for `seconds`, and got no CPU (waits_for_a_cpu_do_not_count)."""
        watch = self._watches[member]
        watch.alive_s = min(now_s, watch.alive_s + seconds)

    def unresponsive(self, *, now_s: float) -> set[BrokerShard]:
        """The shards that have not answered in time (unresponsive_until_answered)."""
        return {
            member
            for member, watch in self._watches.items()
            if watch.asked_s is not None and now_s - watch.asked_s >= LATE_S
        }

    def take_overdue(self, timeout_s: float, *, now_s: float) -> list[BrokerShard]:
        """The shards to end (ended_without_progress); each gets the whole timeout again. To be called every EVERY_S."""
        overslept_s = now_s - self._looked_s - EVERY_S
        self._looked_s = now_s
        if overslept_s > _OVERSLEPT_S:
            for watch in self._watches.values():
                watch.alive_s += overslept_s
                watch.answered_s += overslept_s
                if watch.asked_s is not None:
                    watch.asked_s += overslept_s
        overdue = [member for member, watch in self._watches.items() if now_s - watch.alive_s >= timeout_s]
        for member in overdue:
            self._watches[member].alive_s = now_s
        return overdue
