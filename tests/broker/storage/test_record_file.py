"""A framed file: what was appended is there, and damage costs the damaged frames alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.runtime.set_aside import set_aside_in
from broker.storage.record_file import MAGIC, MAX_BODY_BYTES, RecordFile, frame

BODIES = [b"body %d" % n * (n % 5) + MAGIC[: n % 4] for n in range(12)]


def written(directory: Path) -> RecordFile:
    log = RecordFile(directory / "0.offsets")
    for body in BODIES:
        log.append(body)
    log.close()
    return log


def loaded(directory: Path) -> list[bytes]:
    found: list[bytes] = []
    RecordFile(directory / "0.offsets").load(found.append)
    return found


def test_what_was_appended_is_found(tmp_path: Path) -> None:
    written(tmp_path)
    assert loaded(tmp_path) == BODIES
    assert not set_aside_in(tmp_path)


@given(cut=st.integers(0, 1000))
def test_a_torn_last_frame_is_cut_off_and_costs_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    directory = tmp_path_factory.mktemp("log")
    log = written(directory)
    cut %= log.size + 1
    os.truncate(log.path, cut)
    ends = [sum(len(frame(body)) for body in BODIES[: n + 1]) for n in range(len(BODIES))]
    whole = sum(end <= cut for end in ends)
    assert loaded(directory) == BODIES[:whole]
    assert not set_aside_in(directory)
    assert log.path.stat().st_size == (ends[whole - 1] if whole else 0)


@given(at=st.integers(0, 1000), flip=st.integers(1, 255))
def test_a_changed_byte_costs_its_frame_alone(tmp_path_factory: pytest.TempPathFactory, at: int, flip: int) -> None:
    directory = tmp_path_factory.mktemp("log")
    log = written(directory)
    data = bytearray(log.path.read_bytes())
    at %= len(data)
    data[at] ^= flip
    log.path.write_bytes(data)
    ends = [sum(len(frame(body)) for body in BODIES[: n + 1]) for n in range(len(BODIES))]
    hit = sum(end <= at for end in ends)
    assert loaded(directory) == BODIES[:hit] + BODIES[hit + 1 :]
    aside = set_aside_in(directory)
    # A length that now reaches beyond the end of the last frame can't be told from a torn write.
    assert [each.size_bytes for each in aside] == [len(frame(BODIES[hit]))] or (hit == len(BODIES) - 1 and not aside)
    assert loaded(directory) == BODIES[:hit] + BODIES[hit + 1 :], "damage is met once"
    assert len(set_aside_in(directory)) == len(aside)


def test_what_is_no_file_at_all_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "0.offsets").mkdir()
    log = RecordFile(tmp_path / "0.offsets")
    log.load(lambda _: None)
    log.append(b"a")
    assert loaded(tmp_path) == [b"a"]
    assert len(set_aside_in(tmp_path)) == 1


def test_damage_that_cannot_be_set_aside_stays_and_is_stepped_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = written(tmp_path)
    data = log.path.read_bytes()
    log.path.write_bytes(b"?" + data[1:])
    with monkeypatch.context() as patch:
        patch.setattr("broker.storage.record_file.set_aside", lambda *_, **__: (_ for _ in ()).throw(OSError("full")))
        found: list[bytes] = []
        log = RecordFile(tmp_path / "0.offsets")
        log.load(found.append)
        log.append(b"new")
    assert found == BODIES[1:]
    assert loaded(tmp_path) == [*BODIES[1:], b"new"]


def test_a_failed_append_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = written(tmp_path)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, data[: len(data) // 2]))
        with pytest.raises(OSError, match="bytes fit"):
            log.append(b"never")
    log.append(b"next")
    assert loaded(tmp_path) == [*BODIES, b"next"]


def test_a_replacement_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = written(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("no")))
        with pytest.raises(OSError, match="no"):
            log.replace([frame(b"new")])
    assert loaded(tmp_path) == BODIES
    assert [path.name for path in tmp_path.iterdir()] == ["0.offsets"]
    log.replace([frame(b"new")])
    log.append(b"next")
    assert loaded(tmp_path) == [b"new", b"next"]


def test_a_body_that_load_would_take_for_torn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bytes"):
        RecordFile(tmp_path / "0.offsets").append(bytes(MAX_BODY_BYTES + 1))
