"""Any byte of any file of a log may be changed, or lost with all that follow it: what is sound is served, the rest kept.

The log is of several segments; each batch has two records. What may be missing is known from where the damage is.
"""

import os
import resource
import shutil
import struct
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest
from batches import batch, records_of
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.runtime.set_aside import MARK, set_aside_in
from broker.storage import partition_meta
from broker.storage.files import OpenFiles
from broker.storage.log_config import LogConfig
from broker.storage.partition_log import PartitionLog

TOPIC = UUID(int=7)
NOW = 1_700_000_000_000
LIMITS = LogConfig(segment_bytes=500, retention_bytes=-1)
BATCHES = 16


class Made(NamedTuple):
    """A directory with a log, its files, the batches in each, and all records by offset."""

    directory: Path
    files: list[str]
    values: dict[int, bytes]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    directory = tmp_path_factory.mktemp("made") / "t-0"
    log = PartitionLog(str(directory), TOPIC, OpenFiles(), LIMITS)
    values: dict[int, bytes] = {}
    for n in range(BATCHES):
        both = [b"%d first" % n + b"." * n, b"%d second" % n]
        placed = log.append(batch(*both, producer_id=5, epoch=0, sequence=2 * n), NOW)
        values.update(enumerate(both, placed.base_offset))
    log.close()
    assert len(list(directory.glob("*.log"))) >= 4
    return Made(directory, sorted(path.name for path in directory.iterdir()), values)


def read_all(log: PartitionLog) -> dict[int, bytes]:
    """Every record that a client can read, by offset; batches whose checksum does not hold are left out, as it would."""
    found: dict[int, bytes] = {}
    offset = log.start_offset
    while data := log.read(offset, 1, at_least_one=True):
        base, length = struct.unpack_from(">qi", data)
        assert 12 + length == len(data)
        assert base + 2 > offset, "no progress"
        offset = base + 2
        if struct.unpack_from(">I", data, 17)[0] == crc32c(data[21:]):
            found |= {each.offset: each.value for each in records_of(data)}
    return found


def opened(directory: Path) -> PartitionLog:
    return PartitionLog(str(directory), TOPIC, OpenFiles(), LIMITS)


def hit_by(made: Made, name: str, at: int, *, cut: bool) -> set[int]:
    """The offsets of the records in the batch at that byte, and for a cut in all behind it in the file."""
    if not name.endswith(".log"):
        return set()
    data = (made.directory / name).read_bytes()
    lost: set[int] = set()
    position = 0
    while position < len(data):
        base, length = struct.unpack_from(">qi", data, position)
        end = position + 12 + length
        if end > at and (cut or position <= at):
            lost |= {base, base + 1}
        position = end
    return lost


def check(made: Made, directory: Path, lost: set[int], name: str) -> None:
    log = opened(directory)
    found = read_all(log)
    log.check()
    assert found.items() <= made.values.items(), "nothing that was not written"
    assert made.values.keys() - found.keys() <= lost, "nothing sound is missing"
    if name.endswith(".log") and max(lost, default=0) != max(made.values):
        assert log.next_offset == len(made.values)
    end = log.next_offset
    assert log.append(batch(b"new", b"er"), NOW).base_offset == end
    # A batch of a closed segment may come back: a wrong length is put right when a reader meets it.
    new = {end: b"new", end + 1: b"er"}
    again = read_all(log)
    assert (found | new).items() <= again.items() <= (made.values | new).items()
    log.close()
    reopened = opened(directory)
    assert read_all(reopened) == again
    reopened.close()


