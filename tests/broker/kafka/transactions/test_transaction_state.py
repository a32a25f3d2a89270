"""The steps of a transactional id: Kafka's codes and epochs, and the invariants after any requests in any order."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.kafka.transactions import transaction_state as steps
from broker.kafka.transactions.transaction_state import (
    EPOCH_LIMIT,
    PREPARED,
    TransactionMetadata,
    TransactionState,
    Transition,
)
from broker.wire import codes

S = TransactionState
P = [("t", 0)]


def known(**fields: Any) -> TransactionMetadata:
    return TransactionMetadata(
        **{"transactional_id": "x", "producer_id": 7, "producer_epoch": 3, "timeout_ms": 100, "update_ms": 0, **fields}
    )


def new_id() -> int:
    return 99


def init(metadata: TransactionMetadata | None, expected: tuple[int, int] | None = None) -> Transition:
    return steps.init_producer_id(metadata, "x", 100, expected, new_id, 5)


def test_kip_360_a_producer_that_goes_on_gets_the_next_epoch_and_may_ask_twice() -> None:
    first = init(known(), (7, 3))
    assert first.metadata is not None
    assert (first.code, first.producer_id, first.producer_epoch, first.metadata.last_producer_epoch) == (0, 7, 4, 3)
    assert init(first.metadata, (7, 3))[2:] == (7, 4)
    assert init(first.metadata, (7, 2)).code == codes.PRODUCER_FENCED
    assert init(first.metadata, (8, 4)).code == codes.PRODUCER_FENCED
    assert init(first.metadata)[2:] == (7, 5)


def test_a_used_up_id_is_replaced_and_the_old_one_may_ask_again() -> None:
    last = known(producer_epoch=EPOCH_LIMIT - 1)
    replaced = init(last, (7, EPOCH_LIMIT - 1))
    assert replaced[2:] == (99, 0)
    assert replaced.metadata is not None
    assert init(replaced.metadata, (7, EPOCH_LIMIT - 1))[2:] == (99, 0)
    fenced = known(producer_epoch=EPOCH_LIMIT, last_producer_epoch=EPOCH_LIMIT - 1, state=S.COMPLETE_ABORT)
    assert init(fenced, (7, EPOCH_LIMIT - 1))[2:] == (99, 0)
    assert init(fenced)[2:] == (99, 0)


def test_the_second_version_gives_every_transaction_an_epoch_and_knows_a_repeated_end() -> None:
    begun = steps.add_partitions(known(), 7, 3, P, 5).metadata
    ended = steps.end_second(begun, 7, 3, new_id, commit=True, now_ms=6)
    assert ended[2:] == (7, 4)
    assert steps.end_second(ended.metadata, 7, 3, new_id, commit=True, now_ms=6).code == codes.CONCURRENT_TRANSACTIONS
    assert ended.metadata is not None
    done = steps.complete(ended.metadata, 7)
    assert steps.end_second(done, 7, 3, new_id, commit=True, now_ms=8) == (0, None, 7, 4)
    assert steps.end_second(done, 7, 3, new_id, commit=False, now_ms=8).code == codes.INVALID_TXN_STATE
    assert steps.end_second(done, 7, 2, new_id, commit=True, now_ms=8).code == codes.PRODUCER_FENCED
    assert steps.end_second(done, 7, 4, new_id, commit=True, now_ms=8).code == codes.INVALID_TXN_STATE
    nothing = steps.end_second(done, 7, 4, new_id, commit=False, now_ms=8)
    assert nothing.metadata is not None
    assert (nothing.code, nothing.metadata.state, nothing.producer_epoch) == (0, S.PREPARE_ABORT, 5)


def test_an_abort_of_nothing_waits_for_the_markers_of_the_transaction_before() -> None:
    """KAFKA-18464: the producer has the next epoch already, and would be told that it is fenced."""
    begun = steps.add_partitions(known(), 7, 3, P, 5).metadata
    ended = steps.end_second(begun, 7, 3, new_id, commit=True, now_ms=6).metadata
    assert ended is not None
    assert steps.end_second(ended, 7, 4, new_id, commit=False, now_ms=7).code == codes.CONCURRENT_TRANSACTIONS
    assert steps.end_second(steps.complete(ended, 8), 7, 4, new_id, commit=False, now_ms=9).code == codes.NONE


def test_the_second_version_gives_a_new_id_with_the_last_epoch() -> None:
    begun = steps.add_partitions(known(producer_epoch=EPOCH_LIMIT - 1), 7, EPOCH_LIMIT - 1, P, 5).metadata
    ended = steps.end_second(begun, 7, EPOCH_LIMIT - 1, new_id, commit=True, now_ms=6)
    assert ended[2:] == (99, 0)
    assert ended.metadata is not None
    assert ended.metadata.producer_epoch == EPOCH_LIMIT  # of the markers
    done = steps.complete(ended.metadata, 7)
    assert (done.producer_id, done.producer_epoch) == (99, 0)
    assert steps.end_second(done, 7, EPOCH_LIMIT - 1, new_id, commit=True, now_ms=8) == (0, None, 99, 0)


def test_a_producer_that_was_fenced_with_the_last_epoch_is_not_given_it() -> None:
    begun = steps.add_partitions(known(producer_epoch=EPOCH_LIMIT - 1), 7, EPOCH_LIMIT - 1, P, 5).metadata
    assert begun is not None
    fenced = steps.complete(steps.fence(begun, 6), 7)
    assert steps.end_second(fenced, 7, EPOCH_LIMIT - 1, new_id, commit=False, now_ms=8).code == codes.PRODUCER_FENCED


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT, S.PREPARE_COMMIT, S.PREPARE_ABORT])
@pytest.mark.parametrize("commit", [False, True])
def test_the_first_version_ends_what_is_ongoing_alone(state: TransactionState, commit: bool) -> None:
    expected = {
        (S.COMPLETE_COMMIT, True): codes.NONE,
        (S.COMPLETE_ABORT, False): codes.NONE,
        **{(prepared, what): codes.CONCURRENT_TRANSACTIONS for prepared in PREPARED for what in (False, True)},
    }.get((state, commit), codes.INVALID_TXN_STATE)
    step = steps.end(known(state=state), 7, 3, commit=commit, now_ms=5)
    assert (step.code, step.metadata) == (expected, None)
    assert steps.end(known(state=state), 7, 2, commit=commit, now_ms=5).code == codes.PRODUCER_FENCED


class Transactions(RuleBasedStateMachine):
    """One id, whose producers do anything; `used` are all epochs that some producer was given."""

    def __init__(self) -> None:
        super().__init__()
        self.metadata: TransactionMetadata | None = None
        self.producers: list[tuple[int, int]] = [(0, 0)]
        self.ids = 0
        self.now_ms = 0

    def new_id(self) -> int:
        self.ids += 1
        return self.ids

    def take(self, step: Transition) -> None:
        self.now_ms += 10
        if step.metadata is not None:
            if self.metadata is not None and self.metadata.producer_id == step.metadata.producer_id:
                assert step.metadata.producer_epoch >= self.metadata.producer_epoch, "S2"
            self.metadata = step.metadata
        if not step.code and step.producer_id >= 0:
            assert step.producer_epoch < EPOCH_LIMIT, "S2"
            self.producers.append((step.producer_id, step.producer_epoch))

    @rule(at=st.none() | st.integers(0, 5))
    def init(self, at: int | None) -> None:
        expected = None if at is None else self.producers[-1 - at % len(self.producers)]
        self.take(steps.init_producer_id(self.metadata, "x", 100, expected, self.new_id, self.now_ms))

    @rule(at=st.integers(0, 3), partition=st.integers(0, 2))
    def add(self, at: int, partition: int) -> None:
        producer = self.producers[-1 - at % len(self.producers)]
        self.take(
            steps.add_partitions(self.metadata, *producer, [("t", partition)], self.now_ms)._replace(producer_id=-1)
        )

    @rule(at=st.integers(0, 3), commit=st.booleans(), second=st.booleans())
    def end(self, at: int, commit: bool, second: bool) -> None:
        producer = self.producers[-1 - at % len(self.producers)]
        if second:
            step = steps.end_second(self.metadata, *producer, self.new_id, commit=commit, now_ms=self.now_ms)
        else:
            step = steps.end(self.metadata, *producer, commit=commit, now_ms=self.now_ms)
        self.take(step)

    @precondition(lambda self: self.metadata is not None and self.metadata.state in PREPARED)
    @rule()
    def complete(self) -> None:
        assert self.metadata is not None
        self.metadata = steps.complete(self.metadata, self.now_ms)

    @precondition(lambda self: self.metadata is not None and steps.timed_out(self.metadata, self.now_ms))
    @rule()
    def time_out(self) -> None:
        assert self.metadata is not None
        self.metadata = steps.fence(self.metadata, self.now_ms)

    @precondition(lambda self: self.metadata is not None and self.metadata.producer_epoch < EPOCH_LIMIT - 3)
    @precondition(lambda self: self.metadata is not None and self.metadata.state is S.EMPTY)
    @rule()
    def grow_old(self) -> None:
        """As after thirty thousand transactions."""
        assert self.metadata is not None
        self.metadata = known(producer_id=self.metadata.producer_id, producer_epoch=EPOCH_LIMIT - 3)
        self.producers.append((self.metadata.producer_id, EPOCH_LIMIT - 3))

    @invariant()
    def holds(self) -> None:
        if self.metadata is not None:
            self.metadata.check()


TestTransactions = Transactions.TestCase
