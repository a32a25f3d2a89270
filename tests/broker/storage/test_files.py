"""Open files: a bounded number, whichever are used."""

import os
from pathlib import Path

import pytest

from broker.storage.files import OpenFiles, replace


def opened(path: str) -> bool:
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return any(os.path.exists(link) and os.readlink(link) == path for link in links)


def test_the_one_unused_longest_is_closed_for_another(tmp_path: Path) -> None:
    files = OpenFiles(max_open=2)
    a, b, c = (str(tmp_path / name) for name in "abc")
    for path in (a, b, a, c):
        files.descriptor(path, create=True)
    assert (len(files), opened(a), opened(b), opened(c)) == (2, True, False, True)
    os.write(files.descriptor(b), b"opened again")
    assert (len(files), opened(a)) == (2, False)
    files.forget(b)
    files.close()
    assert not any(map(opened, (a, b, c)))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        OpenFiles().descriptor(str(tmp_path / "missing"))


def test_a_slice_keeps_its_file_open_whatever_becomes_of_its_name(tmp_path: Path) -> None:
    files = OpenFiles(max_open=1)
    path = str(tmp_path / "a")
    os.write(files.descriptor(path, create=True), b"0123456789")
    found = files.slice(path, 2, 5)
    assert found is not None and len(found) == 5
    files.descriptor(str(tmp_path / "b"), create=True)
    assert len(files) == 1 and opened(path)
    assert files.slice(path, 2, 5) is not None and opened(path), "opened twice, its locks would be lost"
    files.forget(path)
    os.rename(path, f"{path}.deleted")
    os.write(files.descriptor(path, create=True), b"another")
    assert bytes(found) == b"23456"
    found.skip(3)
    assert (len(found), found.chunk(9), found.chunk(1)) == (2, b"56", b"5")
    del found
    assert not opened(f"{path}.deleted")


def test_what_a_file_has_not_is_no_slice(tmp_path: Path) -> None:
    files = OpenFiles()
    path = str(tmp_path / "a")
    os.write(files.descriptor(path, create=True), b"0123456789")
    assert files.slice(path, 6, 5) is None
    found = files.slice(path, 5, 5)
    assert found is not None
    os.truncate(path, 7)
    with pytest.raises(OSError, match="shorter"):
        bytes(found)


def test_slices_keep_half_as_many_files_open_as_are_open_anyway(tmp_path: Path) -> None:
    files = OpenFiles(max_open=4)
    paths = [str(tmp_path / str(number)) for number in range(12)]
    for path in paths:
        os.write(files.descriptor(path, create=True), b"0123456789")
    found = [files.slice(path, 0, 10) for path in paths]
    assert [each is not None for each in found] == [True] * 2 + [False] * 10
    assert sum(map(opened, paths)) == 6
    assert files.slice(paths[0], 0, 5) is not None, "another one of the same file"
    found[0] = None
    assert files.slice(paths[-1], 0, 10) is not None


def test_replacing_leaves_nothing_aside(tmp_path: Path) -> None:
    replace(str(tmp_path / "a"), b"old")
    replace(str(tmp_path / "a"), b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"new")]
