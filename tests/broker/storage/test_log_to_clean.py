"""Which part of a log may be cleaned, and when it is time to, as Kafka's LogCleanerManager decides it."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from batches import batch

from broker.storage.files import OpenFiles
from broker.storage.log_config import LogConfig
from broker.storage.log_to_clean import log_to_clean
from broker.storage.partition_log import PartitionLog

NOW = 1_700_000_000_000
LIMITS = LogConfig(segment_bytes=400, retention_bytes=-1, compacted=True)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    """Segments of 2 records of 200 bytes, a second each."""
    log = PartitionLog(str(tmp_path / "t-0"), UUID(int=1), OpenFiles(), LIMITS)
    for number in range(21):
        log.append(batch(b"v" * 120, keys=[b"a"], timestamps=[NOW + 1000 * number]), NOW)
    assert len(log.closed_segments) == 10
    yield log
    log.close()


def test_the_ratio_is_of_dirty_bytes_to_all_that_may_be_cleaned(log: PartitionLog) -> None:
    size = log.closed_segments[0].size
    for checkpoint, ratio in ((0, 1.0), (4, 0.8), (8, 0.6)):
        found = log_to_clean(log, checkpoint, NOW)
        assert found is not None and found.first_dirty == checkpoint
        assert found.ratio == pytest.approx(ratio)
        assert sum(segment.size for segment in found.segments) == 10 * size
    for checkpoint in (10, 20):
        assert log_to_clean(log, checkpoint, NOW) is None
    log.limits = LIMITS._replace(min_cleanable_ratio=0.05)
    assert log_to_clean(log, 18, NOW) is not None
    assert log_to_clean(log, 20, NOW) is None, "nothing is dirty"


def test_a_checkpoint_outside_the_log_counts_as_its_start(log: PartitionLog) -> None:
    log.delete_before(6)
    for checkpoint in (-1, 5, 22):
        found = log_to_clean(log, checkpoint, NOW)
        assert found is not None and found.first_dirty == 6


def test_segments_with_young_records_wait(log: PartitionLog) -> None:
    log.limits = LIMITS._replace(min_compaction_lag_ms=5000)
    found = log_to_clean(log, 0, NOW + 16_000)
    assert found is not None
    assert [segment.base_offset for segment in found.segments] == [0, 2, 4, 6, 8, 10]


def test_old_dirty_records_do_not_wait_for_the_ratio(log: PartitionLog) -> None:
    assert log_to_clean(log, 16, NOW + 20_000) is None
    for lag, is_late in ((4000, False), (3999, True)):
        log.limits = LIMITS._replace(max_compaction_lag_ms=lag)
        assert (log_to_clean(log, 16, NOW + 20_000) is not None) == is_late


def test_a_segment_is_closed_by_time(log: PartitionLog) -> None:
    log.limits = LIMITS._replace(segment_bytes=1 << 20, roll_ms=10_000)
    before = len(log.closed_segments)
    for seconds, closed in ((25, 0), (30, 0), (31, 1), (20, 1), (42, 2)):
        log.append(batch(b"v", keys=[b"a"], timestamps=[NOW + 1000 * seconds]), NOW)
        assert len(log.closed_segments) - before == closed
