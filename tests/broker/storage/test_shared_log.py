"""Several views of one log: each sees and checks what the others append, and any of them may be killed at any moment."""

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from batches import batch, records_of, values_of
from committed import committed
from shared_logs import SMALL, Killed, Shards, state

from broker.storage.control_records import EndTransactionMarker
from broker.storage.log_config import LogConfig
from broker.storage.log_ends import DIRTY, GENERATION, WAITING
from broker.storage.log_segments import OutOfRange
from broker.storage.producer_state import NOT_ASKED, UNVERIFIED
from broker.storage.records import CONTROL, TRANSACTIONAL, Rejected, header_at
from broker.storage.shared_log import SharedLog
from broker.wire import codes

NOW = 1_700_000_000_000
OTHER = UUID(int=2)
ALL = 1 << 20


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[Shards]:
    shards = Shards(tmp_path)
    yield shards
    shards.close()


def read_all(log: SharedLog) -> list[bytes]:
    log.refresh()
    found, offset = [], log.start_offset
    while data := log.read(offset, ALL, True):
        at = 0
        while at < len(data):
            head = header_at(data, at)
            if not head.attributes & CONTROL:
                found += [
                    each.value for each in records_of(data[at : at + head.size]) if each.offset >= log.start_offset
                ]
            at, offset = at + head.size, head.last_offset + 1
    return found


def test_each_view_appends_behind_the_others(shards: Shards) -> None:
    values = [b"%d" % turn * 50 for turn in range(40)]
    for turn, value in enumerate(values):
        assert shards.views[turn * 7 % 3 % 2].append(batch(value), NOW).base_offset == turn
    assert len(shards.views[0]._segments) > 3
    assert [read_all(view) for view in shards.views] == [values] * 2
    assert state(shards.views[0]) == state(shards.views[1]) == state(shards.opened(1))