@settings(max_examples=300)
@given(data=st.data())
def test_changed_byte_loses_only_what_it_hit(
    tmp_path_factory: pytest.TempPathFactory, made: Made, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("changed") / "t-0"
    shutil.copytree(made.directory, directory)
    name = data.draw(st.sampled_from(made.files))
    content = bytearray((directory / name).read_bytes())
    if not content:
        return
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    (directory / name).write_bytes(content)
    lost = hit_by(made, name, at, cut=False)
    check(made, directory, lost, name)
    if name == "partition.meta":
        assert len(set_aside_in(directory)) == 1
    shutil.rmtree(directory.parent)


def test_a_shorter_length_of_the_last_batch_of_a_closed_segment(tmp_path: Path, made: Made) -> None:
    """No header follows in which a reader would meet the damage."""
    name = next(name for name in made.files if name.endswith(".log"))
    content = bytearray((made.directory / name).read_bytes())
    at = content.rindex(b"\x00\x00\x00\x52")  # 82 bytes behind the length
    content[at + 3] ^= 16
    directory = tmp_path / "t-0"
    shutil.copytree(made.directory, directory)
    (directory / name).write_bytes(content)
    check(made, directory, hit_by(made, name, at, cut=False), name)


@settings(max_examples=150)
@given(data=st.data())
def test_lost_end_loses_only_what_was_behind_it(
    tmp_path_factory: pytest.TempPathFactory, made: Made, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("cut") / "t-0"
    shutil.copytree(made.directory, directory)
    name = data.draw(st.sampled_from(made.files))
    at = data.draw(st.integers(0, (directory / name).stat().st_size))
    os.truncate(directory / name, at)
    check(made, directory, hit_by(made, name, at, cut=True), name)
    shutil.rmtree(directory.parent)


def test_every_byte_of_the_last_segment_and_of_the_meta_file(tmp_path: Path, made: Made) -> None:
    """The last segment is scanned on every start: its damage is set aside, and said, unless it is put right."""
    last = [name for name in made.files if name.endswith(".log")][-1]
    for name in (last, "partition.meta"):
        raw = (made.directory / name).read_bytes()
        for at in range(len(raw)):
            directory = tmp_path / "t-0"
            shutil.copytree(made.directory, directory)
            (directory / name).write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
            log = opened(directory)
            missing = made.values.keys() - read_all(log).keys()
            assert missing <= hit_by(made, name, at, cut=False)
            aside = b"".join(Path(each.path).read_bytes() for each in set_aside_in(directory))
            assert bool(aside) == bool(missing) or name == "partition.meta"
            log.close()
            shutil.rmtree(directory)


def test_damage_in_two_places_and_a_second_start(tmp_path: Path, made: Made) -> None:
    shutil.copytree(made.directory, tmp_path / "t-0")
    logs = [name for name in made.files if name.endswith(".log")]
    for name in (logs[0], logs[-1]):
        path = tmp_path / "t-0" / name
        content = bytearray(path.read_bytes())
        content[80] ^= 1
        path.write_bytes(content)
        (path.with_suffix(".index")).unlink(missing_ok=True)
    found = read_all(opened(tmp_path / "t-0"))
    names = sorted(os.listdir(tmp_path / "t-0"))
    assert len(found) == len(made.values) - 4
    assert sum(MARK in name for name in names) == 2
    assert read_all(opened(tmp_path / "t-0")) == found
    assert sorted(os.listdir(tmp_path / "t-0")) == names, "damage is met once"


def test_a_repair_that_was_cut_short_is_done_again(tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "t-0"
    shutil.copytree(made.directory, directory)
    content = bytearray((directory / f"{0:020d}.log").read_bytes())
    size = 12 + struct.unpack_from(">i", content, 8)[0]
    content[size + 80] ^= 1
    (directory / f"{0:020d}.log").write_bytes(content)
    (directory / f"{0:020d}.index").unlink()
    replace = os.replace

    def killed(source: str, target: str) -> None:
        if target.endswith(f"{0:020d}.log"):
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            opened(directory)
    log = opened(directory)
    log.check()
    assert read_all(log) == {offset: value for offset, value in made.values.items() if offset not in (2, 3)}


def test_what_can_not_be_opened_for_want_of_descriptors_is_not_damaged(tmp_path: Path) -> None:
    meta = partition_meta.PartitionMeta(TOPIC, 7)
    partition_meta.save(str(tmp_path), meta)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # no more than there are
    try:
        with pytest.raises(OSError, match="Too many open files"):
            partition_meta.load(str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert partition_meta.load(str(tmp_path)) == meta
