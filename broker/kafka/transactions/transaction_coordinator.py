"""The transactions whose home is this shard, with their clock, their file and their markers.

transaction_state.py decides each step, also which epoch is fenced and which transaction has timed out (`init_producer_id`, `fence`,
`timed_out`).

Every operation takes and returns what msgpack carries, so a call from another shard and one from here are the same. A change
is written before it is answered (steps_logged_before_answered), so a shard that is killed loses none; its successor ends
what was decided, and answers from when `run` has begun: before, it does not know the topics.

steps_logged_before_answered  A step's metadata is in the log before its code is answered. If it can't be written nothing
    has changed, and the answer is COORDINATOR_NOT_AVAILABLE, upon which clients try again.
one_task_sends_markers  Markers of a transaction are sent from when its decision is written until it is complete, by one
    task.
overdue_transactions_are_aborted  An ONGOING transaction is aborted when its timeout is over; so none hangs because its
    producer is gone.
transactional_ids_are_bounded  There are at most `turnstile.transactional.ids.max` ids here: a new one beyond is refused
    with POLICY_VIOLATION. One that was idle for transactional.id.expiration.ms is forgotten.
oldest_sessions_make_room  While Redpanda's max_transactions_per_coordinator is set, a new id that would be one too many makes
    the ids that were used least recently go: an idle one at once, one with a transaction once that is aborted.

Source: TransactionCoordinator, TransactionStateManager of Kafka 4.1; for the last, Redpanda's description of the property.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from heapq import nsmallest
from typing import Any

import trio

from broker.kafka.transactions import transaction_state as steps
from broker.kafka.transactions.homes import ClusterHomes
from broker.kafka.transactions.markers import Markers
from broker.kafka.transactions.messages import (
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducer,
    ListTransactions,
    TransactionDescription,
    TransactionListing,
    TransactionMessage,
    VerifyPartitions,
    serve,
)
from broker.kafka.transactions.producer_ids import ProducerIds
from broker.kafka.transactions.transaction_log import TransactionLog
from broker.kafka.transactions.transaction_state import (
    IDLE,
    PREPARED,
    TransactionMetadata,
    TransactionState,
    Transition,
)
from broker.runtime.logger import Logger
from broker.wire import codes
from shards.config.image import ClusterImage
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.loop.deferred import Deferred, MaybeDeferred, Spawn
from shards.settings import patterns

TIMEOUT_CHECK = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
EXPIRY_CHECK = "transaction.remove.expired.transaction.cleanup.interval.ms"
MOST_TERMINATED = 100
"""Sessions that one new id makes go: a setting that was lowered by far is reached step by step."""
_NO_PRODUCER = [-1, -1]

log = Logger()


class TransactionCoordinator:
    """`wall_ms` is the time of day: timeouts and expiry outlive this process."""

    def __init__(
        self,
        transactions: TransactionLog,
        image: ClusterImage,
        ids: ProducerIds,
        homes: ClusterHomes,
        spawn: Spawn,
        *,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._log = transactions
        self._image = image
        self._ids = ids
        self._spawn = spawn
        self._markers = Markers(homes, spawn)
        self._wall_ms = wall_ms
        self._terminated: set[str] = set()
        """Ids that are forgotten when their transaction is aborted (oldest_sessions_make_room)."""
        self._open: Deferred[None] = Deferred()
        operations: dict[type[TransactionMessage | ListTransactions], Callable[..., object]] = {
            InitProducer: self.init,
            AddPartitions: self.add_partitions,
            VerifyPartitions: self.verify,
            EndTransaction: self.end,
            DescribeTransaction: self.describe,
            ListTransactions: self.listing,
        }
        for kind, function in operations.items():
            serve(homes, kind, partial(self._serve, function))

    async def run(self) -> None:
        """Ends what was decided before, then meets timeouts and forgets expired ids, until cancelled."""
        for known in self._log:
            if known.state in PREPARED:
                self._markers.send(known, self._complete)
        self._open.resolve(None)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._every, TIMEOUT_CHECK, self.abort_timed_out)
            nursery.start_soon(self._every, EXPIRY_CHECK, self.expire)

    async def _every(self, setting: str, work: Callable[[], None]) -> None:
        while True:
            await trio.sleep(self._image.get(setting) / 1000)
            work()

    def _serve(self, function: Callable[..., object], *args: object) -> object:
        return function(*args) if self._open.resolved else self._open.then(lambda _: function(*args))

    # --- operations ------------------------------------------------------------------------------------------------

    def init(self, transactional_id: str, timeout_ms: int, producer_id: int, epoch: int) -> MaybeDeferred[list[int]]:
        """[code, producer id, epoch]. `producer_id`, `epoch`: what the producer has; -1 and -1 if nothing."""
        if not 0 < timeout_ms <= self._image.get("transaction.max.timeout.ms"):
            return [codes.INVALID_TRANSACTION_TIMEOUT, *_NO_PRODUCER]
        expected = (producer_id, epoch) if producer_id >= 0 else None

        def decide() -> Transition:
            known = self._log.get(transactional_id)
            if known is None and len(self._log) >= self._image.get("turnstile.transactional.ids.max"):
                return Transition(codes.POLICY_VIOLATION)
            if known is None:
                self._make_room()
            take = self._ids.take_now
            return steps.init_producer_id(known, transactional_id, timeout_ms, expected, take, self._wall_ms())

        return self._with_id(decide)

    def add_partitions(self, transactional_id: str, producer_id: int, epoch: int, places: Sequence[Any]) -> int:
        """A code. `places`: [topic, partition] each."""
        partitions = [(topic, number) for topic, number in places]
        known = self._log.get(transactional_id)
        return self._take(steps.add_partitions(known, producer_id, epoch, partitions, self._wall_ms())).code

    def verify(self, transactional_id: str, producer_id: int, epoch: int, places: Sequence[Any]) -> list[int]:
        """A code per place."""
        partitions = [(topic, number) for topic, number in places]
        return steps.verify(self._log.get(transactional_id), producer_id, epoch, partitions)

    def end(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool, second: bool
    ) -> MaybeDeferred[list[int]]:
        """[code, producer id, epoch]. `second`: by the second version of the protocol."""

        def decide() -> Transition:
            known, now_ms = self._log.get(transactional_id), self._wall_ms()
            if not second:
                return steps.end(known, producer_id, epoch, commit=commit, now_ms=now_ms)
            return steps.end_second(known, producer_id, epoch, self._ids.take_now, commit=commit, now_ms=now_ms)

        return self._with_id(decide)

    def describe(self, transactional_id: str) -> TransactionDescription:
        """TRANSACTIONAL_ID_NOT_FOUND for an unknown id."""
        known = self._log.get(transactional_id)
        if known is None:
            return TransactionDescription(codes.TRANSACTIONAL_ID_NOT_FOUND)
        return TransactionDescription(
            codes.NONE,
            known.state.value,
            known.timeout_ms,
            known.start_ms,
            known.producer_id,
            known.producer_epoch,
            sorted(known.partitions),
        )

    def listing(
        self, states: Sequence[str], producer_ids: Sequence[int], duration_ms: int, pattern: str
    ) -> list[TransactionListing]:
        """The transactions that pass all filters; an empty filter, or -1, passes all."""
        now_ms = self._wall_ms()
        matches = patterns.whole(pattern) if pattern else None
        return [
            TransactionListing(each.transactional_id, each.producer_id, each.state.value)
            for each in self._log
            if (not states or each.state.value in states)
            and (not producer_ids or each.producer_id in producer_ids)
            and (duration_ms < 0 or (each.state not in IDLE and now_ms - each.start_ms > duration_ms))
            and (matches is None or matches(each.transactional_id))
        ]

    def reset(self) -> None:
        """Forgets every id. Raises OSError."""
        for each in self._log:
            self._log.forget(each.transactional_id)
        self._terminated.clear()

    def close(self) -> None:
        self._log.close()

    # --- time ------------------------------------------------------------------------------------------------------

    def abort_timed_out(self) -> None:
        """Aborts every transaction whose timeout is over (overdue_transactions_are_aborted)."""
        now_ms = self._wall_ms()
        for known in self._log:
            if steps.timed_out(known, now_ms):
                log.info("a transaction is aborted: its timeout is over", transactional_id=known.transactional_id)
                self._take(Transition(codes.NONE, steps.fence(known, now_ms)))

    def expire(self) -> None:
        """Forgets ids that were not used for transactional.id.expiration.ms (transactional_ids_are_bounded)."""
        now_ms, expiration_ms = self._wall_ms(), self._image.get("transactional.id.expiration.ms")
        for known in self._log:
            if steps.expired(known, expiration_ms, now_ms) and not self._forget(known):
                return

    def _make_room(self) -> None:
        """Makes room for one new id (oldest_sessions_make_room)."""
        most = self._image.get("max_transactions_per_coordinator")
        excess = 0 if most is None else min(len(self._log) + 1 - len(self._terminated) - most, MOST_TERMINATED)
        if excess <= 0:
            return
        sessions = (m for m in self._log if m.state not in PREPARED and m.transactional_id not in self._terminated)
        for oldest in nsmallest(excess, sessions, key=lambda metadata: metadata.update_ms):
            log.info(
                "a session is terminated: there are as many as max_transactions_per_coordinator",
                transactional_id=oldest.transactional_id,
            )
            if oldest.state in IDLE:
                self._forget(oldest)
                continue
            self._terminated.add(oldest.transactional_id)
            if self._take(Transition(codes.NONE, steps.fence(oldest, self._wall_ms()))).code:
                self._terminated.discard(oldest.transactional_id)

    def _forget(self, known: TransactionMetadata) -> bool:
        """True if it could be written."""
        try:
            self._log.forget(known.transactional_id)
        except OSError as fault:
            log.error("a transactional id was not removed", transactional_id=known.transactional_id, error=str(fault))
            return False
        return True

    # --- small parts -----------------------------------------------------------------------------------------------

    def _with_id(self, decide: Callable[[], Transition]) -> MaybeDeferred[list[int]]:
        """Takes a step that may need a new producer id, once one is at hand."""
        return self._answer(decide) if self._ids.at_hand else self._spawn(self._refilled(decide))

    async def _refilled(self, decide: Callable[[], Transition]) -> list[int]:
        try:
            await self._ids.refill()
        except (PeerLost, DeadlineExceeded, RemoteError):
            return [codes.COORDINATOR_NOT_AVAILABLE, *_NO_PRODUCER]
        return self._answer(decide)

    def _answer(self, decide: Callable[[], Transition]) -> list[int]:
        step = self._take(decide())
        return [step.code, step.producer_id, step.producer_epoch]

    def _take(self, step: Transition) -> Transition:
        """Writes the step, and begins to send its markers (steps_logged_before_answered, one_task_sends_markers)."""
        metadata = step.metadata
        if metadata is None:
            return step
        try:
            self._log.put(metadata)
        except OSError as fault:
            log.error("a transaction was not written", transactional_id=metadata.transactional_id, error=str(fault))
            return Transition(codes.COORDINATOR_NOT_AVAILABLE)
        if metadata.state in PREPARED:
            self._markers.send(metadata, self._complete)
        return step

    def _complete(self, decided: TransactionMetadata) -> None:
        """Every marker is written."""
        if self._log.get(decided.transactional_id) is not decided:
            return  # all was reset meanwhile
        completed = steps.complete(decided, self._wall_ms())
        try:
            self._log.put(completed)
        except OSError as fault:
            log.error("a transaction was not completed", transactional_id=decided.transactional_id, error=str(fault))
            self._spawn(self._complete_later(decided))
            return
        if decided.transactional_id in self._terminated:
            self._terminated.discard(decided.transactional_id)
            self._forget(completed)

    async def _complete_later(self, decided: TransactionMetadata) -> None:
        await trio.sleep(1)
        self._complete(decided)


STATE_NAMES = frozenset(state.value for state in TransactionState)
