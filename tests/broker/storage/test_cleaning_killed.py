"""Whoever is killed at whichever write, the log is as before the cleaning or as behind it, for every view; and nothing is lost.

Three views of a log append, clean, delete and are killed as in test_shared_log.py. One of them cleans, as the home of a partition.
"""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from batches import batch
from cleaned import Read, clean, finish, read_all
from shared_logs import WRITES, DeadlyWords, Killed, Shards, state

from broker.storage.cleaning import Cleaning, CleaningAborted
from broker.storage.control_records import EndTransactionMarker
from broker.storage.log_config import LogConfig
from broker.storage.log_to_clean import load_checkpoint, log_to_clean
from broker.storage.records import Rejected
from broker.storage.shared_log import SharedLog

NOW = 1_700_000_000_000
LIMITS = LogConfig(
    segment_bytes=600, retention_bytes=-1, compacted=True, min_cleanable_ratio=0, delete_retention_ms=1000
)
CLEANER = 0


class Model:
    """What must be in the log: its records and markers by offset, in order; None: a marker."""

    def __init__(self) -> None:
        self.sent: list[Read | None] = []
        self.start = 0
        self.sequence = 0
        self.now = NOW


def agree(shards: Shards, model: Model) -> None:
    states = [state(view) for view in shards.views]
    assert states[1:] == states[:1] * 2
    start, end = states[0][:2]
    assert end == len(model.sent)
    assert start >= model.start
    model.start = start
    left = read_all(shards.views[1])
    assert all(model.sent[record.offset] == record for record in left)
    last = {record.key: record for record in model.sent if record is not None}
    present = {record.offset for record in left}
    for record in last.values():
        assert record.offset in present or record.value is None or record.offset < start
    later = {record.key: record for record in left}
    for key, record in later.items():
        assert last[key] == record or (last[key].value is None and start), "no older value comes back"


@pytest.mark.parametrize("seed", range(20))
def test_a_kill_in_a_cleaning_loses_no_last_value_of_a_key(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    shards, model = Shards(tmp_path, count=3, limits=LIMITS), Model()
    for _ in range(60):
        do = choose.choice([send, send, send, idempotent, mark, cleaned, cleaned, cleaned, delete])
        shard = CLEANER if do is cleaned else choose.randrange(3)
        with shards.perhaps_killed(shard, choose, 0.4, (*WRITES, "rename", "fsync")):
            do(shards, shard, model, choose)
        if choose.random() < 0.3:
            agree(shards, model)
    agree(shards, model)
    shards.close()


def send(shards: Shards, shard: int, model: Model, choose: random.Random) -> None:
    key, value = b"%d" % choose.randrange(5), choose.choice([None, b"%d" % len(model.sent) * choose.randrange(1, 30)])
    record = Read(len(model.sent), NOW + len(model.sent), key, value)
    raw = batch(value, keys=[key], timestamps=[record.timestamp])  # type: ignore[arg-type]
    shards.appended(shard, model.sent, [record], lambda view: view.append(raw, NOW))


def idempotent(shards: Shards, shard: int, model: Model, choose: random.Random) -> None:
    """If it is killed, its producer sends the same at another shard, however much was cleaned since."""
    at = len(model.sent)
    key, value = b"%d" % choose.randrange(5), b"idempotent %d" % at
    raw = batch(value, keys=[key], timestamps=[NOW + at], producer_id=7, epoch=0, sequence=model.sequence)
    model.sequence += 1
    model.sent.append(Read(at, NOW + at, key, value))
    try:
        assert shards.views[shard].append(raw, NOW).base_offset == at
    except Killed:
        assert shards.views[(shard + 1) % 3].append(raw, NOW).base_offset == at
        raise


def mark(shards: Shards, shard: int, model: Model, choose: random.Random) -> None:
    marker = EndTransactionMarker(choose.random() < 0.5, 0)
    shards.appended(shard, model.sent, [None], lambda view: view.end_transaction(8, 0, marker, NOW))


def cleaned(shards: Shards, shard: int, model: Model, choose: random.Random) -> None:
    """Now and then another view appends, deletes or reads in the middle."""
    model.now += choose.randrange(1000)
    log = shards.views[shard]
    log.refresh()
    found = log_to_clean(log, load_checkpoint(log.directory, log.topic_id), model.now)
    if found is None:
        return
    other = 1 + choose.randrange(2)
    try:
        for aside in Cleaning(log, found, most_keys=choose.choice([2, 1000]), now_ms=model.now).steps():
            if aside is not None:
                aside()
            if not isinstance(log._words, DeadlyWords) and choose.random() < 0.05:
                choose.choice([send, send, delete])(shards, other, model, choose)
    except (CleaningAborted, OSError, Rejected):
        pass


def delete(shards: Shards, shard: int, model: Model, choose: random.Random) -> None:
    offset = choose.randrange(model.start, len(model.sent) + 1)
    shards.views[shard].delete_before(offset)
    model.start = offset


def test_a_cleaner_that_is_killed_again_and_again_loses_nothing(tmp_path: Path) -> None:
    """A process appends and is left alone; another cleans as fast as it can, and is killed and started again."""
    shards = Shards(tmp_path, count=1, limits=LIMITS._replace(segment_bytes=20_000))
    log, choose = shards.views[0], random.Random(1)
    sent: dict[bytes, Read] = {}
    pid = _cleaner(shards)
    until, number = time.monotonic() + 1, 0
    while time.monotonic() < until:
        for _ in range(100):
            key, value = b"%d" % choose.randrange(50), b"%d" % number * 20
            offset = log.append(batch(value, keys=[key], timestamps=[NOW + number]), NOW).base_offset
            assert offset == number
            sent[key] = Read(offset, NOW + number, key, value)
            number += 1
        if choose.random() < 0.5:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            pid = _cleaner(shards)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    clean(log, NOW)
    left = {record.key: record for record in read_all(log)}
    assert left == sent
    assert read_all(shards.opened(1)) == read_all(log)
    assert any(segment.name.round for segment in log._segments)
    log.check()
    log.close()


def _cleaner(shards: Shards) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        log: SharedLog = shards.opened(1)
        while True:
            _once(log)
    finally:
        os._exit(1)


def _once(log: SharedLog) -> Any:
    try:
        log.refresh()
        found = log_to_clean(log, load_checkpoint(log.directory, log.topic_id), NOW)
        if found is not None:
            finish(Cleaning(log, found, most_keys=1000, now_ms=NOW).steps())
    except (CleaningAborted, Rejected, OSError):
        pass
