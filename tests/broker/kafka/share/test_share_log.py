"""The file of share partitions: what was kept is there after a restart, also behind damage, and files stay short."""

from pathlib import Path

import pytest

from broker.kafka.share.acknowledgement import AcknowledgementBatch
from broker.kafka.share.in_flight import RecordState, Run
from broker.kafka.share.share_log import ShareKey, ShareLog
from broker.kafka.share.share_partition import Lock, OffsetSpan, SharePartition, Wanted
from broker.kafka.share.share_session import TopicIdPartition
from broker.storage import record_file
from shards.ownership import bucket_of

KEY = ShareKey("g", TopicIdPartition("0" * 32, 3))
LOCK = Lock("m", 100, 5)


def changed(log: ShareLog, key: ShareKey = KEY) -> SharePartition:
    """Ten more records acquired, and all but the first of them accepted."""
    partition = log.get(key) or log.begin(key, 0)
    before = partition.start_offset, partition.runs
    start = partition.end_offset
    partition.acquire([OffsetSpan(start, start + 9, 1)], LOCK, Wanted(500, 500, 2000))
    log.write(key, partition, before)
    before = partition.start_offset, partition.runs
    partition.acknowledge([AcknowledgementBatch(start + 1, start + 9, [1])], LOCK)
    log.write(key, partition, before)
    return partition


def test_what_was_kept_is_there_after_a_restart(tmp_path: Path) -> None:
    changed(ShareLog(tmp_path))
    found = ShareLog(tmp_path).get(KEY)
    assert found is not None
    assert found.runs == [Run(0, 0, RecordState.AVAILABLE, 1), Run(1, 9, RecordState.ACKNOWLEDGED, 1)]
    assert found.start_offset == 0


def test_what_is_forgotten_stays_so(tmp_path: Path) -> None:
    log = ShareLog(tmp_path)
    other = ShareKey("g", TopicIdPartition("1" * 32, 0))
    changed(log)
    changed(log, other)
    log.forget("g", KEY.place.topic_id)
    assert len(log) == 1
    assert [*ShareLog(tmp_path)] == [other]
    log.forget("g")
    assert len(log) == len(ShareLog(tmp_path)) == 0


def test_a_start_that_was_set_anew_stays_so(tmp_path: Path) -> None:
    log = ShareLog(tmp_path)
    changed(log)
    log.begin(KEY, 4)
    found = ShareLog(tmp_path).get(KEY)
    assert found is not None
    assert (found.start_offset, found.runs) == (4, [])


def test_only_the_buckets_at_home_are_read(tmp_path: Path) -> None:
    changed(ShareLog(tmp_path))
    assert len(ShareLog(tmp_path, lambda bucket: bucket != bucket_of("g"))) == 0


def test_a_file_is_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "COMPACT_BYTES", 2000)
    log = ShareLog(tmp_path)
    partition = log.begin(KEY, 0)
    for offset in range(500):
        before = partition.start_offset, partition.runs
        partition.acquire([OffsetSpan(offset, offset, 1)], LOCK, Wanted(500, 500, 2000))
        partition.acknowledge([AcknowledgementBatch(offset, offset, [1])], LOCK)
        log.write(KEY, partition, before)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size < 5000
    found = ShareLog(tmp_path).get(KEY)
    assert found is not None
    assert found.start_offset == 500


def test_a_record_that_begins_or_ends_a_partition_outlives_the_compaction_it_causes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_file, "COMPACT_BYTES", 0)
    monkeypatch.setattr(record_file, "MAX_WASTE", 0)
    log = ShareLog(tmp_path)
    log.begin(KEY, 4)
    assert KEY in ShareLog(tmp_path)
    log.forget("g")
    assert KEY not in ShareLog(tmp_path)


def test_a_write_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = ShareLog(tmp_path)
    partition = changed(log)
    before = partition.start_offset, partition.runs

    def full(*_: object) -> int:
        raise OSError(28, "no space left")

    partition.acquire([OffsetSpan(10, 19, 1)], LOCK, Wanted(500, 500, 2000))
    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        with pytest.raises(OSError, match="no space"):
            log.write(KEY, partition, before)
    assert (partition.start_offset, partition.runs) == before


def test_damage_costs_a_change_and_is_set_aside(tmp_path: Path) -> None:
    log = ShareLog(tmp_path)
    changed(log, ShareKey("g", TopicIdPartition("1" * 32, 0)))
    (file,) = tmp_path.iterdir()
    damaged_at = file.stat().st_size
    changed(log)
    changed(log, ShareKey("g", TopicIdPartition("2" * 32, 0)))
    data = bytearray(file.read_bytes())
    data[damaged_at + 20] ^= 255
    file.write_bytes(data)
    again = ShareLog(tmp_path)
    assert {key.place.topic_id[0] for key in again} == {"0", "1", "2"}
    for key in again:
        found = again.get(key)
        assert found is not None
        found.check()
    assert [each.name for each in tmp_path.iterdir() if ".damaged-" in each.name]
