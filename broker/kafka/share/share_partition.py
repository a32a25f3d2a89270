"""One share partition: which records of a partition a share group has in flight, and what became of them. Pure.

In flight are the offsets from `start_offset` (SPSO) to in front of `end_offset` (SPEO, one behind Kafka's). A record is
AVAILABLE, ACQUIRED by a member for the time of a lock, ACKNOWLEDGED, or ARCHIVED; in the last two it stays until the start
offset has passed it.

one_member_acquires_a_record  A record is acquired by one member at a time at most.
deliveries_are_limited  It is delivered `delivery_limit` times at most: a last delivery that is released, or whose lock runs
    out, archives it.
share_start_never_falls  `start_offset` never falls (but by `reset`, for AlterShareGroupOffsets).
acknowledged_stays_so  What was acknowledged or archived is never acquired again.
in_flight_is_bounded  At most `most_in_flight` records are in flight after an acquisition. (Kafka goes beyond it to the end
    of a batch.)
expired_locks_release_their_own  A lock that runs out releases what it held, and nothing else.
acknowledgements_whole_or_not  An acknowledgement is heeded whole or not at all.

Source: SharePartition, InFlightState of Kafka 4.1 and 4.2.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from broker.kafka.api_error import NO_ERROR, ApiError
from broker.kafka.share.acknowledgement import AcknowledgementBatch, AcknowledgeType
from broker.kafka.share.in_flight import TERMINAL, RecordState, Run, changed, laid, merged, overlapping
from broker.wire import codes


class AcquiredRecords(NamedTuple):
    """Acquired records as a ShareFetch response carries them: offsets `first` to `last`, both included, and their delivery
    count."""

    first: int
    last: int
    deliveries: int


class Lock(NamedTuple):
    """A lock on records: the member, the instant at which it ends, how often a record may be delivered, whether RENEW may be."""

    member: str
    until_ms: int
    delivery_limit: int
    renewable: bool = True


class Wanted(NamedTuple):
    """The bounds of what may be acquired. `batch_size`: records in one AcquiredRecords, about. `strict`: not one record more than
    `max_records` (KIP-1206's record_limit); else up to the end of the batch that exceeds it."""

    max_records: int
    batch_size: int
    most_in_flight: int
    strict: bool = False


class OffsetSpan(NamedTuple):
    """A batch of the log that was read: its offsets, both included, and its size in bytes."""

    first: int
    last: int
    size: int = 0


class SharePartition:
    """`runs`: those in flight, as they were kept; `start_offset`: in front of the first of them."""

    def __init__(self, start_offset: int, runs: Iterable[Run] = ()) -> None:
        self.start_offset = start_offset
        self.runs: list[Run] = [*runs]

    @property
    def end_offset(self) -> int:
        return self.runs[-1].last + 1 if self.runs else self.start_offset

    @property
    def in_flight(self) -> int:
        return self.end_offset - self.start_offset

    def check(self) -> None:
        """Raises AssertionError if an invariant is broken; for tests."""
        at = self.start_offset
        for run in self.runs:
            assert run.first == at <= run.last
            assert (run.state is RecordState.ACQUIRED) == bool(run.member)
            at = run.last + 1
        assert merged(self.runs) == self.runs
        assert not self.runs or self.runs[0].state not in TERMINAL

    # Acquiring

    def next_fetch_offset(self) -> int:
        """The first offset from which records can be acquired."""
        return next((run.first for run in self.runs if run.state is RecordState.AVAILABLE), self.end_offset)

    def can_acquire(self, most_in_flight: int) -> bool:
        """True if there is one to acquire, if the log has it."""
        return self.next_fetch_offset() != self.end_offset or self.in_flight < most_in_flight

    def acquire(
        self, read: Sequence[OffsetSpan], lock: Lock, wanted: Wanted, dropped: Sequence[OffsetSpan] = ()
    ) -> list[AcquiredRecords]:
        """Acquires records of the batches that were read from `next_fetch_offset` on.

        What can't be read any more (a hole in the log) and what is `dropped` (aborted transactions) is archived.
        """
        if not read or wanted.max_records <= 0:
            return []
        fetched_from, begin, end = self.next_fetch_offset(), read[0].first, read[-1].last
        self._extend(begin, end, wanted.most_in_flight)
        self._archive_available(fetched_from, begin - 1)
        for span in dropped:
            self._archive_available(span.first, span.last)
        acquired: list[AcquiredRecords] = []
        room = wanted.max_records
        for run in overlapping(self.runs, begin, end):
            if run.state is not RecordState.AVAILABLE:
                continue
            if room <= 0 and (wanted.strict or _end_of_batch(read, acquired[-1].last) < run.first):
                break
            if run.deliveries >= lock.delivery_limit:  # a shard that died kept it so, or the limit has changed since
                self._archive_available(run.first, run.last)
                continue
            last = run.last
            if run.size > room:
                asked = run.first + max(room, 1) - 1
                last = asked if wanted.strict else min(_end_of_batch(read, asked), run.last)
            taken = run._replace(
                last=last,
                state=RecordState.ACQUIRED,
                deliveries=run.deliveries + 1,
                member=lock.member,
                until_ms=lock.until_ms,
            )
            self.runs = changed(self.runs, taken.first, taken.last, lambda _, taken=taken: taken)  # type: ignore[misc]
            acquired += _in_batches(taken, read, wanted)
            room -= taken.size
        self._trim_end(acquired[-1].last if acquired else self.start_offset - 1)
        self._advance()
        return acquired

    def _extend(self, begin: int, end: int, most_in_flight: int) -> None:
        """Records that were not in flight yet are, as AVAILABLE (in_flight_is_bounded)."""
        if begin > self.end_offset:  # a hole in the log, of which nothing will be read
            self.runs = merged([*self.runs, Run(self.end_offset, begin - 1, RecordState.ARCHIVED, 0)])
            self._advance()
        last = min(end, self.start_offset + most_in_flight - 1)
        if last >= self.end_offset:
            self.runs = merged([*self.runs, Run(self.end_offset, last, RecordState.AVAILABLE, 0)])

    def _archive_available(self, first: int, last: int) -> None:
        def archive(run: Run) -> Run:
            return run._replace(state=RecordState.ARCHIVED) if run.state is RecordState.AVAILABLE else run

        if first <= last:
            self.runs = changed(self.runs, first, last, archive)

    def _trim_end(self, acquired_last: int) -> None:
        """Records behind those acquired that were never delivered are not in flight."""
        while self.runs and self.runs[-1].first > acquired_last and self.runs[-1][2:4] == (RecordState.AVAILABLE, 0):
            self.runs = self.runs[:-1]

    @property
    def completed(self) -> int:
        """The number of records in flight that will not be delivered again."""
        return sum(run.size for run in self.runs if run.state in TERMINAL)

    # What becomes of them

    def acknowledge(self, batches: Sequence[AcknowledgementBatch], lock: Lock) -> ApiError:
        """Applies what `lock.member` acknowledges, all of it or nothing (acknowledgements_whole_or_not). Offsets in front of the
        start are passed over."""
        runs = self.runs
        for batch in batches:
            if batch.last < self.start_offset:
                continue
            refused = self._refused(lock, batch, runs)
            if refused is not None:
                return refused
            for first, last, kind in batch.runs():
                runs = changed(runs, max(first, self.start_offset), last, _acknowledged(kind, lock))
        self.runs = runs
        self._advance()
        return NO_ERROR

    def _refused(self, lock: Lock, batch: AcknowledgementBatch, runs: Sequence[Run]) -> ApiError | None:
        if not runs:
            return ApiError(
                codes.INVALID_RECORD_STATE, "Batch record not found. The base offset is not found in the cache."
            )
        if batch.first >= self.end_offset:
            return ApiError(codes.INVALID_REQUEST, "The first offset in request is past acquired records.")
        if batch.last >= self.end_offset:
            return ApiError(codes.INVALID_REQUEST, "The last offset in request is past acquired records.")
        for run in overlapping(runs, batch.first, batch.last):
            if run.member and run.member != lock.member:
                return ApiError(codes.INVALID_RECORD_STATE, "Member is not the owner of batch record")
            if run.state is not RecordState.ACQUIRED:
                return ApiError(
                    codes.INVALID_RECORD_STATE,
                    "The batch cannot be acknowledged. The batch is not in the acquired state.",
                )
        if not lock.renewable and AcknowledgeType.RENEW in batch.types:
            return ApiError(codes.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")
        return None

    def release(self, member: str, delivery_limit: int) -> bool:
        """The session of a member has ended. Whether it held anything."""
        return self._release(lambda run: run.member == member, delivery_limit)

    def expire(self, delivery_limit: int, *, now_ms: int) -> bool:
        """expired_locks_release_their_own. Whether a lock had run out."""
        return self._release(lambda run: run.state is RecordState.ACQUIRED and run.until_ms <= now_ms, delivery_limit)

    def give_back(self, member: str, records: Iterable[AcquiredRecords]) -> None:
        """Gives records back that were acquired and never left the broker: they were not delivered."""
        for first, last, _ in records:
            self.runs = changed(
                self.runs,
                first,
                last,
                lambda run: _available(run, deliveries=run.deliveries - 1) if run.member == member else run,
            )
        self._trim_end(self.start_offset - 1)

    def _release(self, which: Callable[[Run], bool], delivery_limit: int) -> bool:
        if not any(map(which, self.runs)):
            return False
        self.runs = merged(_released(run, delivery_limit) if which(run) else run for run in self.runs)
        self._advance()
        return True

    def lock_deadline_ms(self) -> int | None:
        """The time at which the next lock runs out."""
        return min((run.until_ms for run in self.runs if run.state is RecordState.ACQUIRED), default=None)

    # The start offset

    def log_starts_at(self, offset: int) -> None:
        """Records in front of it are gone."""
        if offset > self.start_offset:
            self.runs = [run.cut(offset, run.last) for run in self.runs if run.last >= offset]
            self.start_offset = offset
            self._advance()

    def reset(self, offset: int) -> None:
        """An administrator sets the start offset."""
        self.start_offset, self.runs = offset, []

    def restore(self, start_offset: int, runs: Sequence[Run]) -> None:
        """Takes in a change that was kept. Records of which nothing is known were never delivered."""
        known = laid(self.runs, runs)
        if known and known[0].first > start_offset:
            known = laid([Run(start_offset, known[0].first - 1, RecordState.AVAILABLE, 0)], known)
        self.runs = known
        self.log_starts_at(start_offset)
        self._advance()

    def _advance(self) -> None:
        """Moves the start past what is acknowledged or archived (share_start_never_falls)."""
        done = 0
        while done < len(self.runs) and self.runs[done].state in TERMINAL:
            done += 1
        if done:
            self.start_offset = self.runs[done - 1].last + 1
            self.runs = self.runs[done:]


def _available(run: Run, *, deliveries: int) -> Run:
    return Run(run.first, run.last, RecordState.AVAILABLE, deliveries)


def _released(run: Run, delivery_limit: int) -> Run:
    """The run given back: available again, or archived after its last delivery (deliveries_are_limited)."""
    state = RecordState.ARCHIVED if run.deliveries >= delivery_limit else RecordState.AVAILABLE
    return Run(run.first, run.last, state, run.deliveries)


def _acknowledged(kind: AcknowledgeType, lock: Lock) -> Callable[[Run], Run]:
    if kind is AcknowledgeType.RENEW:
        return lambda run: run._replace(until_ms=lock.until_ms)
    if kind is AcknowledgeType.RELEASE:
        return lambda run: _released(run, lock.delivery_limit)
    state = RecordState.ACKNOWLEDGED if kind is AcknowledgeType.ACCEPT else RecordState.ARCHIVED
    return lambda run: Run(run.first, run.last, state, run.deliveries)


def _end_of_batch(read: Sequence[OffsetSpan], offset: int) -> int:
    return next((span.last for span in read if span.last >= offset), offset)


def _in_batches(taken: Run, read: Sequence[OffsetSpan], wanted: Wanted) -> list[AcquiredRecords]:
    """Cut at ends of batches, so that each has about `batch_size` records."""
    made: list[AcquiredRecords] = []
    first = taken.first
    for span in read:
        last = min(span.last, taken.last)
        if first <= last and last - first + 1 >= wanted.batch_size and last < taken.last:
            made.append(AcquiredRecords(first, last, taken.deliveries))
            first = last + 1
    return [*made, AcquiredRecords(first, taken.last, taken.deliveries)]
