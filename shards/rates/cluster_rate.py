"""The rate of new connections to all brokers, `turnstile.cluster.max.connection.creation.rate`, as one shard sees it; and beside it
the same rate where it is observed instead of enforced (broker/accept/rate_rehearsal.py).

Each has one window, with the key `cluster` or `observed/cluster`, for the shards of all brokers, which are its members. They are
in a Rates of their own (rates.py), beside that of the shard's broker, whose rates thus wait for no other broker. Members are
numbered as those of the pool of the cluster (shards/tokens/cluster_pool.py), and follow the same coordinator.

silent_until_set  Until a version sets the rate or observes it, or a shard that has such a version sends something, no message is
    sent and nothing is counted. Then a home asks all others for their use, as any home that starts does.
outlives_a_broker  What the shards of a home's broker used is remembered by shards of another one (rate_recovery.py,
    use_survives_one_death): a broker whose shards all die opens no second window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from shards.config.image import ClusterImage
from shards.limits.caps import CLUSTER, OBSERVED, OF_CLUSTER
from shards.ownership import BrokerShard, member_of, shard_of_member
from shards.rates.rate_home import RecordEvent
from shards.rates.rate_queues import RateWaiter
from shards.rates.rates import Rates

NAME: Final = "cluster_rate"
"""The first field of its messages."""
_OBSERVED: Final = OBSERVED + CLUSTER


class ClusterRate:
    """The rate of the whole cluster on the shard at `place`. `send(place, message)` hands over a message for another shard, in
    order; `now_ms()`: of the clock that all processes share; `journal`: rate_home.py, window_changes_are_journaled.

    `is_on`: whether connections have to be recorded; `is_observed`: whether those that were let in have to be recorded in the
    observed rate.
    """

    def __init__(
        self,
        place: BrokerShard,
        brokers: int,
        shards: int,
        image: ClusterImage,
        *,
        send: Callable[[BrokerShard, tuple[object, ...]], None],
        now_ms: Callable[[], int],
        journal: RecordEvent = lambda kind, detail, version: None,
    ) -> None:
        self.is_on = self.is_observed = False
        self._shards: Final = shards
        self._image = image
        self._now_ms = now_ms
        self._is_silent = True
        self._epochs: dict[int, int] = {}  # by member, the epoch that came up last
        self._up: set[int] = set()
        self._rates = Rates(
            member_of(place, shards),
            brokers * shards,
            (),
            image,
            send=lambda member, message: send(shard_of_member(member, shards), (NAME, *message[1:])),
            journal=journal,
            every=OF_CLUSTER,
            together=shards if brokers > 1 else 1,
        )

    # Connections

    def record(self, waiter: RateWaiter) -> int | None:
        """Records one connection: the answer as `RateWaiter.recorded` gets it, or None: the waiter is told later."""
        return self._rates.record(CLUSTER, waiter, now_ms=self._now_ms())

    def observe(self, connections: int, waiter: RateWaiter) -> None:
        """Records so many connections that were let in, one after the other, in the observed rate: see Rates.record_some."""
        self._rates.record_some(_OBSERVED, connections, waiter, now_ms=self._now_ms())

    # Configuration, peers, time

    def apply(self) -> None:
        """The image has another version: see Rates.apply."""
        self.is_on = self._rates.has_quota(CLUSTER)
        self.is_observed = self._rates.has_quota(_OBSERVED)
        if self.is_on or self.is_observed:
            self._speak()
        if not self._is_silent:
            self._rates.apply(self._image.version, now_ms=self._now_ms())

    def reset(self) -> None:
        """Forgets every connection that was recorded; called on each shard of a cluster."""
        if not self._is_silent:
            self._rates.reset(now_ms=self._now_ms())

    def receive(self, place: BrokerShard, message: Sequence[Any]) -> None:
        """A message of another shard, as it gave it to its `send`."""
        if self._is_silent:
            self._speak()
            self.apply()
        self._rates.receive(member_of(place, self._shards), message[1], now_ms=self._now_ms())

    def peer_up(self, place: BrokerShard, epoch: int) -> None:
        """Another shard can be sent to. An earlier incarnation of it has ended, also where that was not noticed."""
        member = member_of(place, self._shards)
        if self._epochs.get(member, epoch) != epoch:
            self.peer_dead(place)
        self._epochs[member] = epoch
        self._up.add(member)
        if not self._is_silent:
            self._rates.peer_up(member)

    def peer_lost(self, place: BrokerShard) -> None:
        """The links to another shard broke; its process may live."""
        member = member_of(place, self._shards)
        self._up.discard(member)
        self._rates.peer_lost(member, now_ms=self._now_ms())

    def peer_dead(self, place: BrokerShard) -> None:
        """The process of another shard has ended."""
        if not self._is_silent:
            self._rates.peer_dead(member_of(place, self._shards), now_ms=self._now_ms())

    def next_ms(self) -> int | None:
        """The time at which `advance` has something to do, in ms; None: not before the next call."""
        return None if self._is_silent else self._rates.next_ms()

    def advance(self) -> None:
        """Does what is due by now."""
        self._rates.advance(now_ms=self._now_ms())

    def tick(self) -> None:
        """Deadlines; about four times a second."""
        if not self._is_silent:
            self._rates.tick(now_ms=self._now_ms())

    @property
    def busy(self) -> bool:
        """True if `flush` has something to do."""
        return not self._is_silent and self._rates.busy

    def flush(self) -> None:
        """Ends a pass: tells waiters what was decided here, and sends what was queued."""
        if not self._is_silent:
            self._rates.flush(now_ms=self._now_ms())

    def _speak(self) -> None:
        """silent_until_set"""
        if self._is_silent:
            self._is_silent = False
            for member in self._up:
                self._rates.peer_up(member)
