"""The file of transactional ids: what was put is there after a restart, also behind damage, and files stay short."""

from pathlib import Path

import pytest

from broker.kafka.transactions.transaction_log import TransactionLog
from broker.kafka.transactions.transaction_state import TransactionMetadata, TransactionState
from broker.storage import record_file
from shards.ownership import bucket_of


def metadata(name: str, **fields: object) -> TransactionMetadata:
    given = {"producer_id": 5, "producer_epoch": 1, "timeout_ms": 100, "update_ms": 7, **fields}
    return TransactionMetadata(transactional_id=name, **given)  # type: ignore[arg-type]


def test_what_was_put_last_is_there_after_a_restart(tmp_path: Path) -> None:
    log = TransactionLog(tmp_path)
    ongoing = metadata(
        "a", state=TransactionState.ONGOING, partitions=frozenset({("t", 0), ("t", 3), ("ü", 1)}), start_ms=3,
        last_producer_epoch=0, previous_producer_id=4, next_producer_id=9, second=True,
    )  # fmt: skip
    for each in (metadata("a"), metadata("b"), ongoing, metadata("c")):
        log.put(each)
    log.forget("b")
    again = TransactionLog(tmp_path)
    assert {each.transactional_id: each for each in again} == {"a": ongoing, "c": metadata("c")}
    assert again.get("b") is None


def test_only_the_buckets_at_home_are_read(tmp_path: Path) -> None:
    TransactionLog(tmp_path).put(metadata("a"))
    assert len(TransactionLog(tmp_path, lambda bucket: bucket != bucket_of("a"))) == 0


def test_a_file_is_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "COMPACT_BYTES", 1000)
    log = TransactionLog(tmp_path)
    for epoch in range(200):
        log.put(metadata("a", producer_epoch=epoch))
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size < 2000
    assert [each.producer_epoch for each in TransactionLog(tmp_path)] == [199]


def test_a_write_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = TransactionLog(tmp_path)
    log.put(metadata("a"))

    def full(*_: object) -> int:
        raise OSError(28, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        with pytest.raises(OSError, match="no space"):
            log.put(metadata("a", producer_epoch=2))
    assert log.get("a") == metadata("a")
    assert [*TransactionLog(tmp_path)] == [metadata("a")]
