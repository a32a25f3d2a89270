"""The transactions of one transactional id, one after the other, as pure steps: no I/O and no clock; `now_ms` comes in.

    EMPTY --- a partition is added ---> ONGOING --- EndTxn ---> PREPARE_COMMIT --- all markers written ---> COMPLETE_COMMIT
      ^                                  ^   |  --- EndTxn,                                                       |
      |                                  |   |      timeout, ---> PREPARE_ABORT --- all markers written ---> COMPLETE_ABORT
      |                                  |   |      new producer
      +------ InitProducerId ------------|---+--------------------------------------------------------------------+
                                         +-------------------------- a partition is added ------------------------+

A step answers with a code, and the metadata that must be written before the answer leaves. Between two steps there is
nothing: where Kafka is in PREPARE_EPOCH_FENCE until its log has answered, one step here goes on to PREPARE_ABORT; and an id
that expires is DEAD in no moment in which it could be asked for. Both states are names that ListTransactions knows.

Invariants (`check` asserts decided_stays_decided and producer_epochs_only_rise)
decided_stays_decided  An id has partitions only while a transaction is ONGOING or PREPARE_*; a commit or an abort that was
    decided stays so.
producer_epochs_only_rise  The producer epoch of a producer id only rises; it is below EPOCH_LIMIT wherever a producer may
    get it.
transactions_end_with_their_epoch  A transaction of the second version (KIP-890) ends with an epoch of its own: what its
    producer sent before and arrives late is fenced. Its last epoch tells a repeated EndTxn.
earlier_producers_are_fenced  Of two producers with one id the earlier is fenced: InitProducerId raises the epoch, and
    aborts what was ONGOING.

Source: TransactionCoordinator, TransactionMetadata of Kafka 4.1; KIP-98, KIP-360 (epochs), KIP-890, KAFKA-19367 (one bump).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from broker.storage.topic_partition import TopicPartition
from broker.wire import codes

NONE = -1
EPOCH_LIMIT = 32_767
"""Short.MAX_VALUE: only a fence or a marker may have it. A producer that is one below gets a new id."""


class TransactionState(Enum):
    """Named as DescribeTransactions and ListTransactions spell them."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


S = TransactionState
PREPARED = (S.PREPARE_COMMIT, S.PREPARE_ABORT)
IDLE = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """One transactional id. Times are in ms; -1 stands for nothing.

    last_producer_epoch   the epoch before, while its producer may not have heard of the new one
    previous_producer_id  the producer id before
    next_producer_id      what the producer gets when the markers are written, if its epochs are used up
    start_ms              when the transaction got its first partition
    second                whether it ended by the second version of the protocol
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    update_ms: int
    state: TransactionState = S.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NONE
    last_producer_epoch: int = NONE
    previous_producer_id: int = NONE
    next_producer_id: int = NONE
    second: bool = False

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold."""
        assert not self.partitions or self.state is S.ONGOING or self.state in PREPARED, "decided_stays_decided"
        assert 0 <= self.producer_epoch <= EPOCH_LIMIT, "producer_epochs_only_rise"
        assert self.producer_epoch < EPOCH_LIMIT or self.state in (*PREPARED, S.COMPLETE_ABORT), (
            "producer_epochs_only_rise"
        )

    @property
    def exhausted(self) -> bool:
        return self.producer_epoch >= EPOCH_LIMIT - 1


class Transition(NamedTuple):
    """A code for the client; the metadata to write before it hears of it, None: nothing changes; the producer id and epoch
    that it goes on with."""

    code: int
    metadata: TransactionMetadata | None = None
    producer_id: int = NONE
    producer_epoch: int = NONE


NewId = Callable[[], int]
"""A producer id that was never used; called at most once in a step."""


