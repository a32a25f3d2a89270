"""A share partition: what is acquired, acknowledged, released and archived, one rule at a time."""

import pytest

from broker.kafka.share.acknowledgement import AcknowledgementBatch, AcknowledgeType, are_valid
from broker.kafka.share.in_flight import RecordState, Run, laid
from broker.kafka.share.share_partition import AcquiredRecords, Lock, OffsetSpan, SharePartition, Wanted
from broker.wire import codes

GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
ALL = Wanted(500, 500, 2000)
LIMIT = 3


def lock(member: str = "m", until_ms: int = 100) -> Lock:
    return Lock(member, until_ms, LIMIT)


def batches(*sizes: int, start: int = 0) -> list[OffsetSpan]:
    spans = []
    for size in sizes:
        spans.append(OffsetSpan(start, start + size - 1, size))
        start += size
    return spans


def acknowledge(partition: SharePartition, first: int, last: int, *types: int, member: str = "m") -> int:
    return partition.acknowledge([AcknowledgementBatch(first, last, types)], lock(member, 900))[0]


@pytest.fixture
def ten() -> SharePartition:
    """Ten records, two batches, all acquired by m."""
    partition = SharePartition(0)
    partition.acquire(batches(5, 5), lock(), ALL)
    return partition


def test_records_are_acquired_once(ten: SharePartition) -> None:
    assert ten.runs == [Run(0, 9, RecordState.ACQUIRED, 1, "m", 100)]
    assert ten.next_fetch_offset() == ten.end_offset == 10
    assert ten.acquire(batches(5, 5), lock("other"), ALL) == []


def test_a_soft_limit_ends_with_its_batch_a_strict_one_at_once() -> None:
    partition = SharePartition(0)
    soft, strict = Wanted(3, 500, 2000), Wanted(3, 500, 2000, strict=True)
    assert partition.acquire(batches(5, 5), lock(), soft) == [(0, 4, 1)]
    assert partition.acquire(batches(5, start=5), lock(), strict) == [(5, 7, 1)]
    assert partition.end_offset == 8


def test_a_soft_limit_takes_what_is_available_of_its_batch(ten: SharePartition) -> None:
    for offset in (1, 3, 6):
        acknowledge(ten, offset, offset, RELEASE)
    assert ten.acquire(batches(5, 5), lock(), Wanted(1, 500, 2000)) == [(1, 1, 2), (3, 3, 2)]
    assert ten.acquire(batches(5, start=5), lock(), Wanted(1, 500, 2000, strict=True)) == [(6, 6, 2)]


def test_what_is_acquired_is_cut_at_ends_of_batches() -> None:
    found = SharePartition(0).acquire(batches(4, 4, 4), lock(), Wanted(500, 5, 2000))
    assert found == [AcquiredRecords(0, 7, 1), AcquiredRecords(8, 11, 1)]


def test_no_more_than_the_most_are_in_flight() -> None:
    partition = SharePartition(0)
    few = Wanted(500, 500, 7)
    assert partition.acquire(batches(5, 5), lock(), few) == [(0, 6, 1)]
    assert not partition.can_acquire(7)
    assert acknowledge(partition, 0, 1, ACCEPT) == 0
    assert partition.can_acquire(7)
    assert partition.acquire(batches(5, 5), lock("other"), few) == [(7, 8, 1)]


def test_the_start_passes_what_is_done_with(ten: SharePartition) -> None:
    assert acknowledge(ten, 5, 9, ACCEPT) == 0
    assert (ten.start_offset, ten.end_offset, ten.completed) == (0, 10, 5)
    assert acknowledge(ten, 0, 4, *[GAP, REJECT, ACCEPT, RELEASE, ACCEPT]) == 0
    assert (ten.start_offset, ten.next_fetch_offset()) == (3, 3)
    assert ten.acquire(batches(5, 5), lock("other"), ALL) == [(3, 3, 2)]
    assert acknowledge(ten, 3, 3, ACCEPT, member="other") == 0
    assert (ten.start_offset, ten.runs) == (10, [])


def test_a_record_is_delivered_so_often_and_no_more(ten: SharePartition) -> None:
    for delivery in range(2, LIMIT + 1):
        assert acknowledge(ten, 0, 0, RELEASE) == 0
        assert ten.acquire(batches(5, 5), lock(), ALL) == [(0, 0, delivery)]
    assert acknowledge(ten, 0, 0, RELEASE) == 0
    assert ten.start_offset == 1


def test_a_lock_that_runs_out_releases_what_it_held(ten: SharePartition) -> None:
    ten.acquire(batches(5, start=10), lock("other", 200), ALL)
    assert ten.lock_deadline_ms() == 100
    assert not ten.expire(LIMIT, now_ms=99)
    assert ten.expire(LIMIT, now_ms=100)
    assert ten.runs == [Run(0, 9, RecordState.AVAILABLE, 1), Run(10, 14, RecordState.ACQUIRED, 1, "other", 200)]
    assert acknowledge(ten, 0, 0, ACCEPT) == codes.INVALID_RECORD_STATE