def test_a_view_that_is_current_reads_no_file(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    view = shards.views[0]
    view.append(batch(b"a"), NOW)
    monkeypatch.setattr(os, "pread", None)
    monkeypatch.setattr(SharedLog, "_load", None)
    view.append(batch(b"b"), NOW)
    view.refresh()
    assert view.next_offset == 2


def test_a_producer_is_known_at_every_shard(shards: Shards) -> None:
    zero, one = shards.views
    sent = [batch(b"%d" % n, producer_id=7, epoch=0, sequence=n) for n in range(8)]
    zero.append(sent[0], NOW)
    assert one.append(sent[0], NOW).base_offset == 0
    with pytest.raises(Rejected) as refused:
        one.append(sent[2], NOW)
    assert refused.value.code == codes.OUT_OF_ORDER_SEQUENCE_NUMBER
    for n in range(1, 8):
        assert shards.views[n % 2].append(sent[n], NOW).base_offset == n
        assert shards.views[1 - n % 2].append(sent[n], NOW).base_offset == n
    zero.append(batch(b"new", producer_id=7, epoch=1, sequence=0), NOW)
    with pytest.raises(Rejected) as refused:
        one.append(sent[7], NOW)
    assert refused.value.code == codes.INVALID_PRODUCER_EPOCH


def test_a_transaction_may_begin_at_one_shard_and_end_at_another(shards: Shards) -> None:
    zero, one = shards.views

    def append(view: SharedLog, sequence: int, asked_at: int) -> None:
        raw = batch(b"%d" % sequence, producer_id=7, epoch=0, sequence=sequence, attributes=TRANSACTIONAL)
        view.append(raw, NOW, asked_at)

    append(zero, 0, -1)
    append(one, 1, NOT_ASKED)
    assert committed(zero) == committed(one) == []
    one.end_transaction(7, 0, EndTransactionMarker(True, 0), NOW)
    with pytest.raises(Rejected) as refused:
        append(zero, 2, -1)
    assert (refused.value.code, refused.value.records) == (UNVERIFIED, (2,)), "a marker came since it was asked"
    append(zero, 2, 2)
    one.refresh()
    zero.end_transaction(7, 0, EndTransactionMarker(False, 0), NOW)
    one.refresh()
    assert committed(one) == [b"0", b"1"]
    assert state(zero) == state(one)


def test_records_that_one_shard_deletes_are_gone_at_the_others(shards: Shards) -> None:
    zero, one = shards.views
    for turn in range(20):
        zero.append(batch(b"%d" % turn * 50), NOW)
    assert len(read_all(one)) == 20
    zero.delete_before(12)
    one.refresh()
    with pytest.raises(OutOfRange):
        one.read(11, ALL, True)
    assert len(read_all(one)) == 8
    one.delete_before(-1)
    zero.refresh()
    assert (zero.start_offset, zero.next_offset) == (20, 20)
    assert zero.append(batch(b"a"), NOW).base_offset == 20
    one.limits = LogConfig(retention_ms=1000)
    one.retain(NOW + 5000)
    assert read_all(zero) == []
    assert state(zero) == state(one)


def test_a_reader_whose_segment_goes_meanwhile_hears_of_it(shards: Shards) -> None:
    zero, one = shards.views
    for turn in range(20):
        zero.append(batch(b"%d" % turn * 50), NOW)
    one.refresh()
    zero.delete_before(15)
    assert one.start_offset == 0
    with pytest.raises(OutOfRange):
        one.read(0, ALL, True)
    assert one.start_offset == 15


def test_a_view_with_a_waiter_is_notified_by_the_others(shards: Shards) -> None:
    class Waiter:
        def __init__(self) -> None:
            self.bytes = 0

        def appended(self, size_bytes: int) -> None:
            self.bytes += size_bytes

        def closed(self) -> None:
            pass

    zero, one = shards.views
    zero.append(batch(b"a"), NOW)
    waiter, raw = Waiter(), batch(b"b")
    one.watch(waiter)
    waiter.bytes = 0
    zero.append(raw, NOW)
    zero.append(raw, NOW)
    assert shards.told == [(0, 0b10)], "once"
    one.appended_elsewhere()
    assert waiter.bytes == 2 * len(raw)
    one.append(raw, NOW)
    assert (waiter.bytes, shards.told) == (3 * len(raw), [(0, 0b10)])
    zero.append(raw, NOW)
    assert shards.told == [(0, 0b10)] * 2
    one.waiters.clear()
    one.appended_elsewhere()
    zero.append(raw, NOW)
    assert shards.told == [(0, 0b10)] * 2
    assert zero._words[WAITING] == 0


def test_a_failed_append_is_cut_off_and_the_other_view_goes_on(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    zero, one = shards.views
    zero.append(batch(b"a"), NOW)
    generation = zero._words[GENERATION]

    def full(descriptor: int, buffers: list[bytes], position: int) -> int:
        os.pwrite(descriptor, buffers[1][:20], position)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full)
        with pytest.raises(Rejected):
            zero.append(batch(b"b"), NOW)
    assert (zero._words[DIRTY], zero._words[GENERATION]) == (0, generation)
    assert one.append(batch(b"c"), NOW).base_offset == 1
    assert read_all(zero) == [b"a", b"c"]


def test_damage_that_one_shard_repairs_is_repaired_for_all(shards: Shards) -> None:
    zero, one = shards.views
    for turn in range(20):
        zero.append(batch(b"%02d" % turn * 50), NOW)
    one.refresh()
    path = Path(zero._segments[1].path)
    raw = bytearray(path.read_bytes())
    at = len(raw) // 2
    raw[at - 40 : at + 40] = bytes(80)
    path.write_bytes(raw)
    found = [values_of(one.read(offset, 1, True))[0] for offset in (*range(3), *range(12, 20))]
    assert found == [b"%02d" % turn * 50 for turn in (*range(3), *range(12, 20))]
    for offset in range(20):
        one.read(offset, 1, True)
    zero.refresh()
    after = [zero.read(offset, 1, True) for offset in range(20)]
    assert after == [one.read(offset, 1, True) for offset in range(20)]
    assert state_without_gaps(zero) == state_without_gaps(one)


def state_without_gaps(log: SharedLog) -> Any:
    log.refresh()
    return log.next_offset, [(segment.base_offset, segment.size) for segment in log._segments]


def test_a_shard_that_has_not_heard_of_a_topic_leaves_it_alone(shards: Shards) -> None:
    behind, ahead = shards.views
    behind.append(batch(b"old"), NOW)
    shards.version[1] = 3
    again = shards.opened(1, OTHER)
    assert again.next_offset == 0
    again.append(batch(b"new"), NOW)
    for do in (lambda: behind.append(batch(b"late"), NOW), behind.refresh, lambda: shards.opened(0), ahead.close):
        if do != ahead.close:
            with pytest.raises(Rejected) as refused:
                do()
            assert refused.value.code == codes.NOT_LEADER_OR_FOLLOWER
    assert read_all(again) == [b"new"]
    shards.version[0] = 3
    assert read_all(shards.opened(0, OTHER)) == [b"new"]


# Deaths


class Model:
    """The values that must be in the log, whichever shards were killed. `producers`: the next sequence number of each."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []  # None: a marker
        self.start = 0
        self.producers = dict.fromkeys(range(1, 4), 0)


def agree(shards: Shards, model: Model) -> None:
    states = [state(view) for view in shards.views]
    assert all(each == states[0] for each in states)
    start, end = states[0][:2]
    assert end == len(model.values)
    assert start >= model.start
    model.start = start
    assert read_all(shards.views[0]) == [value for value in model.values[start:] if value is not None]


@pytest.mark.parametrize("seed", range(60))
def test_a_kill_at_any_point_loses_and_doubles_nothing(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    shards, model = Shards(tmp_path, count=3), Model()
    for turn in range(60):
        shard = choose.randrange(3)
        do = choose.choice([send, send, send, send_idempotent, send_idempotent, mark, delete, retain, start_again])
        with shards.perhaps_killed(shard, choose, 0.3):
            do(shards, shard, model, choose, b"%d " % turn * choose.randrange(1, 40))
        if choose.random() < 0.3:
            agree(shards, model)
    agree(shards, model)
    shards.close()


def send(shards: Shards, shard: int, model: Model, choose: random.Random, value: bytes) -> None:
    shards.appended(shard, model.values, [value], lambda view: view.append(batch(value), NOW))


def send_idempotent(shards: Shards, shard: int, model: Model, choose: random.Random, value: bytes) -> None:
    """If the shard is killed, the producer sends the same batch to another one."""
    producer = choose.choice(list(model.producers))
    raw = batch(value, b"+", producer_id=producer, epoch=0, sequence=model.producers[producer])
    model.producers[producer] += 2
    offset = len(model.values)
    model.values += [value, b"+"]
    try:
        assert shards.views[shard].append(raw, NOW).base_offset == offset
    except Killed:
        assert shards.views[(shard + 1) % 3].append(raw, NOW).base_offset == offset
        raise


def mark(shards: Shards, shard: int, model: Model, choose: random.Random, value: bytes) -> None:
    producer, marker = choose.choice(list(model.producers)), EndTransactionMarker(choose.random() < 0.5, 0)
    if model.producers[producer]:
        shards.appended(shard, model.values, [None], lambda view: view.end_transaction(producer, 0, marker, NOW))


def delete(shards: Shards, shard: int, model: Model, choose: random.Random, value: bytes) -> None:
    offset = choose.randrange(model.start, len(model.values) + 1)
    shards.views[shard].delete_before(offset)
    model.start = offset


def retain(shards: Shards, shard: int, model: Model, choose: random.Random, value: bytes) -> None:
    view = shards.views[shard]
    view.limits = SMALL._replace(retention_bytes=choose.choice([1500, 4000]))
    try:
        view.retain(NOW)
    finally:
        view.limits = SMALL


def start_again(shards: Shards, shard: int, model: Model, choose: random.Random, value: bytes) -> None:
    shards.views[shard].close()
    shards.views[shard] = shards.opened(shard)


def test_processes_that_are_killed_lose_and_double_nothing(tmp_path: Path) -> None:
    """Each process appends as a producer of its own, is killed, and goes on after the last sequence number that it noted."""
    shards = Shards(tmp_path, count=1, limits=LogConfig(segment_bytes=20_000, retention_bytes=-1))
    choose = random.Random(1)
    notes = [tmp_path / f"notes-{number}" for number in range(3)]
    pids = [_child(shards, number, notes[number]) for number in range(3)]
    for _ in range(25):
        time.sleep(choose.uniform(0.005, 0.05))
        number = choose.randrange(3)
        os.kill(pids[number], signal.SIGKILL)
        os.waitpid(pids[number], 0)
        pids[number] = _child(shards, number, notes[number])
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    log = shards.views[0]
    values = read_all(log)
    log.check()
    for number, path in enumerate(notes):
        sent = [int(value.split()[1]) for value in values if value.split()[0] == b"%d" % number]
        assert sent == list(range(len(sent))), "once each, and in order"
        for line in path.read_text().splitlines():
            sequence, offset = map(int, line.split())
            assert values[offset] == b"%d %d" % (number, sequence)
        assert sequence in (len(sent) - 1, len(sent) - 2), "the last one may not have been noted"
    assert len(values) > 100
    shutil.rmtree(shards.directory)


def _child(shards: Shards, number: int, notes: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        log = shards.opened(1 + number)
        lines = notes.read_text().split("\n")[:-1] if notes.exists() else []
        sequence = int(lines[-1].split()[0]) + 1 if lines else 0
        with notes.open("a", buffering=1) as file:
            while True:
                raw = batch(b"%d %d" % (number, sequence), producer_id=number, epoch=0, sequence=sequence)
                try:
                    offset = log.append(raw, NOW).base_offset
                except Rejected as refused:
                    if refused.code != codes.NOT_LEADER_OR_FOLLOWER:
                        raise
                    continue
                file.write(f"{sequence} {offset}\n")
                sequence += 1
    finally:
        os._exit(1)
