"""A process that the kernel ends for want of memory is told from one that anything else has killed."""

from pathlib import Path

import pytest

from shards.supervisor.memory_limit import MemoryLimit


def of_version(version: int, folder: Path, *, limit: str = "268435456") -> tuple[MemoryLimit, Path]:
    """What a process in cgroup /a/b sees, and the file in which the kernel counts."""
    mine = folder / "mine"
    if version == 1:
        mine.write_text("9:name=systemd:/\n8:cpu,memory:/a/b\n0::/\n")
        home, counter, bound = folder / "memory/a/b", "memory.oom_control", "memory.limit_in_bytes"
    else:
        mine.write_text("0::/a/b\n")
        home, counter, bound = folder / "a/b", "memory.events", "memory.max"
    home.mkdir(parents=True)
    (home / bound).write_text(limit + "\n")
    write(home / counter, 3)
    return MemoryLimit(folder, mine), home / counter


def write(counter: Path, kills: int) -> None:
    counter.write_text(f"oom 9\nunder_oom 0\noom_kill {kills}\noom_group_kill 0\n")


@pytest.mark.parametrize("version", [1, 2])
def test_each_that_the_kernel_has_counted_is_claimed_once(tmp_path: Path, version: int) -> None:
    limit, counter = of_version(version, tmp_path)
    assert not limit.claims(), "those before the start are of others"
    write(counter, 5)
    assert [limit.claims() for _ in range(3)] == [True, True, False]
    write(counter, 6)
    assert [limit.claims() for _ in range(2)] == [True, False]
    assert limit.describe() == "its cgroup may have 256 MiB"


@pytest.mark.parametrize(("version", "none"), [(1, "9223372036854771712"), (2, "max")])
def test_a_cgroup_without_a_limit_says_so(tmp_path: Path, version: int, none: str) -> None:
    limit, _ = of_version(version, tmp_path, limit=none)
    assert limit.describe() == "its cgroup has no limit of its own"


def test_a_container_sees_its_own_cgroup_as_the_root(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("0::/docker/1234\n")
    write(tmp_path / "memory.events", 0)
    limit = MemoryLimit(tmp_path, tmp_path / "mine")
    write(tmp_path / "memory.events", 1)
    assert limit.claims()


@pytest.mark.parametrize("said", [None, "", "oom_kill\n", "oom_kill x\n"])
def test_without_a_counter_nothing_is_claimed(tmp_path: Path, said: str | None) -> None:
    (tmp_path / "mine").write_text("0::/\n")
    if said is not None:
        (tmp_path / "memory.events").write_text(said)
    assert not MemoryLimit(tmp_path, tmp_path / "mine").claims()
    assert not MemoryLimit(tmp_path, tmp_path / "missing").claims()