def init_producer_id(
    known: TransactionMetadata | None,
    transactional_id: str,
    timeout_ms: int,
    expected: tuple[int, int] | None,
    new_id: NewId,
    now_ms: int,
) -> Transition:
    """`expected`: (producer id, epoch) that the producer has, if it goes on after an error (KIP-360)."""
    if known is None:
        new = TransactionMetadata(
            transactional_id=transactional_id,
            producer_id=new_id(),
            producer_epoch=0,
            timeout_ms=timeout_ms,
            update_ms=now_ms,
        )
        return Transition(codes.NONE, new, new.producer_id, 0)
    if expected is not None and not _may_expect(known, *expected):
        return Transition(codes.PRODUCER_FENCED)
    if known.state in PREPARED:
        return Transition(codes.CONCURRENT_TRANSACTIONS)
    if known.state is S.ONGOING:
        return Transition(codes.CONCURRENT_TRANSACTIONS, fence(known, now_ms))
    epoch = known.producer_epoch
    answer_lost = expected is not None and expected[1] == known.last_producer_epoch != epoch
    if known.exhausted and (expected is None or expected[1] == epoch or (answer_lost and epoch == EPOCH_LIMIT)):
        producer_id, bumped, last = new_id(), 0, NONE if expected is None else epoch
    elif expected is None or expected[1] == epoch:
        producer_id, bumped, last = known.producer_id, epoch + 1, NONE if expected is None else epoch
    elif answer_lost:
        producer_id, bumped, last = known.producer_id, epoch, known.last_producer_epoch
    else:
        return Transition(codes.PRODUCER_FENCED)
    new = replace(
        known,
        producer_id=producer_id,
        producer_epoch=bumped,
        last_producer_epoch=last,
        previous_producer_id=known.producer_id,
        timeout_ms=timeout_ms,
        state=S.EMPTY,
        start_ms=NONE,
        update_ms=now_ms,
        second=False,
    )
    return Transition(codes.NONE, new, producer_id, bumped)


def _may_expect(known: TransactionMetadata, producer_id: int, epoch: int) -> bool:
    """True if a producer with that id is the last one, perhaps without having heard of its new id."""
    used_up = producer_id == known.previous_producer_id and epoch >= EPOCH_LIMIT - 1
    return producer_id == known.producer_id or used_up


def add_partitions(
    known: TransactionMetadata | None, producer_id: int, epoch: int, partitions: Iterable[TopicPartition], now_ms: int
) -> Transition:
    """AddPartitionsToTxn, AddOffsetsToTxn, and what the second version adds with the first record."""
    code = _belongs(known, producer_id, epoch)
    if code or known is None:
        return Transition(code)
    if known.state in PREPARED:
        return Transition(codes.CONCURRENT_TRANSACTIONS)
    added = known.partitions.union(partitions)
    if known.state is S.ONGOING:
        return Transition(
            codes.NONE, replace(known, partitions=added, update_ms=now_ms) if added != known.partitions else None
        )
    begun = replace(known, state=S.ONGOING, partitions=added, start_ms=now_ms, update_ms=now_ms)
    return Transition(codes.NONE, begun)


def verify(
    known: TransactionMetadata | None, producer_id: int, epoch: int, partitions: Iterable[TopicPartition]
) -> list[int]:
    """A code for each: TRANSACTION_ABORTABLE for one that the transaction does not have."""
    code = _belongs(known, producer_id, epoch)
    if not code and known is not None and known.state in PREPARED:
        code = codes.CONCURRENT_TRANSACTIONS
    if code or known is None:
        return [code for _ in partitions]
    return [codes.NONE if each in known.partitions else codes.TRANSACTION_ABORTABLE for each in partitions]


def _belongs(known: TransactionMetadata | None, producer_id: int, epoch: int) -> int:
    if known is None or known.producer_id != producer_id:
        return codes.INVALID_PRODUCER_ID_MAPPING
    return codes.NONE if known.producer_epoch == epoch else codes.PRODUCER_FENCED


def end(known: TransactionMetadata | None, producer_id: int, epoch: int, *, commit: bool, now_ms: int) -> Transition:
    """EndTxn of the first version: the epoch stays."""
    code = _belongs(known, producer_id, epoch)
    if code or known is None:
        return Transition(code)
    if known.state in PREPARED:
        return Transition(codes.CONCURRENT_TRANSACTIONS)
    done = Transition(codes.NONE, None, known.producer_id, known.producer_epoch)
    if known.state is S.ONGOING:
        state = S.PREPARE_COMMIT if commit else S.PREPARE_ABORT
        return done._replace(metadata=replace(known, state=state, update_ms=now_ms, second=False))
    return _ended_before(known, done, commit=commit)


