"""Up to how many events a journal is judged in this process, without Spark.

Spark takes two to four times the CPU time for an event, and seconds to start (docs/internals/benchmarks.md). So few cores are done
sooner in one process, whatever the size, as long as its memory is there; many cores are done sooner on Spark above FEW_EVENTS.
"""

import os
from pathlib import Path

from shards.supervisor.memory_limit import MemoryLimit

FEW_EVENTS = 6_000_000
"""So many events are judged in one process on any machine: Spark's own processes need as much memory for them."""
FEW_CORES = 4
EVENT_BYTES = 680
"""Memory that one process has resident at most, for each event: an audit with grants and rates; other checks need less."""
_MEMINFO = Path("/proc/meminfo")


def events_here(memory_bytes: int, cores: int) -> int:
    """The number of events, with so much memory to be had, of which one process takes half at most, and so many cores."""
    return FEW_EVENTS if cores > FEW_CORES else max(FEW_EVENTS, memory_bytes // 2 // EVENT_BYTES)


def events_on_this_machine() -> int:
    """The number of events, with the cores and the memory that this process may have now."""
    return events_here(min(_available_bytes(), MemoryLimit().limit_bytes or 1 << 60), len(os.sched_getaffinity(0)))


def _available_bytes() -> int:
    """Memory that the kernel can give without swapping (MemAvailable, proc(5)); 0 where it does not say."""
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return 0
