"""Open files: a bounded number, whichever are used."""

import os
from pathlib import Path

import pytest

from broker.log.files import OpenFiles, replace


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


def test_replacing_leaves_nothing_aside(tmp_path: Path) -> None:
    replace(str(tmp_path / "a"), b"old")
    replace(str(tmp_path / "a"), b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"new")]