def end_second(
    known: TransactionMetadata | None, producer_id: int, epoch: int, new_id: NewId, *, commit: bool, now_ms: int
) -> Transition:
    """EndTxn of the second version: the producer goes on with the next epoch, or a new id. It may abort a transaction to
    which nothing was added, of which it can't know."""
    if known is None:
        return Transition(codes.INVALID_PRODUCER_ID_MAPPING)
    new_id_taken = known.previous_producer_id == producer_id and epoch == EPOCH_LIMIT - 1 and known.producer_epoch == 0
    if known.producer_id != producer_id and not new_id_taken:
        return Transition(codes.INVALID_PRODUCER_ID_MAPPING)
    if known.state in PREPARED:
        # Asked before the epoch: a producer that has the next epoch already may abort a transaction to which nothing was added,
        # and is told to wait, not that it is fenced (KAFKA-18464).
        return Transition(codes.CONCURRENT_TRANSACTIONS)
    again = (known.producer_epoch == epoch + 1 and known.state is not S.ONGOING and known.state is not S.EMPTY) or (
        new_id_taken and known.state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT)
    )
    if not again and known.producer_epoch != epoch:
        return Transition(codes.PRODUCER_FENCED)
    if again and known.producer_epoch == EPOCH_LIMIT and known.next_producer_id == NONE:
        return Transition(
            codes.PRODUCER_FENCED
        )  # the fence took the last epoch, which no producer may get (producer_epochs_only_rise)
    if again:
        done = Transition(codes.NONE, None, known.producer_id, known.producer_epoch)
        return _ended_before(known, done, commit=commit)
    if known.state is not S.ONGOING and commit:
        return Transition(codes.INVALID_TXN_STATE)
    next_id = new_id() if known.exhausted else NONE
    prepared = replace(
        known,
        state=S.PREPARE_COMMIT if commit else S.PREPARE_ABORT,
        producer_epoch=epoch + 1,
        last_producer_epoch=epoch,
        next_producer_id=next_id,
        start_ms=known.start_ms if known.state is S.ONGOING else now_ms,
        update_ms=now_ms,
        second=True,
    )
    return Transition(codes.NONE, prepared, *((producer_id, epoch + 1) if next_id == NONE else (next_id, 0)))


def _ended_before(known: TransactionMetadata, done: Transition, *, commit: bool) -> Transition:
    """The answer to an EndTxn of a transaction that is neither ONGOING nor PREPARE_*."""
    return (
        done
        if known.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
        else Transition(codes.INVALID_TXN_STATE)
    )


def fence(known: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Aborts an ONGOING transaction whose producer is not heard of any more, or is replaced: with another epoch."""
    return replace(
        known,
        state=S.PREPARE_ABORT,
        producer_epoch=known.producer_epoch + 1,
        last_producer_epoch=known.producer_epoch,
        update_ms=now_ms,
        second=True,
    )


def complete(known: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """All markers of a PREPARE_* transaction are written."""
    state = S.COMPLETE_COMMIT if known.state is S.PREPARE_COMMIT else S.COMPLETE_ABORT
    done = replace(known, state=state, partitions=frozenset(), update_ms=now_ms)
    if known.next_producer_id == NONE:
        return done
    return replace(
        done,
        producer_id=known.next_producer_id,
        producer_epoch=0,
        previous_producer_id=known.producer_id,
        next_producer_id=NONE,
    )


def timed_out(known: TransactionMetadata, now_ms: int) -> bool:
    return known.state is S.ONGOING and known.start_ms + known.timeout_ms < now_ms


def expired(known: TransactionMetadata, expiration_ms: int, now_ms: int) -> bool:
    """True if its id is to be forgotten (transactional.id.expiration.ms)."""
    return known.state in IDLE and known.update_ms + expiration_ms <= now_ms
