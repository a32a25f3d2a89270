"""Processes that the kernel has ended for want of memory: the counter of this process's cgroup, and the limit there.

Linux counts in a cgroup the processes of it that the OOM killer has ended, for whatever limit: the cgroup's own, one above it,
or the memory of the machine. Processes of others in the same cgroup count, too.

Source: Documentation/admin-guide/cgroup-v2.rst (memory.events), cgroup-v1/memory.rst (memory.oom_control).
"""

from __future__ import annotations

from pathlib import Path

_MOST_BYTES = 1 << 60
"""A number from here on means that there is no limit: version 1 writes one near 2 ** 63."""


class MemoryLimit:
    """`cgroups`: where they are mounted; `mine`: the file that says in which of them this process is."""

    def __init__(self, cgroups: Path = Path("/sys/fs/cgroup"), mine: Path = Path("/proc/self/cgroup")) -> None:
        self._counter: Path | None = None
        self._limit: Path | None = None
        self._find(cgroups, mine)
        self._seen = self._count()
        self._unclaimed = 0

    def claims(self) -> bool:
        """True if a process that SIGKILL has just ended was ended for want of memory; to be asked once for each."""
        count = self._count()
        self._unclaimed += max(0, count - self._seen)
        self._seen = count
        if not self._unclaimed:
            return False
        self._unclaimed -= 1
        return True

    @property
    def limit_bytes(self) -> int | None:
        """The cgroup's own limit; None where it has none."""
        try:
            limit = int(self._limit.read_text()) if self._limit is not None else _MOST_BYTES
        except (OSError, ValueError):  # "max": there is none
            return None
        return limit if limit < _MOST_BYTES else None

    def describe(self) -> str:
        """The limit, in a few words."""
        limit = self.limit_bytes
        return (
            "its cgroup has no limit of its own" if limit is None else f"its cgroup may have {limit / 2**20:,.0f} MiB"
        )

    def _find(self, cgroups: Path, mine: Path) -> None:
        try:
            rows = [line.split(":", 2) for line in mine.read_text().splitlines()]
        except OSError:
            return
        for _, controllers, path in sorted(rows, key=lambda row: "memory" not in row[1].split(",")):
            if "memory" in controllers.split(","):
                root, counter, limit = cgroups / "memory", "memory.oom_control", "memory.limit_in_bytes"
            elif not controllers:
                root, counter, limit = cgroups, "memory.events", "memory.max"
            else:
                continue
            for folder in (root / path.lstrip("/"), root):  # in a container its own cgroup is the root
                if (folder / counter).exists():
                    self._counter, self._limit = folder / counter, folder / limit
                    return

    def _count(self) -> int:
        """The number of the cgroup's processes that were ended; 0 where that can't be known."""
        try:
            lines = self._counter.read_text().splitlines() if self._counter is not None else []
            return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
        except (OSError, ValueError, IndexError):
            return 0