def test_a_lock_is_renewed(ten: SharePartition) -> None:
    assert acknowledge(ten, 2, 3, RENEW) == 0
    ten.expire(LIMIT, now_ms=100)
    assert [(run.first, run.last) for run in ten.runs if run.member] == [(2, 3)]


def test_a_member_that_goes_releases_what_it_has_alone(ten: SharePartition) -> None:
    ten.acquire(batches(5, start=10), lock("other"), ALL)
    assert ten.release("m", LIMIT)
    assert not ten.release("m", LIMIT)
    assert ten.next_fetch_offset() == 0
    assert acknowledge(ten, 10, 14, ACCEPT, member="other") == 0


def test_what_never_left_was_not_delivered(ten: SharePartition) -> None:
    ten.give_back("m", [AcquiredRecords(0, 9, 1)])
    assert ten.runs == []
    assert ten.acquire(batches(5, 5), lock(), ALL) == [(0, 9, 1)]


@pytest.mark.parametrize(
    ("first", "last", "member", "code"),
    [
        (0, 9, "other", codes.INVALID_RECORD_STATE),
        (5, 10, "m", codes.INVALID_REQUEST),
        (10, 12, "m", codes.INVALID_REQUEST),
    ],
)
def test_a_member_that_acknowledges_what_it_has_not_is_refused(
    ten: SharePartition, first: int, last: int, member: str, code: int
) -> None:
    before = [*ten.runs]
    assert acknowledge(ten, first, last, ACCEPT, member=member) == code
    assert ten.runs == before


def test_an_acknowledgement_is_heeded_whole_or_not_at_all(ten: SharePartition) -> None:
    wrong = [AcknowledgementBatch(0, 4, [ACCEPT]), AcknowledgementBatch(5, 12, [ACCEPT])]
    assert ten.acknowledge(wrong, lock())[0] == codes.INVALID_REQUEST
    assert ten.start_offset == 0
    assert SharePartition(5).acknowledge(wrong[1:], lock())[0] == codes.INVALID_RECORD_STATE


def test_records_that_the_log_has_dropped_are_done_with(ten: SharePartition) -> None:
    ten.log_starts_at(7)
    assert (ten.start_offset, ten.in_flight) == (7, 3)
    assert acknowledge(ten, 0, 6, ACCEPT) == 0
    assert acknowledge(ten, 5, 8, ACCEPT) == 0
    assert ten.start_offset == 9
    ten.log_starts_at(20)
    assert (ten.start_offset, ten.end_offset) == (20, 20)


def test_a_hole_in_the_log_is_passed(ten: SharePartition) -> None:
    assert ten.acquire(batches(3, start=20), lock(), ALL) == [(20, 22, 1)]
    acknowledge(ten, 0, 9, ACCEPT)
    assert ten.start_offset == 20


def test_a_released_batch_that_is_gone_is_archived(ten: SharePartition) -> None:
    acknowledge(ten, 0, 4, RELEASE)
    assert ten.acquire(batches(5, start=5), lock(), ALL) == []
    assert ten.start_offset == 5


def test_records_of_aborted_transactions_are_archived() -> None:
    partition = SharePartition(0)
    spans = batches(3, 3, 3)
    assert partition.acquire(spans, lock(), ALL, [spans[1]]) == [(0, 2, 1), (6, 8, 1)]
    assert acknowledge(partition, 0, 2, ACCEPT) == 0
    assert partition.start_offset == 6


def test_records_kept_beyond_a_limit_are_archived() -> None:
    partition = SharePartition(0, [Run(0, 4, RecordState.AVAILABLE, LIMIT)])
    assert partition.acquire(batches(5), lock(), ALL) == []
    assert partition.start_offset == 5


def test_runs_are_laid_over_others() -> None:
    old = [Run(0, 9, RecordState.AVAILABLE, 1)]
    assert laid(old, [Run(3, 4, RecordState.ARCHIVED, 1), Run(12, 13, RecordState.ACKNOWLEDGED, 2)]) == [
        Run(0, 2, RecordState.AVAILABLE, 1),
        Run(3, 4, RecordState.ARCHIVED, 1),
        Run(5, 9, RecordState.AVAILABLE, 1),
        Run(10, 11, RecordState.AVAILABLE, 0),
        Run(12, 13, RecordState.ACKNOWLEDGED, 2),
    ]


@pytest.mark.parametrize(
    ("given", "valid"),
    [
        ([(0, 4, [1])], True),
        ([(0, 1, [1, 2]), (2, 2, [0])], True),
        ([(4, 0, [1])], False),
        ([(0, 4, [])], False),
        ([(0, 4, [1, 1])], False),
        ([(0, 4, [5])], False),
        ([(0, 4, [-1])], False),
        ([(0, 4, [4])], False),
        ([(5, 6, [1]), (0, 1, [1])], False),
    ],
)
def test_batches_that_make_no_sense_are_told(given: list[tuple[int, int, list[int]]], valid: bool) -> None:
    assert are_valid([AcknowledgementBatch(*each) for each in given], renews=False) is valid


def test_renewals_are_for_requests_that_say_so() -> None:
    assert are_valid([AcknowledgementBatch(0, 4, [4])], renews=True)
